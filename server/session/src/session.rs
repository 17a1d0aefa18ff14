//! The state machine: input by `handle_*`, frames and reports by `poll_*`, time by argument.

use std::{sync::Arc, time::Duration};

use decree_api::v1::{self, reconcile_response::Frame};
use decree_core::{Controller, Ledger, Span};

use crate::{
    awaited::{Awaited, KINDS, LIST_PATIENCE, OUTCOMES_PATIENCE},
    config::{Config, span},
    frame_reader::FrameReader,
    hello::{self, PROTOCOL, SessionIdentity},
    incoming::IncomingFrame,
    now::{Now, SteadyClock},
    refusal::Refusal,
    report::{SessionReport, Stats},
    state::{FrameSink, SessionState},
    wire::encode,
};

/// How late a look at the agent's silence shows that the server was busy.
const LATE: Duration = Duration::from_millis(100);

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The agent closed its half of the stream.
    Closed,
    /// The server ended it.
    Refused(Refusal),
}

/// One session. Its owner feeds it, takes its output, and drops it when [`Self::poll_end`] says so.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) state: SessionState,
    pub(crate) config: Config,
    reader: FrameReader,
    /// The latest time given.
    clock: SteadyClock,
    awaited: Awaited,
    /// The time of the agent's last frame, or a later one if the server itself was late, on the monotonic clock.
    heard: Duration,
    /// Whether the server was late since the agent's last frame.
    was_late: bool,
    /// The time of the last frame to the agent, on the monotonic clock.
    sent: Duration,
    /// The number of the last frame to the agent.
    sequence: u64,
    draining: bool,
    end: Option<End>,
}

impl Session {
    /// Opens a session with the first frame, which must be a Hello. [`Self::poll_frame`] returns the Welcome first.
    ///
    /// # Errors
    /// If the frame is no Hello, or the server cannot meet its requests.
    pub fn open(
        now: Now,
        config: Config,
        session_id: String,
        first: v1::ReconcileRequest,
    ) -> Result<Self, Refusal> {
        let mut reader = FrameReader::default();
        let hello = reader.hello(first)?;
        let (identity, options) = hello::read(now.wall, session_id, &hello, &config)?;
        let welcome = welcome(&identity, &config);
        let mut state = SessionState::new(identity, Controller::new(options), config.bytes_max);
        state.notify(welcome);
        Ok(Self {
            state,
            config,
            reader,
            clock: SteadyClock::new(now),
            awaited: Awaited::default(),
            heard: now.monotonic,
            was_late: false,
            sent: now.monotonic,
            sequence: 0,
            draining: false,
            end: None,
        })
    }

    /// Takes what [`Self::leave`] of an earlier session of the cluster returned, which ended this long ago. Called at most once, before the
    /// first frame.
    pub fn inherit(&mut self, now: Now, left: Ledger, ago: Duration) {
        let time = self.clock.advance(now);
        self.state.controller.inherit(time, left, span(ago));
    }

    /// Returns the lost creates of the session, for the next session of the cluster. Nobody follows the pods of creates in flight, and pods
    /// that are younger than a minute, so these creates count as lost.
    pub fn leave(&self) -> Ledger {
        self.controller().leave()
    }

    /// The identity of the agent and its cluster.
    pub const fn identity(&self) -> &Arc<SessionIdentity> {
        &self.state.identity
    }

    /// The controller, for questions about its objects.
    pub const fn controller(&self) -> &Controller {
        &self.state.controller
    }

    /// Records a frame, without a decision. After the end of the session, the frame is ignored.
    pub fn handle_frame(&mut self, now: Now, frame: impl Into<IncomingFrame>) {
        self.handle_part(now, &frame.into(), &|| false);
    }

    /// Records a part of a frame: at least one item, and further ones until `pauses`. Returns whether the frame is complete.
    ///
    /// If it is not, the next call with a time is this one, with the same arguments. All parts together do as [`Self::handle_frame`] does.
    pub fn handle_part(
        &mut self,
        now: Now,
        frame: &IncomingFrame,
        pauses: &dyn Fn() -> bool,
    ) -> bool {
        let time = self.clock.advance(now);
        (self.heard, self.was_late) = (now.monotonic, false);
        if self.end.is_some() {
            return true;
        }
        if !self.reader.is_paused() {
            self.state.sequence = frame.head().map_or(0, |head| head.sequence);
        }
        let mut sink = FrameSink {
            state: &mut self.state,
            now: time,
            config: &self.config,
            pauses,
        };
        let read = self.reader.read(frame, &mut sink);
        if self.reader.is_paused() {
            return false;
        }
        let refused = read.and_then(|()| self.state.check(&self.config)).err();
        self.state.take_reports();
        self.note_awaited(now);
        self.end = refused.map(End::Refused);
        true
    }

    /// Whether a part of a frame is recorded, and the rest is not.
    pub const fn is_within_frame(&self) -> bool {
        self.reader.is_paused()
    }

    /// Records the end of the agent's half of the stream. Earlier decisions still leave.
    pub fn handle_closed(&mut self, now: Now) {
        self.clock.advance(now);
        self.end.get_or_insert(End::Closed);
    }

    /// Begins to drain: tells the agent, sends no batch after that, and ends the session when no outcome is due. The owner ends the session
    /// at the deadline.
    pub fn handle_drain(&mut self, now: Now) {
        self.clock.advance(now);
        if self.draining {
            return;
        }
        self.draining = true;
        let deadline = now.wall.plus(span(self.config.drain_deadline));
        self.state.notify(Frame::Drain(v1::Drain {
            close_time: Some(encode::time(deadline)),
            reconnect_after: Some(encode::duration(span(self.config.reconnect_after))),
        }));
    }

