//! The author of sessions: an agent that mostly follows the protocol and executes the batches of the session.

use std::time::Duration;

use decree_api::{
    recording::v1::{Closed, Drain, Record, Timeout, record::Step},
    v1::{self, batch::Action, reconcile_request::Frame, reconcile_response::Frame as Answer},
};
use decree_core::Timestamp;
use server_session::{
    Config, IncomingFrame, Now, Session,
    recording::{Call, Encoder, EndReason, end},
};
use tests::{
    objects::{events, hello, pod_ref, session_config},
    oracle::operations,
    rng::Rng,
};

use crate::contract;

pub(crate) const FRAME_BYTES_MAX: usize = 1 << 20;
pub(crate) const OBJECTS_MAX: usize = 64;
pub(crate) const OPERATIONS_MAX: usize = 50;
pub(crate) const SESSION: &str = "0123456789abcdef";

/// The start of all sessions.
pub(crate) const START: Now = Now {
    wall: Timestamp::from_seconds(1_700_050_000),
    monotonic: Duration::from_secs(100),
};

/// Returns the configuration of the sessions.
pub(crate) fn config() -> Config {
    Config {
        frame_bytes_max: FRAME_BYTES_MAX,
        objects_max: OBJECTS_MAX,
        operations_in_flight_max: OPERATIONS_MAX,
        ..session_config()
    }
}

/// An agent that mostly follows the protocol, and the open requests of the session.
struct Author<'a> {
    rng: &'a mut Rng,
    session: Option<(Session, Encoder)>,
    now: Now,
    sequence: u64,
    pending: Vec<v1::Batch>,
    records: Vec<Record>,
    recording: Vec<u8>,
}

/// Returns the steps of a session, and its recording.
pub(crate) fn session(rng: &mut Rng) -> (Vec<Record>, Vec<u8>) {
    let mut author = Author {
        rng,
        session: None,
        now: START,
        sequence: 0,
        pending: Vec::new(),
        records: Vec::new(),
        recording: Vec::new(),
    };
    author.open();
    for _ in 0..author.rng.between(1, 24) {
        author.act();
    }
    if let Some((session, _)) = &author.session {
        end(EndReason::Session, Some(session), &mut author.recording);
    }
    (author.records, author.recording)
}

/// Returns the time of a record: at most a day after the previous one. The wall clock may jump by a day.
pub(crate) fn later(now: Now, record: &Record) -> Now {
    const DAY: i64 = 86_400_000_000_000;
    let elapsed = record.elapsed_nanos % DAY.unsigned_abs();
    let drift = record.drift_nanos % DAY;
    let wall = now
        .wall
        .0
        .saturating_add(drift.saturating_add_unsigned(elapsed));
    Now {
        wall: Timestamp(wall),
        monotonic: now.monotonic + Duration::from_nanos(elapsed),
    }
}

