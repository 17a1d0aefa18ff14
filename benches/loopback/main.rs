//! What a session costs over loopback gRPC, beside a bare tonic stream of the very same messages. The tables are in
//! docs/performance.md.
//!
//! Each measurement is made twice in a row: against the decision server, and against [`host::Bare`], a tonic service that reads and
//! writes the messages that the decision server read and wrote, and does nothing else. The server runs on one worker thread, so
//! that wall time and the time of that thread say what one core does.

mod bursts;
mod cluster;
mod host;
mod latency;
mod link;
mod throughput;
mod whole;

use tokio::runtime::Builder;

fn main() {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    latency::run(&runtime);
    bursts::run(&runtime);
    throughput::run(&runtime);
    whole::run();
}
