//! Tier: clients in other languages, built from the contract with their own tools and run against the real server.
//!
//! Where a language's tools are absent, its tests say so and are skipped; with `CI` set that is a failure.

mod admission;
mod conformance;
mod coverage;
mod decide;
mod document;
mod embedded;
mod keeper;
mod language;
mod play;
mod polling;
mod proof;
mod puppet;
mod rules;
mod scripted;
mod stubs;
mod world;