    /// Advances the time. Ends the session if the agent is silent for too long, leaves all operations without an outcome, or does not list
    /// what it was asked to list.
    pub fn handle_timeout(&mut self, now: Now) {
        self.clock.advance(now);
        self.wait_longer_if_late(now.monotonic);
        if self.silent_at() <= now.monotonic {
            let silent = Refusal::Silent(self.config.patience());
            self.end.get_or_insert(End::Refused(silent));
        }
        if self.awaited.are_all_missing(now.monotonic) || self.is_batch_overlooked(now) {
            let missing = Refusal::OutcomesMissing(OUTCOMES_PATIENCE);
            self.end.get_or_insert(End::Refused(missing));
        }
        for kind in KINDS {
            if self.awaited.is_list_missing(now.monotonic, kind) {
                let missing = Refusal::ListMissing(kind, LIST_PATIENCE);
                self.end.get_or_insert(End::Refused(missing));
            }
        }
    }

    /// Decides, and returns the next frame to send; `None` if there is nothing to send now.
    pub fn poll_frame(&mut self, now: Now) -> Option<v1::ReconcileResponse> {
        let time = self.clock.advance(now);
        if matches!(self.end, Some(End::Refused(_))) {
            return None;
        }
        self.state.handle_timeout(time);
        if let Err(refusal) = self.state.check(&self.config) {
            self.end = Some(End::Refused(refusal));
            return None;
        }
        let frame = self
            .state
            .poll_notice()
            .or_else(|| self.poll_batches())
            .or_else(|| self.state.poll_notice())
            .or_else(|| self.poll_heartbeat());
        self.note_awaited(now);
        let frame = frame?;
        self.sent = now.monotonic;
        self.sequence = self.sequence.saturating_add(1);
        Some(v1::ReconcileResponse {
            sequence: self.sequence,
            frame: Some(frame),
        })
    }

    /// Returns the next report. The caller drains the reports after every step; of very many reports, the oldest are lost.
    pub fn poll_report(&mut self) -> Option<SessionReport> {
        self.state.poll_report()
    }

    /// Returns when, on the monotonic clock, [`Self::handle_timeout`] is due and [`Self::poll_frame`] may return a frame.
    pub fn poll_timeout(&self) -> Duration {
        let due = self.state.poll_timeout();
        let due = due.map(|due| self.clock.reaches(due));
        let soonest = self.silent_at().min(self.heartbeat_at());
        due.into_iter()
            .chain(self.awaited.due())
            .fold(soonest, Duration::min)
    }

    /// Returns how the session ended, if it has. Call it when [`Self::poll_frame`] has returned `None`.
    pub fn poll_end(&self) -> Option<End> {
        let drained = self.draining && !self.state.is_busy();
        self.end.clone().or_else(|| {
            drained.then_some(End::Refused(Refusal::Draining {
                reconnect_after: self.config.reconnect_after,
            }))
        })
    }

    /// The state of the session in short, and its counters.
    pub fn stats(&self) -> Stats {
        self.state.stats()
    }

    /// The age of the oldest unfinished sync. The cost is a step for each of them.
    pub fn longest_sync(&self) -> Option<Span> {
        self.controller().inspect().longest_sync(self.clock.time())
    }

    fn poll_batches(&mut self) -> Option<Frame> {
        if self.draining {
            return None;
        }
        let batches = self.state.poll_batches(self.clock.time());
        batches.map(Frame::Batches)
    }

    fn poll_heartbeat(&self) -> Option<Frame> {
        let heartbeat = Frame::Heartbeat(v1::Heartbeat {
            last_sequence: self.reader.sequence,
            view_age: None,
        });
        (self.heartbeat_at() <= self.clock.monotonic()).then_some(heartbeat)
    }

    fn note_awaited(&mut self, now: Now) {
        let (are_due, outcomes) = (self.state.is_busy(), self.state.outcomes);
        self.awaited.note(now.monotonic, are_due, outcomes);
        for kind in KINDS {
            let is_due = self.controller().is_list_requested(kind);
            self.awaited.note_list(now.monotonic, kind, is_due);
        }
    }

    /// Returns whether the agent has left a batch without an outcome for too long, while it continued with others. The search runs at
    /// intervals.
    fn is_batch_overlooked(&mut self, now: Now) -> bool {
        if !self.awaited.take_look(now.monotonic) {
            return false;
        }
        let patience = Span(-span(OUTCOMES_PATIENCE).0);
        let since = self.clock.advance(now).plus(patience);
        self.controller().inspect().is_batch_overlooked(since)
    }

    /// Gives the agent one interval more to be heard if the server was late: a busy server may not have read what the agent has sent.
    fn wait_longer_if_late(&mut self, now: Duration) {
        if self.silent_at() + LATE <= now && !std::mem::replace(&mut self.was_late, true) {
            let listening = now + self.config.heartbeat_interval;
            self.heard = listening.saturating_sub(self.config.patience());
        }
    }

    fn silent_at(&self) -> Duration {
        self.heard + self.config.patience()
    }

    fn heartbeat_at(&self) -> Duration {
        self.sent + self.config.heartbeat_interval
    }
}

fn welcome(identity: &SessionIdentity, config: &Config) -> Frame {
    let int = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    Frame::Welcome(v1::Welcome {
        protocol: PROTOCOL,
        session_id: identity.session_id.clone(),
        limits: Some(v1::Limits {
            max_frame_bytes: int(config.frame_bytes_max),
            max_operations_in_flight: int(config.operations_in_flight_max),
            max_objects: int(config.objects_max).into(),
        }),
        heartbeat_interval: Some(encode::duration(span(config.heartbeat_interval))),
        server_version: config.server_version.clone().into_owned(),
    })
}

#[cfg(test)]
pub(crate) mod tests;
