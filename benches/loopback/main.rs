//! The cost of a session over loopback gRPC, beside a bare tonic stream of the same messages. The tables are in
//! docs/internals/benchmarks.md.
//!
//! Each measurement is made twice in a row: against the decision server, and against [`host::Bare`]. The bare tonic service only
//! reads and writes the messages that the decision server read and wrote. The server runs on one worker thread, so wall time and
//! the time of that thread show the capacity of one core. Words after `--` name the parts to
//! run: latency, throughput, costs.

mod cluster;
mod costs;
mod host;
mod latency;
mod link;
mod throughput;

use std::env;

use tokio::runtime::Builder;

fn main() {
    let words: Vec<_> = env::args()
        .skip(1)
        .filter(|it| !it.starts_with("--"))
        .collect();
    let is_wanted = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    if is_wanted("latency") {
        latency::run(&runtime);
    }
    if is_wanted("throughput") {
        throughput::run(&runtime);
    }
    if is_wanted("costs") {
        costs::run(&runtime);
    }
}
