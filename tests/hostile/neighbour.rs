//! A harmless session, which notices the effects of attacks.
//!
//! The session has one ReplicaSet, and others that need nothing. At an interval of [`OFTEN`] with measurements, or [`SELDOM`] without, it
//! reports a lost pod, and waits for the batch that replaces the pod. If a wait is longer than the interval, the missed turns count with
//! their own waits.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bytes::Bytes;
use decree_api::v1::{
    self, batch::Action, done::Object, event::Event, reconcile_request::Frame,
    reconcile_response::Frame as Answer,
};
use prost::Message as _;
use tests::{objects, template::Template, usage::processor_s};
use tokio::{runtime::Builder, time};

use crate::{
    frames,
    stream::{Stream, ending},
    target::Target,
};

/// The interval of lost pods with measurements.
pub(crate) const OFTEN: Duration = Duration::from_millis(5);
/// The interval of lost pods without measurements, because neighbors of other cells share the machine.
pub(crate) const SELDOM: Duration = Duration::from_millis(50);
const PODS: i32 = 10;
const NAME: &str = "neighbour";
/// The timeout of one answer, which only a hanging server reaches.
const PATIENCE: Duration = Duration::from_mins(3);

/// A session that runs beside an attack.
pub(crate) struct Neighbour {
    /// The minimum duration of the session, in milliseconds from its start; [`u64::MAX`] until it is known.
    until: Arc<AtomicU64>,
    thread: JoinHandle<Result<Waits, String>>,
}

/// The waits of the neighbor.
#[derive(Default)]
pub(crate) struct Waits {
    /// The times from loss to batch, in milliseconds, sorted.
    pub(crate) ms: Vec<f64>,
    /// The maximum processor time of the server between a loss and its batch, in seconds. A server that serves its peers in turn
    /// works little for others meanwhile, whatever the load of the machine.
    pub(crate) behind_s: f64,
}

struct Session {
    stream: Stream,
    sequence: u64,
    version: u64,
    pods: Vec<String>,
    /// All ReplicaSets, by name.
    sets: BTreeMap<String, v1::ReplicaSet>,
    waits: Waits,
    /// The process of the server.
    server: u32,
    /// The interval of lost pods.
    every: Duration,
}

impl Neighbour {
    /// Starts a session on a server process, with lost pods at this interval, and `others`: objects as in a [script](crate::script).
    /// Returns once the session is served.
    pub(crate) fn start(
        target: Target,
        server: u32,
        every: Duration,
        others: &[String],
    ) -> Result<Self, String> {
        let others = others.to_vec();
        let until = Arc::new(AtomicU64::new(u64::MAX));
        let shared = Arc::clone(&until);
        let (started, start) = mpsc::sync_channel(1);
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut session = Session::open(target, server, every).await?;
                session.list(&others).await;
                session.lose_a_pod(Instant::now()).await?;
                session.waits = Waits::default();
                // The starter may have given up.
                let _ = started.send(());
                let begun = Instant::now();
                let until = || Duration::from_millis(shared.load(Ordering::Relaxed));
                while begun.elapsed() < until() {
                    let next = Instant::now() + every;
                    session.lose_a_pod(Instant::now()).await?;
                    time::sleep_until(next.into()).await;
                }
                // The server replaces a pod also after the attack, however short the attack was.
                session.lose_a_pod(Instant::now()).await?;
                Ok(session.waits)
            })
        });
        match start.recv() {
            Ok(()) => Ok(Self { until, thread }),
            Err(_) => Err(match thread.join() {
                Ok(Err(error)) => error,
                _ => "the neighbour panicked".to_owned(),
            }),
        }
    }

    /// Ends the session after at least `least` and one more replaced pod. Returns the waits, or why the session was not served.
    pub(crate) fn finish(self, least: Duration) -> Result<Waits, String> {
        let least = u64::try_from(least.as_millis()).unwrap_or(u64::MAX);
        self.until.store(least, Ordering::Relaxed);
        let mut waits = match self.thread.join() {
            Ok(result) => result?,
            Err(_) => return Err("the neighbour panicked".to_owned()),
        };
        waits.ms.sort_by(f64::total_cmp);
        Ok(waits)
    }
}

impl Session {
    async fn open(target: Target, server: u32, every: Duration) -> Result<Self, String> {
        // Another machine than the attacker.
        let target = target.reached_from(Ipv4Addr::new(127, 0, 0, 2));
        let channel = target.connect().await?;
        let stream = Stream::open(channel, target.authorization(0)).await;
        let mut session = Self {
            stream: stream.map_err(|status| ending(&status))?,
            sequence: 0,
            version: 1_000,
            pods: (0..PODS).map(|at| format!("{NAME}-{at}")).collect(),
            sets: BTreeMap::new(),
            waits: Waits::default(),
            server,
            every,
        };
        session
            .send(Frame::Hello(v1::Hello {
                options: Some(objects::replacing_at_once()),
                ..objects::hello(NAME)
            }))
            .await;
        Ok(session)
    }

