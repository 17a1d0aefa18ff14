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

use tokio::runtime::{Builder, Runtime};

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

/// Returns the element below which `share` of the sorted values lie.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let place = (last as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// Returns the median and sorts the values.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(values, 0.5)
}

/// Prints the head of a table.
#[expect(
    clippy::print_stdout,
    reason = "the tables are what this program is for"
)]
fn head(title: &str, columns: &[&str]) {
    println!("\n### {title}\n\n| {} |", columns.join(" | "));
    println!("| --- |{}", " ---: |".repeat(columns.len() - 1));
}

/// Prints a row of a table.
#[expect(
    clippy::print_stdout,
    reason = "the tables are what this program is for"
)]
fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

/// Lets a session's client work on the runtime of the caller.
fn on<T>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    runtime.block_on(work)
}
