//! The time from the event of a lost pod to the batch that replaces it, at a steady rate.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use decree_api::v1::{self, batch::Action, event::Event, reconcile_response::Frame as Answer};
use tests::table::{head, quantile, quantile_of, row};
use tokio::{runtime::Runtime, sync::mpsc, task::yield_now};

use crate::{
    cluster::{self, Cluster},
    host::{Bare, Host},
    link::{Frames, Link},
};

const REPLICA_SETS: usize = 1_000;
const PODS: i32 = 10;
/// The duration of a round. Its first second does not count, because the server still processes the list.
const SECONDS: u32 = 4;
/// The figures are medians of rounds, because a round during a pause of the machine says nothing.
const ROUNDS: usize = 7;
const RATES: [u32; 3] = [1_000, 5_000, 10_000];

/// The pods of a ReplicaSet, and the times of the losses without an answer.
struct Waiting {
    pods: VecDeque<(String, String)>,
    told: VecDeque<Instant>,
}

pub(crate) fn run(runtime: &Runtime) {
    let columns = [
        "events/s",
        "server",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "processor of the server",
    ];
    head("Lost pod in, batch out", &columns);
    for rate in RATES {
        let (mut bare, mut decree) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.push(runtime.block_on(round(rate, Host::bare(Bare::Answer))));
            decree.push(runtime.block_on(round(rate, Host::decree())));
        }
        print(rate, "bare stream", &bare);
        print(rate, "decree", &decree);
    }
}

/// Prints the medians of the rounds.
fn print(rate: u32, name: &str, rounds: &[[f64; 4]]) {
    let figure = |column: usize| {
        let mut values: Vec<_> = rounds.iter().map(|round| round[column]).collect();
        format!("{:.0}", quantile_of(&mut values, 0.5))
    };
    row(&[
        rate.to_string(),
        name.to_owned(),
        figure(0),
        figure(1),
        figure(2),
        format!("{} %", figure(3)),
    ]);
}

/// The quantiles 0.5, 0.99 and 0.999 in microseconds, and the server's share of one core, in percent.
async fn round(rate: u32, host: Host) -> [f64; 4] {
    let (mut latencies, busy) = measure(rate, host).await;
    latencies.sort_by(f64::total_cmp);
    let at = |share| quantile(&latencies, share);
    [at(0.5), at(0.99), at(0.999), busy * 100.0]
}

/// The latencies in microseconds, and the server's share of one core.
async fn measure(rate: u32, host: Host) -> (Vec<f64>, f64) {
    let sets: Vec<_> = (0..REPLICA_SETS)
        .map(|at| cluster::replica_set(&format!("set-{at}"), PODS))
        .collect();
    let pods: Vec<_> = sets.iter().flat_map(pods_of).collect();
    let link = Link::open(host.address, &sets, &pods).await;
    let mut world = Cluster::new(&sets);
    let mut waiting: Vec<_> = sets.iter().map(Waiting::of).collect();
    let (frames, mut answers) = link.split();
    let (due, mut dues) = mpsc::channel(1024);
    let pacer = tokio::spawn(pace(rate, due));
    let events = (rate * SECONDS) as usize;
    let mut latencies = Vec::with_capacity(events);
    let (start, busy) = (Instant::now(), host.processor_time());
    while latencies.len() < events {
        tokio::select! {
            Some((number, at)) = dues.recv() => {
                tell_loss(&mut waiting[number % REPLICA_SETS], &mut world, at, &frames);
            }
            answer = answers.message() => {
                let answer = answer.expect("the session lives").expect("the stream is open");
                if let Some(Answer::Batches(batches)) = answer.frame {
                    for batch in batches.batches {
                        handle(batch, &mut waiting, &mut world, &frames, &mut latencies);
                    }
                }
            }
        }
    }
    let took = start.elapsed();
    latencies.drain(..rate as usize);
    pacer.await.expect("it did not panic");
    let spent = busy.and_then(|before| Some(host.processor_time()? - before));
    let share = spent.map_or(f64::NAN, |spent| spent.as_secs_f64() / took.as_secs_f64());
    (latencies, share)
}

/// Sends the time of each event when it is due, and spins between events: a timer is too coarse.
async fn pace(rate: u32, due: mpsc::Sender<(usize, Instant)>) {
    let start = Instant::now();
    for number in 0..(rate * SECONDS) as usize {
        let at = start + Duration::from_secs(1) / rate * u32::try_from(number).expect("few");
        while Instant::now() < at {
            yield_now().await;
        }
        // The latency starts at the due time, so a late event counts as late.
        if due.send((number, at)).await.is_err() {
            return;
        }
    }
}

fn tell_loss(set: &mut Waiting, world: &mut Cluster, at: Instant, frames: &Frames) {
    let (name, uid) = set.pods.pop_front().expect("ten pods outlast the wait");
    set.told.push_back(at);
    let deleted = Event::Deleted(v1::Deleted {
        kind: v1::Kind::Pod.into(),
        object: Some(v1::ObjectRef {
            namespace: "default".to_owned(),
            name,
            uid,
        }),
        resource_version: world.version().to_string(),
    });
    frames.send(cluster::events([deleted]));
}

fn handle(
    batch: v1::Batch,
    waiting: &mut [Waiting],
    world: &mut Cluster,
    frames: &Frames,
    latencies: &mut Vec<f64>,
) {
    if let Some(Action::Create(create)) = &batch.action {
        let set = &batch.replica_set.as_ref().expect("named").name;
        let number: usize = set["set-".len()..].parse().expect("it was named here");
        let set = &mut waiting[number];
        let answered = set.told.drain(..create.names.len().min(set.told.len()));
        latencies.extend(answered.map(|told| told.elapsed().as_secs_f64() * 1e6));
        let pods = create
            .names
            .iter()
            .map(|name| (name.clone(), cluster::uid(name)));
        set.pods.extend(pods);
    }
    let followed = world.follow(batch);
    frames.send(followed.outcomes);
}

fn pods_of(set: &v1::ReplicaSet) -> Vec<v1::Pod> {
    let pods = (0..PODS).map(|at| cluster::pod(&format!("{}-{at}", set.name), &set.name, 50));
    pods.collect()
}

impl Waiting {
    fn of(set: &v1::ReplicaSet) -> Self {
        let pods = pods_of(set).into_iter().map(|pod| (pod.name, pod.uid));
        Self {
            pods: pods.collect(),
            told: VecDeque::new(),
        }
    }
}
