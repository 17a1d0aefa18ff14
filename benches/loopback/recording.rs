//! The cost of a recorded session, beside a session without a recording.

use tempfile::TempDir;
use tests::table::{head, quantile_of, row};
use tokio::runtime::Runtime;

use crate::{host::Host, latency};

/// Events a second, if the command line names no rate.
const RATE: u32 = 10_000;
/// The number of rounds with and without a recording. Rounds alternate which one is first.
const ROUNDS: usize = 12;

/// p50, p99 and p99.9 in microseconds, and the share of one core in percent.
type Figures = [f64; 4];

pub(crate) fn run(runtime: &Runtime, rate: Option<u32>) {
    let rate = rate.unwrap_or(RATE);
    let columns = [
        "server",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "processor of the server, µs an event",
        "of that without recording",
    ];
    head(&format!("Recording, {rate} events/s"), &columns);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let folder = TempDir::new().expect("there is room");
        let mut measure = |records: bool| {
            let (host, figures) = if records {
                (Host::recording(folder.path()), &mut with)
            } else {
                (Host::decree(), &mut without)
            };
            figures.push(runtime.block_on(latency::round(rate, host)));
        };
        let first = round % 2 == 0;
        measure(first);
        measure(!first);
    }
    // Two rounds of a turn share the load of the machine, so each round is compared with its neighbor.
    let pairs = with.iter().zip(&without);
    let mut shares: Vec<_> = pairs.map(|(with, without)| with[3] / without[3]).collect();
    print("without recording", rate, &without, 1.0);
    print("recording", rate, &with, quantile_of(&mut shares, 0.5));
}

/// Prints the medians of rounds.
fn print(name: &str, rate: u32, rounds: &[Figures], share: f64) {
    let median = |column: usize| {
        let mut values: Vec<_> = rounds.iter().map(|round| round[column]).collect();
        quantile_of(&mut values, 0.5)
    };
    let per_event = median(3) / 100.0 * 1e6 / f64::from(rate);
    row(&[
        name.to_owned(),
        format!("{:.0}", median(0)),
        format!("{:.0}", median(1)),
        format!("{:.0}", median(2)),
        format!("{per_event:.2}"),
        format!("{:.1} %", share * 100.0),
    ]);
}
