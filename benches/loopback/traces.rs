//! The cost of traces: for a server without a collector, for a server with a collector and no traced events, and for a server
//! with a share of traced events.

use tests::{
    collector::{Collector, Manner},
    table::{head, quantile_of, row},
};
use tokio::runtime::Runtime;

use crate::{host::Host, throughput};

/// The number of rounds of all modes, in turns.
const ROUNDS: usize = 9;

/// The name, whether there is a collector, and one in how many changes is traced.
const MODES: [(&str, bool, Option<usize>); 4] = [
    ("no collector", false, None),
    ("a collector, nothing traced", true, None),
    ("a collector, 1 % traced", true, Some(100)),
    ("no collector, 1 % traced by the agent", false, Some(100)),
];

pub(crate) fn run(runtime: &Runtime) {
    let columns = [
        "server",
        "processor of the server, µs a change",
        "of that without a collector",
        "lowest and highest",
    ];
    head("Traces, changes of pods, 500 a frame", &columns);
    let collector = Collector::start(Manner::Attentive);
    let mut rounds = MODES.map(|_| Vec::new());
    for round in 0..ROUNDS {
        for turn in 0..MODES.len() {
            let at = (round + turn) % MODES.len();
            let (_, collects, traced) = MODES[at];
            let host = if collects {
                Host::tracing(collector.url())
            } else {
                Host::decree()
            };
            let (took, recorded) = runtime.block_on(throughput::steady(&host, false, traced));
            let processor = took.processor.map_or(f64::NAN, |it| it.as_secs_f64());
            rounds[at].push(processor / recorded.units as f64 * 1e6);
        }
    }
    for ((name, ..), costs) in MODES.iter().zip(&rounds) {
        print(name, costs, &rounds[0]);
    }
    collector.wait_for("span of a change", |spans| {
        spans.iter().find(|span| span.name == "receive").cloned()
    });
}

/// Prints the median of the rounds, each compared with the round without a collector next to it.
fn print(name: &str, costs: &[f64], without: &[f64]) {
    let pairs = costs.iter().zip(without);
    let mut shares: Vec<_> = pairs
        .map(|(cost, without)| cost / without * 100.0)
        .collect();
    let share = quantile_of(&mut shares, 0.5);
    let (low, high) = (quantile_of(&mut shares, 0.0), quantile_of(&mut shares, 1.0));
    row(&[
        name.to_owned(),
        format!("{:.2}", quantile_of(&mut costs.to_vec(), 0.5)),
        format!("{share:.1} %"),
        format!("{low:.1} %, {high:.1} %"),
    ]);
}
