//! The cost of a session in process, from the bytes of a frame to the bytes of the answer. The baseline is prost, which only
//! reads and writes the same messages. The table is in docs/internals/benchmarks.md.
//!
//! Allocations are counted by the allocator and do not vary. `DECREE_ROUNDS` is the number of repetitions of each load; for
//! `valgrind --tool=callgrind --toggle-collect='*Server*serve*'`, 1 is enough.

#[path = "loopback/cluster.rs"]
mod cluster;

use std::{
    alloc::System,
    borrow::Cow,
    env,
    hint::black_box,
    time::{Duration, Instant},
};

use bytes::Bytes;
use decree::v1::{self, reconcile_request::Frame, reconcile_response::Frame as Answer};
use prost::Message;
use server_core::Timestamp;
use server_session::{Config, Now, Session};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tests::table::{head, quantile_of, row};

use self::cluster::Cluster;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const REPLICA_SETS: usize = 100;
const PODS: i32 = 500;
const EVENTS: usize = 200_000;
const EVENTS_PER_FRAME: usize = 500;

/// The cost of one side of a load.
#[derive(Clone, Copy, Default)]
struct Took {
    time: Duration,
    allocations: usize,
}

/// A session, with the cost of its calls.
struct Server {
    session: Session,
    took: Took,
    /// The input and output of each call.
    log: Vec<(Vec<Bytes>, Vec<Bytes>)>,
    sequence: u64,
}

fn main() {
    let columns = ["load", "server", "ns each", "relative", "allocations each"];
    head("A session in process", &columns);
    let rounds = env::var("DECREE_ROUNDS").map_or(5, |rounds| rounds.parse().expect("a number"));
    compare("changes of pods", rounds, changes);
    compare("pods created and deleted", rounds, up_and_down);
}

fn compare(load: &str, rounds: usize, run: impl Fn() -> (usize, Took, Took)) {
    let runs: Vec<_> = (0..rounds).map(|_| run()).collect();
    let (units, _, _) = runs[0];
    let each = |took: Took| took.time.as_nanos() as f64 / units as f64;
    let mut decree: Vec<_> = runs.iter().map(|run| each(run.1)).collect();
    let mut prost: Vec<_> = runs.iter().map(|run| each(run.2)).collect();
    let (decree, prost) = (quantile_of(&mut decree, 0.5), quantile_of(&mut prost, 0.5));
    let (_, with, without) = runs[0];
    for (server, time, took) in [("prost", prost, without), ("session", decree, with)] {
        row(&[
            load.to_owned(),
            server.to_owned(),
            format!("{time:.0}"),
            format!("{:.0} %", time / prost * 100.0),
            format!("{:.2}", took.allocations as f64 / units as f64),
        ]);
    }
}

/// Sends pod changes that need no action.
fn changes() -> (usize, Took, Took) {
    let sets = sets(PODS);
    let pods = cluster::pods(&sets, PODS);
    let mut server = Server::open(&sets, &pods);
    let mut world = Cluster::new(&sets);
    let changes = world.changes(&pods, EVENTS);
    for changes in changes.chunks(EVENTS_PER_FRAME) {
        let answers = server.give(vec![cluster::events(changes.to_vec())]);
        assert!(answers.is_empty(), "nothing is needed");
    }
    (EVENTS, server.took, without(&server.log))
}

/// Scales all ReplicaSets up and down again.
fn up_and_down() -> (usize, Took, Took) {
    let sets = sets(0);
    let mut server = Server::open(&sets, &[]);
    let mut world = Cluster::new(&sets);
    let mut done = 0;
    for replicas in [PODS, 0] {
        let scaled: Vec<_> = sets
            .iter()
            .map(|set| world.scale(&set.name, replicas))
            .collect();
        let mut answers = server.give(vec![cluster::events(scaled)]);
        while !world.is_settled(replicas) {
            let mut frames = Vec::new();
            for batch in answers.drain(..) {
                let followed = world.follow(batch);
                done += followed.pods;
                frames.push(followed.outcomes);
                frames.extend(followed.events);
            }
            answers = server.give(frames);
        }
    }
    assert_eq!(done, 2 * REPLICA_SETS * usize::try_from(PODS).expect("few"));
    (done, server.took, without(&server.log))
}

/// The cost of prost for the same messages.
fn without(log: &[(Vec<Bytes>, Vec<Bytes>)]) -> Took {
    let mut took = Took::default();
    for (came, left) in log {
        let left: Vec<_> = left
            .iter()
            .map(|bytes| v1::ReconcileResponse::decode(&**bytes).expect("it was written"))
            .collect();
        let (came, mut written) = (came.clone(), Vec::new());
        let (region, begun) = (Region::new(ALLOCATOR), Instant::now());
        for bytes in came {
            drop(black_box(v1::ReconcileRequest::decode(bytes)));
        }
        for frame in left {
            written.push(frame.encode_to_vec());
        }
        took.add(&region, begun);
    }
    took
}