    async fn list(&mut self, others: &[String]) {
        let pods = self.pods.iter();
        let pods = pods.map(|name| objects::pod(name, NAME).build());
        let mut all = v1::SnapshotObjects {
            pods: pods.collect(),
            replica_sets: vec![
                objects::replica_set(NAME)
                    .replicas(PODS)
                    .ready(PODS)
                    .build(),
            ],
        };
        for objects in others.iter().map(|step| objects_of(step)) {
            all.pods.extend(objects.pods);
            all.replica_sets.extend(objects.replica_sets);
        }
        for frame in objects::lists(&all.replica_sets, &all.pods, "100") {
            self.send(frame).await;
        }
        let listed = all.replica_sets.into_iter();
        self.sets.extend(listed.map(|set| (set.name.clone(), set)));
    }

    async fn send(&mut self, frame: Frame) {
        self.sequence += 1;
        let request = v1::ReconcileRequest {
            sequence: self.sequence,
            frame: Some(frame),
        };
        self.stream.send(Bytes::from(request.encode_to_vec())).await;
    }

    /// Reports a lost pod, and waits for its replacement.
    async fn lose_a_pod(&mut self, since: Instant) -> Result<(), String> {
        let name = self.pods.remove(0);
        self.version += 1;
        let event = Event::Deleted(v1::Deleted {
            kind: v1::Kind::Pod.into(),
            object: Some(objects::pod_ref(&objects::pod(&name, NAME).build())),
            resource_version: self.version.to_string(),
        });
        let before = processor_s(self.server);
        self.send(objects::events([event])).await;
        let answered = time::timeout(PATIENCE, self.until_replaced(since)).await;
        let worked = processor_s(self.server) - before;
        self.waits.behind_s = self.waits.behind_s.max(worked);
        answered.map_err(|_| "the neighbour is not answered".to_owned())?
    }

    async fn until_replaced(&mut self, since: Instant) -> Result<(), String> {
        loop {
            let answer = self.stream.answers.message().await;
            let answer = answer
                .map_err(|status| format!("the neighbour ended: {}", ending(&status)))?
                .ok_or("the neighbour ended")?;
            let Some(Answer::Batches(batches)) = answer.frame else {
                continue;
            };
            let mut replaced = false;
            for batch in batches.batches {
                replaced |= self.obey(batch, since).await;
            }
            if replaced {
                return Ok(());
            }
        }
    }

    /// Counts a wait, and the waits of the turns that were missed in it.
    fn count(&mut self, wait: Duration) {
        let mut wait = Some(wait);
        while let Some(waited) = wait {
            self.waits.ms.push(waited.as_secs_f64() * 1e3);
            wait = waited.checked_sub(self.every);
        }
    }

    /// Executes a batch; returns whether a pod was created.
    async fn obey(&mut self, batch: v1::Batch, since: Instant) -> bool {
        let (created, done) = match batch.action {
            Some(Action::Create(create)) => {
                self.count(since.elapsed());
                let objects = create.names.iter().map(|name| {
                    self.version += 1;
                    self.pods.push(name.clone());
                    let pod = objects::pod(name, NAME).version(self.version);
                    Object::Pod(pod.build())
                });
                (true, objects.collect::<Vec<_>>())
            }
            Some(Action::WriteStatus(write)) => {
                self.version += 1;
                let name = batch.replica_set.map(|set| set.name);
                let set = self.sets.get_mut(&name.unwrap_or_default());
                let set = set.expect("it was listed");
                set.resource_version = self.version.to_string();
                set.status = write.status;
                (false, vec![Object::ReplicaSet(set.clone())])
            }
            other => unreachable!("nothing else is wanted of {NAME}: {other:?}"),
        };
        self.send(objects::done(batch.id, done)).await;
        created
    }
}

/// The objects of a step: `pods N …` or `sets N …`.
fn objects_of(step: &str) -> v1::SnapshotObjects {
    let mut words = step.split_whitespace();
    let mut word = || words.next().expect("a verb and a number");
    let (verb, count) = (word(), word().parse().expect("a number"));
    let frame = frames::frame(verb, "", &Template::read(words), 0..count, 0);
    let Frame::SnapshotObjects(objects) = frame else {
        panic!("{frame:?} is no part of a list");
    };
    objects
}
