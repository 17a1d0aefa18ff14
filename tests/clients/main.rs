//! Tier: clients in other languages, built from the contract with their own tools and run against the real server.
//!
//! Where a language's tools are absent, its tests say so and are skipped; with `CI` set that is a failure.

mod conformance;
mod coverage;
mod decide;
mod document;
mod embedded;
mod keeper;
mod language;
mod proof;
mod stubs;
mod world;
