//! Many small ReplicaSets scale while a large one scales: the duration for a small one, alone and beside the large one.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use serde_json::json;
use tests::{
    real::Patch,
    table::{head, quantile_of, row},
    usage::Used,
};
use tokio::time::timeout;

use crate::{
    contender::{Arena, Contender, Guest},
    meter,
    objects::replica_set,
    scaling::until_there_are,
    watching,
};

/// The number of rounds for each contender.
const ROUNDS: usize = 3;
const SMALL: usize = 500;
const LARGE: usize = 5_000;
const PATIENCE: Duration = Duration::from_secs(120);

/// The results of a contender in all rounds.
#[derive(Default)]
struct Laps {
    times: Vec<f64>,
    used: Vec<Used>,
}

pub(crate) async fn run(guest: Guest) {
    let columns = [
        ["controller", "", "p50 ms", "p99 ms"].as_slice(),
        &meter::COLUMNS,
    ]
    .concat();
    head(
        &format!("{SMALL} ReplicaSets scale from 1 to 2, one after the other"),
        &columns,
    );
    let mut laps = Contender::BOTH.map(|contender| (contender, [Laps::default(), Laps::default()]));
    for _ in 0..ROUNDS {
        for (contender, [alone, beside]) in &mut laps {
            let mut arena = contender.start(guest).await;
            let sets = arena.namespace.replica_set("");
            for at in 0..SMALL {
                let set = replica_set(&format!("small-{at}"), 1);
                arena.api().create(&sets, &set).await.expect("it is valid");
            }
            until_there_are(&arena, SMALL).await;
            arena.lap();
            alone.add(&mut arena, 2).await;
            let large = replica_set("large", LARGE);
            let created = arena.api().create(&sets, &large).await;
            created.expect("it is valid");
            beside.add(&mut arena, 3).await;
        }
    }
    for (contender, [alone, beside]) in laps {
        print(contender, "alone", alone);
        print(contender, "beside one that scales from 0 to 5,000", beside);
    }
}

fn print(contender: Contender, what: &str, mut laps: Laps) {
    let mut cells = vec![contender.name().to_owned(), what.to_owned()];
    let times = [0.5, 0.99].map(|share| quantile_of(&mut laps.times, share));
    cells.extend(times.map(|ms| format!("{ms:.1}")));
    cells.extend(meter::cells(&laps.used));
    row(&cells);
}

impl Laps {
    async fn add(&mut self, arena: &mut Arena, replicas: usize) {
        self.times.extend(measure(arena, replicas).await);
        self.used.push(arena.lap());
    }
}

/// Scales each small ReplicaSet to `replicas`, and returns the time until each pod was seen.
async fn measure(arena: &Arena, replicas: usize) -> Vec<f64> {
    let mut events = watching::pods(arena.api(), &arena.namespace.pod(""), "app%21%3Dlarge").await;
    let mut begun = HashMap::new();
    let mut times = Vec::with_capacity(SMALL);
    let patch = json!({"spec": {"replicas": replicas}});
    for at in 0..SMALL {
        let name = format!("small-{at}");
        let path = arena.namespace.replica_set(&name);
        let patched = arena.api().patch(&path, Patch::Merge, &patch).await;
        patched.expect("it is there");
        begun.insert(name, Instant::now());
        // Takes the events that have arrived, so that the benchmark does not delay them.
        while let Ok(event) = events.try_recv() {
            note(&event, &mut begun, &mut times);
        }
    }
    while times.len() < SMALL {
        let event = timeout(PATIENCE, events.recv()).await;
        let event = event.expect("all are scaled").expect("it is watched");
        note(&event, &mut begun, &mut times);
    }
    times
}

fn note(event: &serde_json::Value, begun: &mut HashMap<String, Instant>, times: &mut Vec<f64>) {
    let app = event["object"]["metadata"]["labels"]["app"].as_str();
    let start = app
        .filter(|_| event["type"] == "ADDED")
        .and_then(|app| begun.remove(app));
    times.extend(start.map(|start| start.elapsed().as_secs_f64() * 1e3));
}