impl Author<'_> {
    fn open(&mut self) {
        let hello = v1::Hello {
            epoch: i64::from(contract::count(self.rng)),
            mode: i32::try_from(self.rng.between(0, 3)).expect("small"),
            options: self.rng.chance(300).then(|| contract::options(self.rng)),
            ..hello("cluster-0")
        };
        self.frame(Frame::Hello(hello));
        let (sets, pods) = (self.rng.between(0, 4), self.rng.between(0, 8));
        self.list(v1::Kind::ReplicaSet, sets);
        self.list(v1::Kind::Pod, pods);
    }

    fn list(&mut self, kind: v1::Kind, count: u64) {
        let objects = match kind {
            v1::Kind::Pod => v1::SnapshotObjects {
                pods: (0..count).map(|_| contract::pod(self.rng)).collect(),
                replica_sets: Vec::new(),
            },
            v1::Kind::ReplicaSet | v1::Kind::Unspecified => v1::SnapshotObjects {
                pods: Vec::new(),
                replica_sets: (0..count)
                    .map(|_| contract::replica_set(self.rng))
                    .collect(),
            },
        };
        let kind = kind.into();
        self.frame(Frame::SnapshotBegin(v1::SnapshotBegin { kind }));
        self.frame(Frame::SnapshotObjects(objects));
        let resource_version = contract::version(self.rng);
        let named = i64::try_from(count).expect("small");
        let count = if self.rng.chance(10) { -1 } else { named };
        self.frame(Frame::SnapshotEnd(v1::SnapshotEnd {
            kind,
            resource_version,
            count,
        }));
    }

    fn act(&mut self) {
        match self.rng.between(0, 19) {
            0..=9 if !self.pending.is_empty() => self.report(),
            0..=13 => self.change(),
            14 => {
                let count = self.rng.between(0, 6);
                self.list(v1::Kind::Pod, count);
            }
            15 => {
                let count = self.rng.between(0, 3);
                self.list(v1::Kind::ReplicaSet, count);
            }
            16 => self.frame(Frame::Heartbeat(v1::Heartbeat::default())),
            17 if self.rng.chance(100) => self.step(Step::Closed(Closed {})),
            18 if self.rng.chance(200) => self.step(Step::Drain(Drain {})),
            _ => self.step(Step::Timeout(Timeout {})),
        }
    }

    fn change(&mut self) {
        let count = self.rng.between(1, 4);
        let changes: Vec<_> = (0..count).map(|_| self.event()).collect();
        self.frame(events(changes));
    }

    fn event(&mut self) -> v1::event::Event {
        use v1::event::Event;
        let kind = i32::from(*self.rng.pick(&[v1::Kind::Pod, v1::Kind::ReplicaSet]));
        match self.rng.between(0, 9) {
            0..=4 => Event::PodApplied(contract::pod(self.rng)),
            5..=6 => Event::ReplicaSetApplied(contract::replica_set(self.rng)),
            7 => Event::Bookmark(v1::Bookmark {
                kind,
                resource_version: contract::version(self.rng),
            }),
            _ => {
                let pod = contract::pod(self.rng);
                Event::Deleted(v1::Deleted {
                    kind,
                    object: Some(pod_ref(&pod)),
                    resource_version: pod.resource_version,
                })
            }
        }
    }

    /// Answers a batch, mostly correctly.
    fn report(&mut self) {
        let last = self.pending.len() - 1;
        let at = usize::try_from(self.rng.between(0, last as u64)).expect("a place");
        let batch = self.pending.remove(at);
        let outcomes = (0..operations(&batch)).map(|operation| v1::Outcome {
            batch_id: batch.id,
            operation: u32::try_from(operation).expect("bursts are small"),
            outcome: Some(self.outcome(&batch, operation)),
        });
        let outcomes = outcomes.collect();
        self.frame(Frame::Outcomes(v1::Outcomes { outcomes }));
        if self.rng.chance(30) {
            self.pending.push(batch);
        }
    }

    fn outcome(&mut self, batch: &v1::Batch, operation: usize) -> v1::outcome::Outcome {
        use v1::outcome::Outcome;
        match self.rng.between(0, 9) {
            0 => Outcome::Failed(v1::Failed {
                failure_class: i32::try_from(self.rng.between(0, 13)).expect("small"),
                message: contract::name(self.rng),
                retry_after: None,
            }),
            1 => Outcome::NotStarted(v1::NotStarted {
                cause: i32::try_from(self.rng.between(0, 4)).expect("small"),
                message: String::new(),
            }),
            _ => Outcome::Done(self.done(batch, operation)),
        }
    }

    fn done(&mut self, batch: &v1::Batch, operation: usize) -> v1::Done {
        use v1::done::Object;
        let owner = batch.replica_set.clone().unwrap_or_default();
        let mut pod = contract::pod(self.rng);
        pod.namespace = owner.namespace;
        let object = match &batch.action {
            Some(Action::Create(create)) => {
                pod.name.clone_from(&create.names[operation]);
                pod.uid = format!("{}-uid", pod.name);
                pod.controller = Some(v1::OwnerReference {
                    api_version: "apps/v1".to_owned(),
                    kind: "ReplicaSet".to_owned(),
                    name: owner.name,
                    uid: owner.uid,
                    block_owner_deletion: Some(true),
                });
                Object::Pod(pod)
            }
            Some(Action::Delete(_)) => Object::Gone(self.rng.chance(900)),
            Some(Action::WriteStatus(_)) => Object::ReplicaSet(contract::replica_set(self.rng)),
            Some(Action::Claim(_) | Action::Advise(_)) | None => Object::Pod(pod),
        };
        v1::Done {
            uid: String::new(),
            resource_version: contract::version(self.rng),
            object: self.rng.chance(930).then_some(object),
            already_existed: false,
        }
    }

    fn frame(&mut self, frame: Frame) {
        self.sequence += 1;
        let sequence = if self.rng.chance(4) { 0 } else { self.sequence };
        let frame = Some(frame);
        self.step(Step::Frame(v1::ReconcileRequest { sequence, frame }));
    }

    /// Writes a step, and passes it to the session.
    fn step(&mut self, step: Step) {
        let record = Record {
            elapsed_nanos: self.rng.between(0, 2_000_000_000),
            drift_nanos: if self.rng.chance(20) {
                -3_600_000_000_000
            } else {
                0
            },
            step: Some(step),
            ..Record::default()
        };
        self.now = later(self.now, &record);
        self.follow(&record);
        self.records.push(record);
    }

    fn follow(&mut self, record: &Record) {
        let (now, out) = (self.now, &mut self.recording);
        let Some((session, encoder)) = &mut self.session else {
            if let Some(Step::Frame(first)) = &record.step
                && out.is_empty()
            {
                let encoder = Encoder::begin(START, &config(), SESSION, first, out);
                let opened = Session::open(START, config(), SESSION.to_owned(), first.clone());
                self.session = opened.ok().map(|session| (session, encoder));
                self.poll(START);
            }
            return;
        };
        if session.poll_end().is_some() {
            return;
        }
        match &record.step {
            Some(Step::Frame(frame)) => {
                let frame = IncomingFrame::from(frame.clone());
                encoder.call(now, Call::Frame(&frame), out);
                session.handle_frame(now, frame);
            }
            Some(Step::Drain(_)) => {
                encoder.call(now, Call::Drain, out);
                session.handle_drain(now);
            }
            Some(Step::Closed(_)) => {
                encoder.call(now, Call::Closed, out);
                session.handle_closed(now);
            }
            _ => {
                encoder.call(now, Call::Timeout, out);
                session.handle_timeout(now);
            }
        }
        self.poll(now);
    }

    fn poll(&mut self, now: Now) {
        while let Some((session, encoder)) = &mut self.session {
            let answer = session.poll_frame(now);
            while session.poll_report().is_some() {}
            encoder.call(now, Call::Poll(answer.as_ref()), &mut self.recording);
            let Some(answer) = answer else { return };
            if let Some(Answer::Batches(batches)) = answer.frame {
                self.pending.extend(batches.batches);
            }
        }
    }
}
