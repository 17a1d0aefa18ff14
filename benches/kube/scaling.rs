//! From no pods to many, and back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::real::Patch;
use tokio::time;

use crate::{
    bare,
    contender::{Arena, Contender},
    head, meter,
    plot::{self, Bar},
    row,
};

/// How many ReplicaSets there are, and of how many pods each.
pub(crate) type Shape = (usize, usize);

const SHAPES: [Shape; 4] = [(1, 1_000), (10, 500), (20, 1_000), (100, 500)];
/// How often the number of pods is looked at. A look costs the API server a count.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(600);
/// What bare creates are measured with; more would not change the rate.
const BARE_PODS: usize = 5_000;

/// What one way cost.
struct Cost {
    seconds: f64,
    processor: f64,
}

/// Reads a shape as `20x1000`.
pub(crate) fn shape(word: &str) -> Option<Shape> {
    let (sets, pods) = word.split_once('x')?;
    Some((sets.parse().ok()?, pods.parse().ok()?))
}

/// Prints the table, and draws it.
pub(crate) async fn run(shapes: &[Shape]) {
    let shapes = if shapes.is_empty() { &SHAPES } else { shapes };
    let columns = [
        "ReplicaSets × pods",
        "controller",
        "up s",
        "pods/s",
        "processor s",
        "down s",
        "processor s",
        "peak MB",
    ];
    head("0 → N → 0 pods", &columns);
    let mut bars = Vec::new();
    for &(sets, pods) in shapes {
        for contender in Contender::BOTH {
            let arena = contender.start().await;
            let up = scale(&arena, sets, pods, true).await;
            let down = scale(&arena, sets, pods, false).await;
            let peak = meter::peak_megabytes(&arena.pids);
            let shape = format!("{sets} × {pods}");
            let total = (sets * pods) as f64;
            let figure = |value: f64| format!("{value:.2}");
            row(&[
                shape.clone(),
                contender.name().to_owned(),
                figure(up.seconds),
                format!("{:.0}", total / up.seconds),
                figure(up.processor),
                figure(down.seconds),
                figure(down.processor),
                format!("{peak:.0}"),
            ]);
            bars.push(Bar {
                group: shape,
                contender,
                figures: [
                    up.seconds,
                    down.seconds,
                    up.processor + down.processor,
                    peak,
                ],
            });
        }
    }
    let rate = bare::creates_a_second(BARE_PODS).await;
    row(&[
        format!("1 × {BARE_PODS}"),
        "creates alone".to_owned(),
        format!("{:.2}", BARE_PODS as f64 / rate),
        format!("{rate:.0}"),
    ]);
    plot::write(&bars);
}

async fn scale(arena: &Arena, sets: usize, pods: usize, up: bool) -> Cost {
    let before = meter::processor_time(&arena.pids);
    let start = Instant::now();
    for at in 0..sets {
        let name = format!("set-{at}");
        let done = if up {
            let path = arena.namespace.replica_set("");
            arena.api().create(&path, &replica_set(&name, pods)).await
        } else {
            let path = arena.namespace.replica_set(&name);
            let patch = json!({"spec": {"replicas": 0}});
            arena.api().patch(&path, Patch::Merge, &patch).await
        };
        done.expect("the API server takes it");
    }
    let wanted = if up { sets * pods } else { 0 };
    until_there_are(arena, wanted).await;
    let seconds = start.elapsed().as_secs_f64();
    let spent = meter::processor_time(&arena.pids) - before;
    Cost {
        seconds,
        processor: spent.as_secs_f64(),
    }
}

pub(crate) async fn until_there_are(arena: &Arena, wanted: usize) {
    let first = format!("{}?limit=1", arena.namespace.pod(""));
    let until = Instant::now() + PATIENCE;
    let mut looks = time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        let there = arena
            .api()
            .get(&first)
            .await
            .ok()
            .and_then(|list| count(&list));
        if there == Some(wanted) {
            return;
        }
        assert!(Instant::now() < until, "{there:?} pods of {wanted}");
    }
}

/// Returns how many objects there are, of which the list shows the first.
fn count(list: &Value) -> Option<usize> {
    let shown = list["items"].as_array()?.len();
    let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    usize::try_from(more).ok().map(|more| more + shown)
}

pub(crate) fn replica_set(name: &str, replicas: usize) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
        },
    })
}

pub(crate) fn pod_spec() -> Value {
    json!({"containers": [{
        "name": "web",
        "image": "registry.invalid/web:1",
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "LEVEL", "value": "info"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }]})
}
