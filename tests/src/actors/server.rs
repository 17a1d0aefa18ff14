//! The server half: the contract's frames in and out of a real controller, one session at a time.
//!
//! It does what `decree-server` does with a session, in virtual time, and keeps beside the controller an account of what the
//! session was told, by which each batch is judged as it leaves.

use std::time::Duration;

use decree::v1::{self, reconcile_request as request, reconcile_response as response};
use decree_server::wire::{decode, encode};
use jiff::Timestamp;
use server_core::{Batch, Config, Controller, Event, Report};

use crate::{
    knowledge::{Knowledge, read_objects},
    mutants::Mutant,
};

/// How often a quiet session sends a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A decision server that serves one agent.
#[derive(Debug)]
pub struct ServerActor {
    mutant: Option<Mutant>,
    operations_max: usize,
    session: Option<Session>,
    epoch: i64,
}

/// One frame that leaves, and what it means to a checker.
#[derive(Debug)]
pub struct Sent {
    /// The connection.
    pub connection: u64,
    /// The frame.
    pub frame: v1::ReconcileResponse,
    /// The batch in it, if it carries one, with the verdict on the view that it rests on.
    pub batch: Option<(Batch, Result<(), String>)>,
}

#[derive(Debug)]
struct Session {
    connection: u64,
    guard: v1::Guard,
    controller: Controller,
    knowledge: Knowledge,
    sequence_in: u64,
    sequence_out: u64,
    /// How many objects the open list has named.
    listed: i64,
    heartbeat_at: Timestamp,
    greeting: Option<v1::Welcome>,
    /// A batch to send a second time, for a mutant.
    echo: Option<Batch>,
}

// === impl ServerActor ===

impl ServerActor {
    /// Returns a server without a session, which lets so many operations be in flight.
    #[must_use]
    pub const fn new(mutant: Option<Mutant>, operations_max: usize) -> Self {
        Self {
            mutant,
            operations_max,
            session: None,
            epoch: 0,
        }
    }

    /// Takes a frame. Returns whether its connection lives on.
    ///
    /// # Errors
    /// If the frame breaks the protocol, which a correct agent never does.
    pub fn handle_frame(
        &mut self,
        now: Timestamp,
        connection: u64,
        frame: v1::ReconcileRequest,
    ) -> Result<bool, String> {
        let sequence = frame.sequence;
        let frame = frame.frame.ok_or("a frame is empty")?;
        if let request::Frame::Hello(hello) = frame {
            return self.open(now, connection, sequence, &hello);
        }
        let mutant = self.mutant;
        let Some(session) = self
            .session
            .as_mut()
            .filter(|it| it.connection == connection)
        else {
            return Ok(false);
        };
        if sequence != session.sequence_in + 1 {
            return Err(format!("frame {sequence} follows {}", session.sequence_in));
        }
        session.sequence_in = sequence;
        session.handle(now, frame, mutant)?;
        Ok(true)
    }

    /// Takes the end of a connection.
    pub fn handle_disconnected(&mut self, connection: u64) {
        self.session
            .take_if(|session| session.connection == connection);
    }

    /// Returns the next frame to send.
    pub fn poll_frame(&mut self, now: Timestamp) -> Option<Sent> {
        let mutant = self.mutant;
        self.session.as_mut()?.poll(now, mutant)
    }

    /// Returns when [`Self::poll_frame`] has something to send without other news.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let session = self.session.as_ref()?;
        let controller = session.controller.poll_timeout().map(to_jiff);
        controller.into_iter().chain([session.heartbeat_at]).min()
    }

    /// Returns how many batches are in flight.
    #[must_use]
    pub fn batches_in_flight(&self) -> usize {
        let session = self.session.as_ref();
        session.map_or(0, |session| session.controller.sizes().batches_in_flight)
    }

    fn open(
        &mut self,
        now: Timestamp,
        connection: u64,
        sequence: u64,
        hello: &v1::Hello,
    ) -> Result<bool, String> {
        if sequence != 1 {
            return Err(format!("Hello has sequence {sequence}"));
        }
        if hello.epoch < self.epoch {
            return Ok(false);
        }
        let defaults = Config {
            operations_in_flight_max: self.operations_max,
            ..Config::default()
        };
        let options = decode::options(hello.options.as_ref(), defaults);
        let config =
            options.map_err(|violations| format!("options are refused: {violations:?}"))?;
        self.epoch = hello.epoch;
        let guard = v1::Guard {
            session_id: format!("session-{connection}"),
            epoch: hello.epoch,
        };
        self.session = Some(Session::new(now, connection, guard, config));
        Ok(true)
    }
}

