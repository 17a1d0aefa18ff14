//! Tier: real processes, started as the documents say, and clients that are not ours: grpcurl and Python.
//!
//! Where Go or Python is absent the tests that need it say so and are skipped; with `CI` set that is a failure.

mod access;
mod budget;
mod cause;
mod cli;
mod clusters;
mod commit;
mod console;
mod documents;
mod exposure;
mod image;
mod last_words;
mod logs;
mod metrics;
mod monitoring;
mod newcomer;
mod packages;
mod recording;
mod release;
mod restart;
mod session;
mod skew;
mod time_slices;
mod traces;
mod transport;
mod up;
mod world;