fn sets(replicas: i32) -> Vec<v1::ReplicaSet> {
    let names = (0..REPLICA_SETS).map(|at| format!("set-{at}"));
    names
        .map(|name| cluster::replica_set(&name, replicas))
        .collect()
}

impl Server {
    fn open(sets: &[v1::ReplicaSet], pods: &[v1::Pod]) -> Self {
        let hello = Frame::Hello(v1::Hello {
            protocol_min: 1,
            protocol_max: 1,
            agent_instance: "bench".to_owned(),
            cluster_uid: "bench".to_owned(),
            ..v1::Hello::default()
        });
        let hello = v1::ReconcileRequest {
            sequence: 1,
            frame: Some(hello),
        };
        let id = "0123456789abcdef0123456789abcdef".to_owned();
        let session = Session::open(now(), config(), id, hello).expect("a hello");
        let mut server = Self {
            session,
            took: Took::default(),
            log: Vec::new(),
            sequence: 1,
        };
        for (kind, pods, sets) in [
            (v1::Kind::ReplicaSet, &[][..], sets),
            (v1::Kind::Pod, pods, &[][..]),
        ] {
            server.list(kind.into(), pods, sets);
        }
        (server.took, server.log) = (Took::default(), Vec::new());
        server
    }

    fn list(&mut self, kind: i32, pods: &[v1::Pod], sets: &[v1::ReplicaSet]) {
        let mut frames = vec![Frame::SnapshotBegin(v1::SnapshotBegin { kind })];
        frames.extend(pods.chunks(500).map(|pods| objects(pods, &[])));
        frames.extend(sets.chunks(500).map(|sets| objects(&[], sets)));
        frames.push(Frame::SnapshotEnd(v1::SnapshotEnd {
            kind,
            resource_version: "100".to_owned(),
            count: i64::try_from(pods.len() + sets.len()).expect("few"),
        }));
        self.give(frames);
    }

    /// Gives frames to the session, and returns the batches in its answer.
    fn give(&mut self, frames: Vec<Frame>) -> Vec<v1::Batch> {
        let came: Vec<_> = frames
            .into_iter()
            .map(|frame| {
                self.sequence += 1;
                let frame = Some(frame);
                let sequence = self.sequence;
                Bytes::from(v1::ReconcileRequest { sequence, frame }.encode_to_vec())
            })
            .collect();
        let given = came.clone();
        let (region, begun) = (Region::new(ALLOCATOR), Instant::now());
        let left = self.serve(given);
        self.took.add(&region, begun);
        let left: Vec<_> = left.into_iter().map(Bytes::from).collect();
        let batches = left.iter().flat_map(batches).collect();
        self.log.push((came, left));
        batches
    }

    #[inline(never)]
    fn serve(&mut self, frames: Vec<Bytes>) -> Vec<Vec<u8>> {
        let mut left = Vec::new();
        for frame in frames {
            self.session.handle_frame(now(), frame);
        }
        loop {
            let answer = self.session.poll_frame(now());
            while self.session.poll_report().is_some() {}
            match answer {
                Some(answer) => left.push(answer.encode_to_vec()),
                None => break,
            }
        }
        left
    }
}

fn batches(bytes: &Bytes) -> Vec<v1::Batch> {
    let answer = v1::ReconcileResponse::decode(&**bytes).expect("it was written");
    match answer.frame {
        Some(Answer::Batches(batches)) => batches.batches,
        _ => Vec::new(),
    }
}

fn objects(pods: &[v1::Pod], replica_sets: &[v1::ReplicaSet]) -> Frame {
    Frame::SnapshotObjects(v1::SnapshotObjects {
        pods: pods.to_vec(),
        replica_sets: replica_sets.to_vec(),
    })
}

const fn now() -> Now {
    Now {
        wall: Timestamp::from_seconds(1_800_000_000),
        monotonic: Duration::ZERO,
    }
}

fn config() -> Config {
    Config {
        server_version: Cow::Borrowed("bench"),
        frame_bytes_max: 4 << 20,
        objects_max: usize::MAX,
        bytes_max: usize::MAX,
        operations_in_flight_max: 10_000,
        backoff_max: Duration::from_secs(30),
        heartbeat_interval: Duration::from_secs(10),
        drain_deadline: Duration::from_secs(10),
        reconnect_after: Duration::from_secs(1),
    }
}

impl Took {
    fn add(&mut self, region: &Region<'_, System>, begun: Instant) {
        self.time += begun.elapsed();
        let stats = region.change();
        self.allocations += stats.allocations + stats.reallocations;
    }
}