// === impl Session ===

impl Session {
    fn new(now: Timestamp, connection: u64, guard: v1::Guard, config: Config) -> Self {
        let operations = i32::try_from(config.operations_in_flight_max).unwrap_or(i32::MAX);
        let welcome = v1::Welcome {
            protocol: 1,
            session_id: guard.session_id.clone(),
            limits: Some(v1::Limits {
                max_frame_bytes: 1 << 20,
                max_operations_in_flight: operations,
                max_objects: 1_000_000,
            }),
            heartbeat_interval: Some(encode::duration(server_core::Span::seconds(10))),
            server_version: "simulated".to_owned(),
        };
        Self {
            connection,
            guard,
            controller: Controller::new(config),
            knowledge: Knowledge::default(),
            sequence_in: 1,
            sequence_out: 0,
            listed: 0,
            heartbeat_at: now + HEARTBEAT,
            greeting: Some(welcome),
            echo: None,
        }
    }

    fn handle(
        &mut self,
        now: Timestamp,
        frame: request::Frame,
        mutant: Option<Mutant>,
    ) -> Result<(), String> {
        match frame {
            request::Frame::Hello(_) => Err("a second Hello came".to_owned()),
            request::Frame::SnapshotBegin(begin) => {
                self.listed = 0;
                let kind = read_kind(begin.kind)?;
                self.event(now, Event::SnapshotBegin(kind));
                if mutant == Some(Mutant::DecideOnPartialView) {
                    // The controller alone is told that the list is complete.
                    self.controller.handle_event(
                        to_core(now),
                        Event::SnapshotEnd {
                            kind,
                            version: None,
                        },
                    );
                }
                Ok(())
            }
            request::Frame::SnapshotObjects(objects) => {
                for event in read_objects(objects)? {
                    self.listed += 1;
                    self.event(now, event);
                }
                Ok(())
            }
            request::Frame::SnapshotEnd(end) => {
                if end.count != self.listed {
                    return Err(format!("a list of {} names {}", end.count, self.listed));
                }
                let kind = read_kind(end.kind)?;
                let version = decode::version("resource_version", &end.resource_version);
                let version = version.map_err(|violation| violation.to_string())?;
                self.event(now, Event::SnapshotEnd { kind, version });
                Ok(())
            }
            request::Frame::Events(events) => {
                for event in events.events {
                    let event =
                        decode::event(event).map_err(|bad| format!("a bad event: {bad:?}"))?;
                    self.event(now, event);
                }
                Ok(())
            }
            request::Frame::Outcomes(outcomes) => outcomes
                .outcomes
                .into_iter()
                .try_for_each(|outcome| self.outcome(now, outcome, mutant)),
            request::Frame::Heartbeat(_) => Ok(()),
        }
    }

    fn event(&mut self, now: Timestamp, event: Event) {
        self.knowledge.handle_event(&event);
        self.controller.handle_event(to_core(now), event);
    }

    fn outcome(
        &mut self,
        now: Timestamp,
        outcome: v1::Outcome,
        mutant: Option<Mutant>,
    ) -> Result<(), String> {
        let read = decode::outcome(outcome).map_err(|violation| violation.to_string())?;
        let (mut outcome, rejected) = read;
        if let Some(rejected) = rejected {
            return Err(format!("the wire refuses an outcome: {rejected:?}"));
        }
        self.knowledge.handle_outcome(&outcome);
        if mutant == Some(Mutant::ForgetOwnWrites) {
            outcome.result = forgotten(outcome.result);
        }
        self.controller.handle_outcome(to_core(now), outcome);
        Ok(())
    }

