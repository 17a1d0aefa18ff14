//! The time from the API server's answer to the deletion of a pod until the replacement is seen on a watch.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::{
    table::{head, quantile_of, row},
    usage::Used,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use crate::{
    contender::{Arena, Contender, Guest},
    meter,
    objects::replica_set,
    scaling::until_there_are,
    watching,
};

pub(crate) const SIZES: [usize; 2] = [10, 2_000];
/// The number of starts of each contender: which processes share a processor depends on the start.
const ROUNDS: usize = 2;
/// The number of losses of each contender, unless the command line names one.
const LOSSES: usize = 1_000;
/// The pause between two losses, so that the status writes and events of one do not affect the next.
const REST: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);

/// A ReplicaSet with all its pods, and a watch on them.
pub(crate) struct Subject {
    pub(crate) arena: Arena,
    pods: Vec<Value>,
    events: mpsc::Receiver<Value>,
}

/// The results of a contender in all rounds.
struct Record {
    contender: Contender,
    times: Vec<f64>,
    /// By the controller, including its work between losses.
    used: Vec<Used>,
}

/// Prints the table. The contenders lose pods in turn, so that all of them have the machine at its best and at its worst.
pub(crate) async fn run(guest: Guest, others: &[Contender], losses: Option<usize>) {
    let contenders = [&Contender::BOTH, others].concat();
    let each = losses.unwrap_or(LOSSES).div_ceil(ROUNDS);
    let mut columns = vec!["replicas", "controller", "p50 ms", "p99 ms"];
    columns.extend(["p50 relative", "p99 relative", "CPU ms", "peak MB"]);
    head("Pod lost → replacement on a watch", &columns);
    for size in SIZES {
        let mut records: Vec<_> = contenders.iter().copied().map(Record::new).collect();
        for _ in 0..ROUNDS {
            round(&mut records, size, guest, each).await;
        }
        print(size, records);
    }
}

async fn round(records: &mut [Record], size: usize, guest: Guest, losses: usize) {
    let mut subjects = Vec::new();
    for record in &*records {
        let arena = record.contender.start(guest).await;
        subjects.push(Subject::new(arena, size).await);
    }
    for subject in &mut subjects {
        subject.arena.lap();
    }
    for at in 0..losses {
        // The order of the contenders may matter.
        for place in 0..subjects.len() {
            let turn = (at + place) % subjects.len();
            sleep(REST).await;
            let replaced = subjects[turn].lose_one().await;
            records[turn].times.push(replaced.as_secs_f64() * 1e3);
        }
    }
    for (record, subject) in records.iter_mut().zip(&mut subjects) {
        record.used.push(subject.arena.lap());
    }
}

fn print(size: usize, mut records: Vec<Record>) {
    let first = &mut records[0].times;
    let base = [0.5, 0.99].map(|share| quantile_of(first, share));
    for Record {
        contender,
        mut times,
        used,
    } in records
    {
        let at = [0.5, 0.99].map(|share| quantile_of(&mut times, share));
        let mut cells = vec![size.to_string(), contender.name().to_owned()];
        cells.extend(at.map(|ms| format!("{ms:.2}")));
        cells.extend(
            at.iter()
                .zip(base)
                .map(|(it, base)| format!("{:.2}", it / base)),
        );
        let processor: f64 = used.iter().map(|it| it.processor_s).sum();
        cells.push(format!("{:.2}", processor * 1e3 / times.len() as f64));
        cells.extend(meter::cells(&used).into_iter().skip(1));
        row(&cells);
    }
}

impl Record {
    const fn new(contender: Contender) -> Self {
        Self {
            contender,
            times: Vec::new(),
            used: Vec::new(),
        }
    }
}

impl Subject {
    /// Creates a ReplicaSet, and returns after it has all its pods.
    pub(crate) async fn new(arena: Arena, size: usize) -> Self {
        let path = arena.namespace.replica_set("");
        let created = arena.api().create(&path, &replica_set("web", size)).await;
        created.expect("it is valid");
        until_there_are(&arena, size).await;
        let events = watching::pods(arena.api(), &arena.namespace.pod(""), "app%3Dweb").await;
        let pods = arena.namespace.pods().await.expect("they can be listed");
        Self {
            arena,
            pods,
            events,
        }
    }

    /// Deletes the oldest pod, and returns how long after that its replacement was seen.
    pub(crate) async fn lose_one(&mut self) -> Duration {
        let pod = self.pods.pop().expect("each is replaced");
        let lost = pod["metadata"]["name"].as_str().expect("it has one");
        let path = self.arena.namespace.pod(lost);
        // The deletion itself is the API server's work, so the replacement counts from the end of the deletion.
        let deleted = self.arena.api().delete(&path, &json!({})).await;
        let start = Instant::now();
        deleted.expect("it is there");
        loop {
            let event = timeout(PATIENCE, self.events.recv()).await;
            let mut event = event.expect("it is replaced").expect("it is watched");
            if event["type"] == "ADDED" {
                let took = start.elapsed();
                self.pods.insert(0, event["object"].take());
                return took;
            }
        }
    }
}
