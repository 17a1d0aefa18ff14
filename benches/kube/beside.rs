//! Many small ReplicaSets scale while a large one scales: the duration for a small one, alone and beside the large one.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use serde_json::json;
use tests::{
    real::Patch,
    table::{head, quantile_of, row},
};
use tokio::time::timeout;

use crate::{
    contender::{Arena, Contender, Guest},
    objects::replica_set,
    scaling::until_there_are,
    watching,
};

/// The number of rounds for each contender.
const ROUNDS: usize = 3;
const SMALL: usize = 500;
const LARGE: usize = 5_000;
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) async fn run(guest: Guest) {
    let columns = ["controller", "", "p50 ms", "p99 ms"];
    head(
        &format!("{SMALL} ReplicaSets scale from 1 to 2, one after the other"),
        &columns,
    );
    let mut times = Contender::BOTH.map(|contender| (contender, [Vec::new(), Vec::new()]));
    for _ in 0..ROUNDS {
        for (contender, [alone, beside]) in &mut times {
            let arena = contender.start(guest).await;
            let sets = arena.namespace.replica_set("");
            for at in 0..SMALL {
                let set = replica_set(&format!("small-{at}"), 1);
                arena.api().create(&sets, &set).await.expect("it is valid");
            }
            until_there_are(&arena, SMALL).await;
            alone.extend(measure(&arena, 2).await);
            let large = replica_set("large", LARGE);
            let created = arena.api().create(&sets, &large).await;
            created.expect("it is valid");
            beside.extend(measure(&arena, 3).await);
        }
    }
    for (contender, [alone, beside]) in times {
        print(contender, "alone", alone);
        print(contender, "beside one that scales from 0 to 5,000", beside);
    }
}

fn print(contender: Contender, what: &str, mut times: Vec<f64>) {
    let mut at = |share| format!("{:.1}", quantile_of(&mut times, share));
    let (p50, p99) = (at(0.5), at(0.99));
    row(&[contender.name().to_owned(), what.to_owned(), p50, p99]);
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