    fn poll(&mut self, now: Timestamp, mutant: Option<Mutant>) -> Option<Sent> {
        if let Some(welcome) = self.greeting.take() {
            return Some(self.send(now, response::Frame::Welcome(welcome), None));
        }
        if self
            .controller
            .poll_timeout()
            .is_some_and(|at| at <= to_core(now))
        {
            self.controller.handle_timeout(to_core(now));
        }
        if let Some(report) = self.next_resync() {
            return Some(self.send(now, response::Frame::Resync(report), None));
        }
        let echo = self.echo.take();
        if let Some(batch) = echo.or_else(|| self.controller.poll_batch(to_core(now))) {
            return Some(self.send_batch(now, batch, mutant));
        }
        if self.heartbeat_at <= now {
            let last_sequence = self.sequence_in;
            let heartbeat = v1::Heartbeat {
                last_sequence,
                view_age: None,
            };
            return Some(self.send(now, response::Frame::Heartbeat(heartbeat), None));
        }
        None
    }

    fn send_batch(&mut self, now: Timestamp, batch: Batch, mutant: Option<Mutant>) -> Sent {
        let verdict = self.judge(&batch);
        self.knowledge.note_batch(&batch);
        if mutant == Some(Mutant::SendBatchTwice) && verdict.is_ok() {
            let mut again = batch.clone();
            again.id.0 += 1_000_000;
            self.echo = Some(again);
        }
        let message = encode::batch(batch.clone(), &self.guard);
        let batches = v1::Batches {
            batches: vec![message],
        };
        self.send(
            now,
            response::Frame::Batches(batches),
            Some((batch, verdict)),
        )
    }

    /// Judges a batch by the session's account, before it is noted there.
    fn judge(&self, batch: &Batch) -> Result<(), String> {
        if let Some(other) = self.knowledge.in_flight(&batch.key.uid) {
            return Err(format!(
                "i17_one_batch_in_flight: batch {} leaves beside {other}",
                batch.id.0
            ));
        }
        if !self.knowledge.is_whole() {
            return Err(format!(
                "i6_no_decision_on_a_partial_view: {:?}",
                batch.action
            ));
        }
        let verdict = self.knowledge.check(batch);
        verdict.map_err(|text| format!("i6_no_decision_on_an_older_view: {text}"))
    }

    fn next_resync(&mut self) -> Option<v1::Resync> {
        loop {
            if let Report::ResyncNeeded { kind, cause } = self.controller.poll_report()? {
                let kind = match kind {
                    server_core::Kind::Pod => v1::Kind::Pod,
                    server_core::Kind::ReplicaSet => v1::Kind::ReplicaSet,
                };
                return Some(v1::Resync {
                    kind: kind.into(),
                    cause,
                });
            }
        }
    }

    fn send(
        &mut self,
        now: Timestamp,
        frame: response::Frame,
        batch: Option<(Batch, Result<(), String>)>,
    ) -> Sent {
        self.sequence_out += 1;
        self.heartbeat_at = now + HEARTBEAT;
        let frame = v1::ReconcileResponse {
            sequence: self.sequence_out,
            frame: Some(frame),
        };
        Sent {
            connection: self.connection,
            frame,
            batch,
        }
    }
}

/// Takes from an outcome all that it says of its object.
fn forgotten(effect: server_core::Effect) -> server_core::Effect {
    match effect {
        server_core::Effect::Done { .. } => server_core::Effect::Failed {
            class: server_core::FailureClass::NotFound,
            message: "forgotten".to_owned(),
            retry_after: None,
        },
        other @ (server_core::Effect::Failed { .. } | server_core::Effect::NotStarted(_)) => other,
    }
}

fn read_kind(kind: i32) -> Result<server_core::Kind, String> {
    decode::kind("kind", kind).map_err(|violation| violation.to_string())
}

fn to_core(time: Timestamp) -> server_core::Timestamp {
    server_core::Timestamp(i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX))
}

fn to_jiff(time: server_core::Timestamp) -> Timestamp {
    Timestamp::from_nanosecond(time.0.into()).unwrap_or(Timestamp::MAX)
}
