//! The throughput of one core of a server: changes without an action, and created and deleted pods.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use decree_api::v1;
use tests::table::{head, quantile_of, row};
use tokio::runtime::Runtime;

use crate::{
    cluster::{self, Cluster},
    host::{self, Bare, Host},
    link::{Link, Step},
};

const ROUNDS: usize = 5;
const REPLICA_SETS: usize = 100;
const PODS: i32 = 500;
/// The number of changes, and the number of changes in a frame.
const EVENTS: usize = 200_000;
const EVENTS_PER_FRAME: usize = 500;

/// The duration of a run.
pub(crate) struct Took {
    wall: Duration,
    pub(crate) processor: Option<Duration>,
}

/// Starts a measurement.
struct Clock<'host>(&'host Host, Instant, Option<Duration>);

/// The log of a session, and the index of the first measured step.
pub(crate) struct Recorded {
    log: Arc<Vec<Step>>,
    from: usize,
    /// How many frames the server may have been ahead of its client.
    ahead: usize,
    /// The number of counted units, such as changes.
    pub(crate) units: usize,
}

pub(crate) fn run(runtime: &Runtime) {
    let columns = [
        "server",
        "a second",
        "a second of the server's core",
        "of the bare stream",
    ];
    head("Changes of pods, 500 a frame, that need nothing", &columns);
    compare(runtime, |host, recorded| {
        runtime.block_on(steady(host, recorded))
    });
    head(
        "Pods created and deleted, with outcomes and watch events, 500 a batch",
        &columns,
    );
    compare(runtime, |host, recorded| {
        runtime.block_on(up_and_down(host, recorded))
    });
}

fn compare(runtime: &Runtime, measure: impl Fn(&Host, bool) -> (Took, Recorded)) {
    let (_, recorded) = measure(&Host::decree(), true);
    let (mut bare, mut decree) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(runtime.block_on(replay(&recorded)));
        decree.push(measure(&Host::decree(), false).0);
    }
    let bare = rates(recorded.units, &bare);
    let decree = rates(recorded.units, &decree);
    print("bare stream", bare, bare);
    print("decree", decree, bare);
}

fn print(name: &str, [wall, processor]: [f64; 2], bare: [f64; 2]) {
    let shares = format!(
        "{:.0} %, {:.0} %",
        wall / bare[0] * 100.0,
        processor / bare[1] * 100.0
    );
    row(&[
        name.to_owned(),
        format!("{wall:.0}"),
        format!("{processor:.0}"),
        shares,
    ]);
}

/// The median rates by wall time and by processor time of the server.
fn rates(units: usize, runs: &[Took]) -> [f64; 2] {
    let rate = |time: Duration| units as f64 / time.as_secs_f64();
    let mut walls: Vec<_> = runs.iter().map(|took| rate(took.wall)).collect();
    let mut processors: Vec<_> = runs
        .iter()
        .map(|took| took.processor.map_or(f64::NAN, rate))
        .collect();
    [
        quantile_of(&mut walls, 0.5),
        quantile_of(&mut processors, 0.5),
    ]
}

/// Sends pod changes that need no action. The answer to a final scale-up shows the end.
async fn steady(host: &Host, recorded: bool) -> (Took, Recorded) {
    let sets = sets(PODS);
    let pods = cluster::pods(&sets, PODS);
    let mut link = open(host, &sets, &pods, recorded).await;
    let mut world = Cluster::new(&sets);
    let changes = world.changes(&pods, EVENTS);
    let mut frames: Vec<_> = changes
        .chunks(EVENTS_PER_FRAME)
        .map(|changes| cluster::events(changes.to_vec()))
        .collect();
    frames.push(cluster::events([world.scale("set-0", PODS + 1)]));
    let from = link.written();
    let clock = Clock::start(host);
    for frame in frames {
        link.send(frame);
    }
    let batches = link.batches().await;
    let took = clock.stop();
    assert_eq!(batches.len(), 1, "only the last change needs something");
    (took, Recorded::new(link, from, 0, EVENTS))
}

/// Scales all ReplicaSets up and down again.
async fn up_and_down(host: &Host, recorded: bool) -> (Took, Recorded) {
    let sets = sets(0);
    let mut link = open(host, &sets, &[], recorded).await;
    let mut world = Cluster::new(&sets);
    let from = link.written();
    let clock = Clock::start(host);
    let mut done = 0;
    for replicas in [PODS, 0] {
        let scaled: Vec<_> = sets
            .iter()
            .map(|set| world.scale(&set.name, replicas))
            .collect();
        link.send(cluster::events(scaled));
        while !world.is_settled(replicas) {
            for batch in link.batches().await {
                let followed = world.follow(batch);
                done += followed.pods;
                link.send(followed.outcomes);
                if let Some(events) = followed.events {
                    link.send(events);
                }
            }
        }
    }
    let took = clock.stop();
    assert_eq!(done, 2 * REPLICA_SETS * usize::try_from(PODS).expect("few"));
    (took, Recorded::new(link, from, host::QUEUE, done))
}

/// Repeats the same steps with the bare service.
async fn replay(recorded: &Recorded) -> Took {
    let host = Host::bare(Bare::Replay {
        log: Arc::clone(&recorded.log),
        ahead: recorded.ahead,
    });
    let mut link = Link::connect(host.address).await;
    let steps = Vec::clone(&recorded.log);
    let mut clock = Clock::start(&host);
    for (at, step) in steps.into_iter().enumerate() {
        if at == recorded.from {
            clock = Clock::start(&host);
        }
        match step {
            Step::Sent(request) => link.send_as_it_is(request),
            Step::Received(_) => drop(link.next().await),
        }
    }
    clock.stop()
}

async fn open(host: &Host, sets: &[v1::ReplicaSet], pods: &[v1::Pod], recorded: bool) -> Link {
    if recorded {
        Link::open_recorded(host.address, sets, pods).await
    } else {
        Link::open(host.address, sets, pods).await
    }
}

fn sets(replicas: i32) -> Vec<v1::ReplicaSet> {
    let names = (0..REPLICA_SETS).map(|at| format!("set-{at}"));
    names
        .map(|name| cluster::replica_set(&name, replicas))
        .collect()
}

impl<'host> Clock<'host> {
    fn start(host: &'host Host) -> Self {
        Self(host, Instant::now(), host.processor_time())
    }

    fn stop(self) -> Took {
        let Self(host, start, before) = self;
        Took {
            wall: start.elapsed(),
            processor: before.and_then(|before| Some(host.processor_time()? - before)),
        }
    }
}

impl Recorded {
    fn new(link: Link, from: usize, ahead: usize, units: usize) -> Self {
        Self {
            log: Arc::new(link.close()),
            from,
            ahead,
            units,
        }
    }
}
