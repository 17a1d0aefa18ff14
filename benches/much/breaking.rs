//! Ten times the usual load, without processes and sockets, to find what breaks first: memory, a list or a step of a turn.
//!
//! The limits are the defaults of a server. A load that exceeds the limits is measured without them. If memory is too small for a
//! load, its row is extrapolated from the row before, and says so.

use std::{
    alloc::System,
    borrow::Cow,
    fs,
    time::{Duration, Instant},
};

use bytes::Bytes;
use decree::v1::{self, reconcile_request::Frame};
use prost::Message as _;
use server_core::Timestamp;
use server_session::{Config, Now, Session};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tests::table::head;

use crate::{
    measured::{megabytes, print, seconds},
    objects::Shape,
    sizes::{shape, share},
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The share of the free memory that a load may use.
const FREE_SHARE: f64 = 0.6;
const COLUMNS: [&str; 8] = [
    "sessions",
    "pods of all",
    "ReplicaSets of all",
    "all lists",
    "longest step",
    "memory that the limits count",
    "memory asked of the allocator",
    "limits of a server by default that refuse it",
];

/// The resources that the sessions of a load took.
struct Took {
    sessions: usize,
    shape: Shape,
    lists: Duration,
    longest: Duration,
    counted: usize,
    memory: f64,
}

/// A session and the durations of its steps.
struct Stepped {
    session: Session,
    sequence: u64,
    total: Duration,
    longest: Duration,
}

pub(crate) fn run() {
    head("Ten times as much, in process", &COLUMNS);
    let cases = [
        (1, shape(10_000, 15)),
        (1, shape(100_000, 15)),
        (1, shape(200_000, 50)),
        (
            share(10_000),
            Shape {
                replica_sets: 100,
                pods: 10,
            },
        ),
    ];
    let mut each = 0.0;
    for (sessions, shape) in cases {
        let pods = (sessions * shape.total()) as f64;
        if each * pods > FREE_SHARE * free() {
            print(&[
                &sessions.to_string(),
                &pods.to_string(),
                &(sessions * shape.replica_sets).to_string(),
                "not measured",
                "",
                "",
                &format!("{} extrapolated", megabytes(each * pods)),
                "",
            ]);
            continue;
        }
        let took = measure(sessions, shape);
        each = took.memory / pods;
        took.print();
    }
}

fn measure(sessions: usize, shape: Shape) -> Took {
    let region = Region::new(ALLOCATOR);
    let mut all = Vec::with_capacity(sessions);
    for number in 0..sessions {
        let mut stepped = Stepped::open(&format!("cluster-{number}"));
        for frame in shape.frames() {
            stepped.give(frame);
        }
        stepped.settle();
        all.push(stepped);
    }
    let counted = all.iter().map(|it| it.session.stats().sizes.bytes).sum();
    let held = region.change();
    let held = held.bytes_allocated.saturating_sub(held.bytes_deallocated);
    Took {
        sessions,
        shape,
        lists: all.iter().map(|it| it.total).sum(),
        longest: all.iter().map(|it| it.longest).max().unwrap_or_default(),
        counted,
        memory: held as f64 / 1e6,
    }
}

/// The free memory of the system in megabytes.
fn free() -> f64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = lines.next().and_then(|it| it.split_whitespace().next());
    let kib: Option<f64> = kib.and_then(|it| it.parse().ok());
    kib.map_or(f64::INFINITY, |kib| kib * 1024.0 / 1e6)
}

impl Took {
    fn print(&self) {
        print(&[
            &self.sessions.to_string(),
            &(self.sessions * self.shape.total()).to_string(),
            &(self.sessions * self.shape.replica_sets).to_string(),
            &seconds(self.lists),
            &format!("{:.2} ms", self.longest.as_secs_f64() * 1e3),
            &megabytes(self.counted as f64 / 1e6),
            &megabytes(self.memory),
            &self.refusing().join(", "),
        ]);
    }

    fn refusing(&self) -> Vec<&'static str> {
        let limits = decree_server::Config::default().limits;
        let refusals = [
            (self.sessions > limits.sessions_max, "--sessions-max"),
            (
                self.counted / self.sessions > limits.session_memory_max,
                "--session-memory-max",
            ),
            (self.counted > limits.memory_max, "--memory-max"),
        ];
        let refusals = refusals.into_iter().filter(|(refuses, _)| *refuses);
        refusals.map(|(_, flag)| flag).collect()
    }
}

impl Stepped {
    fn open(cluster: &str) -> Self {
        let hello = Frame::Hello(v1::Hello {
            protocol_min: 1,
            protocol_max: 1,
            agent_instance: cluster.to_owned(),
            cluster_uid: cluster.to_owned(),
            options: Some(tests::objects::replacing_at_once()),
            ..v1::Hello::default()
        });
        let hello = v1::ReconcileRequest {
            sequence: 1,
            frame: Some(hello),
        };
        let id = "0123456789abcdef0123456789abcdef".to_owned();
        Self {
            session: Session::open(now(), config(), id, hello).expect("a hello"),
            sequence: 1,
            total: Duration::ZERO,
            longest: Duration::ZERO,
        }
    }

    fn give(&mut self, frame: Frame) {
        self.sequence += 1;
        let request = v1::ReconcileRequest {
            sequence: self.sequence,
            frame: Some(frame),
        };
        let bytes = Bytes::from(request.encode_to_vec());
        let begun = Instant::now();
        self.session.handle_frame(now(), bytes);
        self.note(begun);
    }

    /// Lets the session make all its decisions.
    fn settle(&mut self) {
        loop {
            let begun = Instant::now();
            let answer = self.session.poll_frame(now());
            self.note(begun);
            while self.session.poll_report().is_some() {}
            if answer.is_none() {
                return;
            }
        }
    }

    fn note(&mut self, begun: Instant) {
        let took = begun.elapsed();
        self.total += took;
        self.longest = self.longest.max(took);
    }
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
