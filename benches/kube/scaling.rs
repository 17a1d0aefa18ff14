//! From no pods to many, and back.

use std::{
    env,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tests::{
    real::{Api, Patch},
    table::{head, quantile_of, row},
    usage::{Used, grown},
};
use tokio::time;

use crate::{
    bare,
    contender::{Arena, Contender, Guest},
    meter::{self, Cost},
    objects::replica_set,
    requests::Writes,
};

/// The number of ReplicaSets, and of pods of each.
pub(crate) type Shape = (usize, usize);

const SHAPES: [Shape; 4] = [(1, 1_000), (10, 500), (20, 1_000), (100, 500)];
/// The minimum time between two looks at the number of pods, which is the precision of the end.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// The number of rounds, of which the table has the medians. In each round, every contender has a turn, and every other round
/// reverses the order: the speed of the machine varies, and the order of the contenders matters.
const ROUNDS: usize = 4;
/// The variable that sets the number of rounds.
const ROUNDS_VARIABLE: &str = "DECREE_BENCH_ROUNDS";

/// The results of all contenders, measured shortly one after the other.
struct Round {
    bare: Cost,
    /// Of each contender.
    there_and_back: [ThereAndBack; 2],
}

struct ThereAndBack {
    up: Cost,
    down: Cost,
    used: Used,
    /// The requests to the API server on the way up, and on the way down.
    writes: [Writes; 2],
}

/// Reads a shape such as `20x1000`.
pub(crate) fn shape(word: &str) -> Option<Shape> {
    let (sets, pods) = word.split_once('x')?;
    Some((sets.parse().ok()?, pods.parse().ok()?))
}

/// Prints the table.
///
/// # Panics
/// If Decree costs more than [`Contender::Before`].
pub(crate) async fn run(shapes: &[Shape], guest: Guest, contenders: [Contender; 2]) {
    let shapes = if shapes.is_empty() { &SHAPES } else { shapes };
    let wanted = env::var(ROUNDS_VARIABLE).ok();
    let wanted = wanted.map_or(ROUNDS, |text| text.parse().expect("a number of rounds"));
    let columns = [
        "ReplicaSets × pods",
        "controller",
        "up s",
        "relative to creates alone",
        "CPU s",
        "the cluster's",
        "down s",
        "CPU s",
        "the cluster's",
        "peak MB",
    ];
    head("0 → N → 0 pods", &columns);
    let (mut asked, mut more) = (Vec::new(), Vec::new());
    for &shape in shapes {
        let mut rounds = Vec::new();
        for at in 0..wanted {
            rounds.push(round(shape, guest, contenders, at % 2 == 1).await);
        }
        print(shape, contenders, &rounds);
        let used = |at: usize| rounds.iter().map(|it| it.there_and_back[at].used).collect();
        let [first, second]: [Vec<_>; 2] = [0, 1].map(used);
        more.extend(grown(&first, &second));
        asked.extend(rounds.pop().map(|last| (shape, last.there_and_back)));
    }
    print_writes(contenders, &asked);
    let is_compared = contenders[0] == Contender::Before;
    assert!(!is_compared || more.is_empty(), "above 15 % more: {more:?}");
}

/// Prints the requests to the API servers in the last round of each shape.
fn print_writes(contenders: [Contender; 2], asked: &[(Shape, [ThereAndBack; 2])]) {
    let columns = [
        "ReplicaSets × pods",
        "controller",
        "way",
        "writes of pods",
        "deletions",
        "statuses",
        "events",
        "of these not done",
    ];
    head("Writes asked of the API server", &columns);
    for ((sets, pods), there_and_back) in asked {
        for (contender, of) in contenders.into_iter().zip(there_and_back) {
            for (way, writes) in ["up", "down"].into_iter().zip(of.writes) {
                let mut cells = vec![format!("{sets} × {pods}"), contender.name().to_owned()];
                cells.push(way.to_owned());
                let counts = [writes.pods, writes.deletions, writes.statuses];
                let counts = counts.into_iter().chain([writes.events, writes.failed]);
                cells.extend(counts.map(|count| count.to_string()));
                row(&cells);
            }
        }
    }
}

/// Measures all contenders, in their order or in reverse order.
async fn round(
    shape: Shape,
    guest: Guest,
    [first, second]: [Contender; 2],
    reversed: bool,
) -> Round {
    let bare = bare::creates(shape.0 * shape.1).await;
    let there_and_back = if reversed {
        let last = there_and_back(second, shape, guest).await;
        [there_and_back(first, shape, guest).await, last]
    } else {
        let first = there_and_back(first, shape, guest).await;
        [first, there_and_back(second, shape, guest).await]
    };
    Round {
        bare,
        there_and_back,
    }
}

async fn there_and_back(contender: Contender, (sets, pods): Shape, guest: Guest) -> ThereAndBack {
    let arena = contender.start(guest).await;
    let at_first = Writes::read(arena.api()).await;
    let up = up(&arena, sets, pods).await;
    let between = Writes::read(arena.api()).await;
    let down = scale(&arena, sets, pods, false).await;
    let at_last = Writes::read(arena.api()).await;
    let used = Used {
        processor_s: up.processor + down.processor,
        peak_mb: meter::peak_megabytes(&arena.pids),
    };
    ThereAndBack {
        up,
        down,
        used,
        writes: [between - at_first, at_last - between],
    }
}

fn print((sets, pods): Shape, contenders: [Contender; 2], rounds: &[Round]) {
    let shape = format!("{sets} × {pods}");
    let figure = |of: &dyn Fn(&Round) -> f64| format!("{:.2}", median(rounds, of));
    row(&[
        shape.clone(),
        "creates alone".to_owned(),
        figure(&|round| round.bare.seconds),
        "100 %".to_owned(),
        String::new(),
        figure(&|round| round.bare.cluster),
    ]);
    for (at, contender) in contenders.into_iter().enumerate() {
        let of_bare = median(rounds, |round| {
            round.bare.seconds / round.there_and_back[at].up.seconds
        });
        let peak = median(rounds, |round| round.there_and_back[at].used.peak_mb);
        row(&[
            shape.clone(),
            contender.name().to_owned(),
            figure(&|round| round.there_and_back[at].up.seconds),
            format!("{:.0} %", of_bare * 100.0),
            figure(&|round| round.there_and_back[at].up.processor),
            figure(&|round| round.there_and_back[at].up.cluster),
            figure(&|round| round.there_and_back[at].down.seconds),
            figure(&|round| round.there_and_back[at].down.processor),
            figure(&|round| round.there_and_back[at].down.cluster),
            format!("{peak:.0}"),
        ]);
    }
}

fn median<T>(rounds: &[T], of: impl Fn(&T) -> f64) -> f64 {
    quantile_of(&mut rounds.iter().map(of).collect::<Vec<_>>(), 0.5)
}

/// Creates ReplicaSets, and waits until all pods exist.
pub(crate) async fn up(arena: &Arena, sets: usize, pods: usize) -> Cost {
    scale(arena, sets, pods, true).await
}

async fn scale(arena: &Arena, sets: usize, pods: usize, up: bool) -> Cost {
    let cluster = arena.cluster();
    let spent = || [&arena.pids, &cluster].map(|pids| meter::processor_time(pids));
    let before = spent();
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
    let after = spent();
    Cost {
        seconds,
        processor: after[0] - before[0],
        cluster: after[1] - before[1],
    }
}

/// Waits until the namespace of an arena has `wanted` pods.
pub(crate) async fn until_there_are(arena: &Arena, wanted: usize) {
    let first = format!("{}?limit=1", arena.namespace.pod(""));
    until_there_are_at(arena.api(), &first, wanted).await;
}

/// Waits until a list has `wanted` objects; `first` is the path of a list of the first object. For each look, the API server
/// walks over all objects. So the next look is when a quarter of the missing objects has come at the current rate, but never
/// later than twice the elapsed time: some thirty looks in all.
pub(crate) async fn until_there_are_at(api: &Api, first: &str, wanted: usize) {
    let start = Instant::now();
    let mut at_start = None;
    loop {
        let list = api.get(first).await.ok();
        let there = list.and_then(|list| count(&list));
        if there == Some(wanted) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{there:?} pods of {wanted}");
        let there = there.unwrap_or(wanted);
        let missing = wanted.abs_diff(there);
        let done = wanted
            .abs_diff(*at_start.get_or_insert(there))
            .saturating_sub(missing);
        let elapsed = start.elapsed();
        let quarter = elapsed.mul_f64(missing as f64 / done.max(1) as f64 / 4.0);
        time::sleep(quarter.min(elapsed).max(LOOK_EVERY)).await;
    }
}

/// The number of all objects of a list that contains only the first.
fn count(list: &Value) -> Option<usize> {
    let shown = list["items"].as_array()?.len();
    let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    usize::try_from(more).ok().map(|more| more + shown)
}
