//! A pod is deleted: until its replacement is seen on a watch.

use std::time::{Duration, Instant};

use serde_json::json;
use tests::table::{head, quantile_of, row};
use tokio::time::timeout;

use crate::{
    contender::{Contender, Guest},
    objects::replica_set,
    scaling::until_there_are,
    watching,
};

const SIZES: [usize; 2] = [10, 2_000];
/// Everyone has so many turns, with so many losses in each.
const ROUNDS: usize = 4;
const LOSSES: usize = 250;
const PATIENCE: Duration = Duration::from_secs(60);

/// Prints the table.
pub(crate) async fn run(guest: Guest) {
    let columns = ["replicas", "controller", "p50 ms", "p99 ms"];
    head("Pod lost → replacement on a watch", &columns);
    for size in SIZES {
        let mut times = Contender::BOTH.map(|contender| (contender, Vec::new()));
        for _ in 0..ROUNDS {
            for (contender, times) in &mut times {
                times.extend(measure(*contender, size, guest).await);
            }
        }
        for (contender, mut times) in times {
            let mut at = |share| format!("{:.2}", quantile_of(&mut times, share));
            let (p50, p99) = (at(0.5), at(0.99));
            row(&[size.to_string(), contender.name().to_owned(), p50, p99]);
        }
    }
}

async fn measure(contender: Contender, size: usize, guest: Guest) -> Vec<f64> {
    let arena = contender.start(guest).await;
    let path = arena.namespace.replica_set("");
    let created = arena.api().create(&path, &replica_set("web", size)).await;
    created.expect("it is valid");
    until_there_are(&arena, size).await;
    let mut events = watching::pods(arena.api(), &arena.namespace.pod(""), "app%3Dweb").await;
    let mut pods: Vec<_> = arena.namespace.pods().await.expect("they can be listed");
    let mut times = Vec::with_capacity(LOSSES);
    while times.len() < LOSSES {
        let pod = pods.pop().expect("each is replaced");
        let name = pod["metadata"]["name"].as_str().expect("it has one");
        // The time of the deletion itself is the API server's; the replacement counts from when it is done.
        let deleted = arena
            .api()
            .delete(&arena.namespace.pod(name), &json!({}))
            .await;
        let start = Instant::now();
        deleted.expect("it is there");
        loop {
            let event = timeout(PATIENCE, events.recv()).await;
            let mut event = event.expect("it is replaced").expect("it is watched");
            if event["type"] == "ADDED" {
                times.push(start.elapsed().as_secs_f64() * 1e3);
                pods.insert(0, event["object"].take());
                break;
            }
        }
    }
    times
}
