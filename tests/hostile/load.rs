//! Sustained load: many clusters on one server with a malicious one among them, and many concurrent agents.
//!
//! The figures are in docs/performance.md. The environment sets the numbers of clusters and agents:
//!
//! ```sh
//! DECREE_LOAD_CLUSTERS=19 cargo test --release -p tests --test hostile load -- --nocapture    # DECREE_HOSTILE_CELL='hello|pings' chooses
//! DECREE_LOAD_AGENTS=1000 cargo test --release -p tests --test hostile load -- --nocapture
//! ```
//! Attacker, clusters and server share the processor of one machine. To find the machine's part of a delay, the clusters get a
//! separate server while the same attack runs against another: the last column, for cells with long waits of the clusters.

use std::{env, time::Instant};

use tests::{
    depth::number,
    table::{head, quantile, row},
};
use tokio::runtime::Builder;

use crate::{
    cells::{self, Attack, Cell},
    neighbour::{Neighbour, OFTEN},
    process::{Port, Process},
    run::{self, MEASURED},
    script::Script,
};

/// The default number of clusters beside the malicious one.
const CLUSTERS: u32 = 3;
/// The default number of concurrent agents.
const AGENTS: u64 = 20;
/// The goal for the 99th percentile, in ms. If it is missed, the machine's part of the delay is measured.
const GOAL_MS: f64 = 5.0;

/// The server of the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    ByTheAttacked,
    Elsewhere,
}

/// The waits of the clusters beside an attack.
struct Noticed {
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    memory_mb: u64,
}

#[test]
fn clusters_are_served_beside_a_hostile_one() {
    let asked = number("DECREE_LOAD_CLUSTERS");
    let count = asked.unwrap_or(CLUSTERS);
    let measured = cells::all().into_iter().map(|(_, cell)| cell);
    let measured = measured.filter(|cell| cell.p99_ms.is_some() && cell.proof.is_none());
    let mut measured: Vec<_> = measured.collect();
    if asked.is_none() {
        measured.truncate(1);
    }
    let wanted = env::var("DECREE_HOSTILE_CELL").unwrap_or_default();
    measured.retain(|cell| wanted.split('|').any(|part| cell.name.contains(part)));
    let columns = [
        "hostile",
        "p50 ms",
        "p99 ms",
        "max ms",
        "memory MB",
        "p99 ms elsewhere",
    ];
    head(&format!("{count} clusters beside a hostile one"), &columns);
    let nobody = beside(None, count, Served::ByTheAttacked);
    print("nobody", &nobody, None);
    for cell in &measured {
        let noticed = beside(Some(cell), count, Served::ByTheAttacked);
        let is_missed = noticed.p99_ms > GOAL_MS.max(3.0 * nobody.p99_ms);
        let elsewhere = is_missed.then(|| beside(Some(cell), count, Served::Elsewhere).p99_ms);
        print(&cell.name, &noticed, elsewhere);
    }
}

#[test]
fn agents_that_come_at_once_are_all_served() {
    let agents = number("DECREE_LOAD_AGENTS").unwrap_or(AGENTS);
    let room = [
        "--sessions-max",
        "--pending-sessions-max",
        "--connections-max",
    ];
    let room = room.map(|flag| format!("{flag}={}", agents + 64));
    // The deadline is so long that a slow machine can open all sessions.
    let others = ["--peer-share=100", "--hello-deadline=300s"].map(str::to_owned);
    let flags = [&room[..], &others].concat();
    let process = Process::start(&flags);
    let script = Script::listing(agents, 10, 100);
    let runtime = Builder::new_current_thread().enable_all().build();
    let start = Instant::now();
    let served = script.run(process.address(Port::Grpc));
    let seen = runtime.expect("a runtime").block_on(served);
    let took = start.elapsed();
    assert!(seen.ends.iter().eq(["proved"]), "{:?}", seen.ends);
    let columns = ["agents", "all served after s", "memory MB"];
    head("agents that come at once", &columns);
    row(&[
        agents.to_string(),
        format!("{:.2}", took.as_secs_f64()),
        process.memory_mb().to_string(),
    ]);
    process.stop().expect("it ends in order");
}

/// Runs a cell beside `count` clusters; without a cell, for the time of a measurement.
fn beside(cell: Option<&Cell>, count: u32, served: Served) -> Noticed {
    let flags = cell.map(|cell| cell.flags.clone()).unwrap_or_default();
    let process = Process::start(&flags);
    let other = (served == Served::Elsewhere).then(|| Process::start(&[]));
    let serving = other.as_ref().unwrap_or(&process);
    let neighbours = (0..count).map(|number| {
        let started = Neighbour::start(
            serving.address(Port::Grpc),
            number,
            serving.id(),
            OFTEN,
            &[],
        );
        started.expect("it is served")
    });
    let neighbours: Vec<_> = neighbours.collect();
    let seen = cell.map(|cell| run::attack(cell, &process));
    let latencies = neighbours.into_iter().flat_map(|neighbour| {
        let served = neighbour.finish(MEASURED);
        served.expect("it is served to the end").ms
    });
    let mut latencies: Vec<_> = latencies.collect();
    latencies.sort_by(f64::total_cmp);
    let memory_mb = process.memory_mb();
    process.stop().expect("it ends in order");
    if let Some(other) = other {
        other.stop().expect("it ends in order");
    }
    drop(seen);
    Noticed {
        p50_ms: quantile(&latencies, 0.5),
        p99_ms: quantile(&latencies, 0.99),
        max_ms: latencies.last().copied().unwrap_or(f64::NAN),
        memory_mb,
    }
}

fn print(name: &str, noticed: &Noticed, elsewhere_ms: Option<f64>) {
    let Noticed {
        p50_ms,
        p99_ms,
        max_ms,
        memory_mb,
    } = noticed;
    let figure = |figure: &f64| format!("{figure:.1}");
    row(&[
        name.to_owned(),
        figure(p50_ms),
        figure(p99_ms),
        figure(max_ms),
        memory_mb.to_string(),
        elsewhere_ms.as_ref().map_or_else(String::new, figure),
    ]);
}

#[test]
fn every_kind_of_attack_is_among_the_cells() {
    let cells = cells::all();
    let attacks = || cells.iter().flat_map(|(_, cell)| &cell.attacks);
    let has = |is: fn(&Attack) -> bool| attacks().any(is);
    assert!(has(|it| matches!(it, Attack::Session(_))));
    assert!(has(|it| matches!(it, Attack::Calls(_))));
    assert!(has(|it| matches!(it, Attack::Sockets(_))));
    assert!(has(|it| matches!(it, Attack::Http2(_))));
}
