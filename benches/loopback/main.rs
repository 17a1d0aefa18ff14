//! The cost of a session over loopback gRPC, beside a bare tonic stream of the same messages. The tables are in
//! docs/internals/benchmarks.md.
//!
//! Each measurement is made twice in a row: against the decision server, and against [`host::Bare`]. The bare tonic service only
//! reads and writes the messages that the decision server read and wrote. The server runs on one worker thread, so wall time and
//! the time of that thread show the capacity of one core. Words after `--` name the parts to run: latency, bursts, throughput,
//! recording, whole, healing. A number is the rate of `recording`, instead of 10,000 events a second.

mod bursts;
mod cluster;
mod healing;
mod host;
mod latency;
mod link;
mod recording;
mod throughput;
mod whole;

use std::env;

use tokio::runtime::Builder;

fn main() {
    let words: Vec<_> = env::args()
        .skip(1)
        .filter(|it| !it.starts_with("--"))
        .collect();
    let (rates, words): (Vec<_>, Vec<_>) = words.iter().partition(|it| it.parse::<u32>().is_ok());
    let is_wanted = |part: &str| words.is_empty() || words.iter().any(|word| *word == part);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    if is_wanted("latency") {
        latency::run(&runtime);
    }
    if is_wanted("bursts") {
        bursts::run(&runtime);
    }
    if is_wanted("throughput") {
        throughput::run(&runtime);
    }
    if is_wanted("recording") {
        recording::run(&runtime, rates.first().and_then(|it| it.parse().ok()));
    }
    if is_wanted("whole") {
        whole::run();
    }
    if is_wanted("healing") {
        healing::run();
    }
}
