//! Tier: real processes, started as the documents say, and third-party clients: grpcurl and Python.
//!
//! Without Go or Python, the tests that need it are skipped with a notice; with `CI` set, they fail.

mod access;
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
mod repeats;
mod restart;
mod secrets;
mod session;
#[path = "../sim/main.rs"]
mod sim;
mod skew;
mod transport;
mod up;
mod world;
