//! A session in shadow mode beside a world, whose agents are the other controller.
//!
//! It sees the cluster by two streams without a common order, each late by a random time, and executes nothing.

use std::time::Duration;

use agent_core::{
    api::{self, Object},
    watch::WatchEvent,
};
use agent_fake::{WatchId, WatchPoll};
use decree_agent::cluster::fake::calls;
use decree_api::v1::{
    self, Mode, NotStartedCause, event::Event, outcome::Outcome as OutcomeKind,
    reconcile_request::Frame, reconcile_response::Frame as Sent,
};
use jiff::Timestamp;
use server_session::{Now, Session};

use crate::{
    objects::{events, hello, lists, pod_ref, session_config, set_ref},
    oracle::operations,
    rng::Rng,
    schedule::{Lane, Schedule},
    world::World,
};

/// The interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The session, and what is on its way.
#[derive(Debug)]
pub struct Shadow {
    session: Session,
    watches: [(api::Kind, WatchId); 2],
    arriving: Schedule<Event>,
    /// The maximum lag of a stream.
    lag: Duration,
    rng: Rng,
    sequence: u64,
    heard: Timestamp,
}

impl Shadow {
    /// Opens a session beside a world that has not begun.
    ///
    /// # Panics
    /// If the server refuses the session.
    #[must_use]
    pub fn open(world: &mut World, seed: u64, lag: Duration) -> Self {
        let version = world.cluster.version();
        let now = world.now();
        let hello = v1::Hello {
            mode: Mode::Shadow.into(),
            ..hello("shadow")
        };
        let first = v1::ReconcileRequest {
            sequence: 1,
            frame: Some(Frame::Hello(hello)),
        };
        let session = Session::open(moment(now), session_config(), "shadow".to_owned(), first);
        let watches = api::Kind::ALL.map(|kind| {
            let watch = world.cluster.watch(calls::kind_of(kind), version);
            (kind, watch.expect("the history begins there"))
        });
        let mut shadow = Self {
            session: session.expect("it is valid"),
            watches,
            arriving: Schedule::new(now),
            lag,
            rng: Rng::new(seed),
            sequence: 1,
            heard: now,
        };
        for frame in lists(&[], &[], &version.to_string()) {
            shadow.tell(now, frame);
        }
        shadow
    }

    /// Runs the world until a time, and the session beside it.
    pub fn run(&mut self, world: &mut World, until: Timestamp) {
        while world.now() < until {
            let beat = self.heard + HEARTBEAT;
            let next = self.arriving.next_at().unwrap_or(beat);
            world.step(next.min(beat).min(until));
            self.look(world);
        }
    }

    /// Returns the results so far.
    ///
    /// # Panics
    /// If the session has ended.
    pub fn found(&self) -> v1::ListDifferencesResponse {
        assert_eq!(self.session.poll_end(), None);
        let found = self.session.differences("", "");
        found.expect("it is in shadow mode")
    }

    fn look(&mut self, world: &mut World) {
        let now = world.now();
        self.arriving.arrive(now);
        for (kind, watch) in self.watches {
            while let WatchPoll::Event(event) = world.cluster.poll_watch(watch) {
                let event = match calls::event(&event) {
                    WatchEvent::Applied(object) | WatchEvent::MadeByOther { object, .. } => {
                        applied(object)
                    }
                    WatchEvent::Deleted(object) => deleted(kind, &object),
                    WatchEvent::Invalid { .. } | WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {
                        continue;
                    }
                };
                let lag = self.rng.delay(self.lag);
                self.arriving.on(Lane::Watch(kind as u64), lag, event);
            }
        }
        while self.arriving.next_at().is_some_and(|at| at <= now) {
            let event = self.arriving.pop();
            self.tell(now, events(event));
        }
        if self.heard + HEARTBEAT <= now {
            self.tell(now, Frame::Heartbeat(v1::Heartbeat::default()));
        }
        self.obey(now);
    }

    fn tell(&mut self, now: Timestamp, frame: Frame) {
        self.heard = now;
        self.sequence += 1;
        let request = v1::ReconcileRequest {
            sequence: self.sequence,
            frame: Some(frame),
        };
        self.session.handle_frame(moment(now), request);
        self.obey(now);
    }

    /// Answers all batches: nothing is executed.
    fn obey(&mut self, now: Timestamp) {
        self.session.handle_timeout(moment(now));
        while let Some(frame) = self.session.poll_frame(moment(now)) {
            let Some(Sent::Batches(batches)) = frame.frame else {
                continue;
            };
            let outcomes = batches.batches.iter().flat_map(refused).collect();
            self.tell(now, Frame::Outcomes(v1::Outcomes { outcomes }));
        }
    }
}

fn refused(batch: &v1::Batch) -> impl Iterator<Item = v1::Outcome> {
    let batch_id = batch.id;
    (0..)
        .take(operations(batch))
        .map(move |operation| v1::Outcome {
            batch_id,
            operation,
            outcome: Some(OutcomeKind::NotStarted(v1::NotStarted {
                cause: NotStartedCause::NotEnforcing.into(),
                message: String::new(),
            })),
        })
}

fn applied(object: Object) -> Event {
    match object {
        Object::Pod(pod) => Event::PodApplied(*pod),
        Object::ReplicaSet(set) => Event::ReplicaSetApplied(set.projected),
    }
}

fn deleted(kind: api::Kind, object: &Object) -> Event {
    let (object, version) = match object {
        Object::Pod(pod) => (pod_ref(pod), &pod.resource_version),
        Object::ReplicaSet(set) => (set_ref(&set.projected), &set.projected.resource_version),
    };
    Event::Deleted(v1::Deleted {
        kind: kind.to_wire().into(),
        object: Some(object),
        resource_version: version.clone(),
    })
}

fn moment(now: Timestamp) -> Now {
    let nanos = now.as_nanosecond();
    Now {
        wall: decree_core::Timestamp(i64::try_from(nanos).unwrap_or(i64::MAX)),
        monotonic: Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)),
    }
}
