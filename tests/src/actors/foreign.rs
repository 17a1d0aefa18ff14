//! A third-party agent, written from docs/protocol.md alone: it shares no code with the agent of this project, and its
//! [`Behaviour`] makes the choices that the protocol leaves open.
//!
//! This agent is simple: it makes creates one by one, does not look up unanswered calls, and writes every status to the live
//! object.

use agent_core::{
    agent::AgentCommand,
    api::{ApiError, Call, CallId, Kind, Reply},
    creates::CreateLimits,
    link::Disconnect,
    report::Report,
    watch::{List, WatchEvent, WatchId},
};
use decree::v1::{self, NotStartedCause, reconcile_request as request};
use jiff::Timestamp;

use self::{
    channel::{Channel, News},
    feed::Feed,
    operation::is_named,
    work::Work,
};
use crate::rng::Rng;

mod behaviour;
mod channel;
mod feed;
mod operation;
mod work;

pub use behaviour::{Behaviour, Manner};
pub(crate) use feed::{applied, deleted};

/// The agent.
#[derive(Clone, Debug)]
pub struct ForeignAgent {
    behaviour: Behaviour,
    epoch: i64,
    rng: Rng,
    channel: Channel,
    feed: Feed,
    work: Work,
    calls: Vec<Call>,
    reports: Vec<Report>,
    /// The time of the last poll or timeout.
    polled: Timestamp,
}

// === impl ForeignAgent: what it hears ===

impl ForeignAgent {
    /// Returns an agent that connects at once, with this Hello.
    #[must_use]
    pub fn new(
        now: Timestamp,
        hello: v1::Hello,
        limits: CreateLimits,
        behaviour: Behaviour,
        seed: u64,
    ) -> Self {
        Self {
            epoch: hello.epoch,
            rng: Rng::new(seed),
            channel: Channel::new(now, hello, behaviour.numbers_frames),
            feed: Feed::new(),
            work: Work::new(now, limits),
            calls: Vec::new(),
            reports: Vec::new(),
            polled: now,
            behaviour,
        }
    }

    /// Takes an open stream to the server.
    pub fn handle_connected(&mut self, now: Timestamp) {
        self.channel.handle_connected(now);
        if !self.behaviour.waits_for_welcome {
            self.list_all();
        }
    }

    /// Takes the end of the connection.
    pub fn handle_disconnected(&mut self, now: Timestamp, cause: &Disconnect) {
        self.channel.handle_disconnected(now, cause);
        self.end_session();
    }

    /// Takes a frame from the server.
    pub fn handle_frame(&mut self, now: Timestamp, frame: v1::ReconcileResponse) {
        match self.channel.handle_frame(now, frame) {
            News::Welcome if self.behaviour.waits_for_welcome => self.list_all(),
            News::Batches(batches) => batches.iter().for_each(|it| self.take(now, it)),
            News::Resync(kind) if !self.channel.is_draining() => {
                let kind = Kind::from_wire(kind);
                kind.into_iter()
                    .for_each(|kind| self.feed.list(kind, &self.behaviour));
            }
            News::Drain => {
                self.work.wind_down(now, NotStartedCause::NotEnforcing);
                self.feed.stop();
            }
            News::Violation(text) => {
                let status = format!("the server broke the protocol: {text}");
                self.reports.push(Report::Disconnected(Disconnect::Refused {
                    status,
                    retry_after: None,
                }));
                self.channel.abort(now);
                self.end_session();
            }
            News::Welcome | News::Resync(_) | News::Nothing => {}
        }
    }

    /// Takes the answer to a list.
    pub fn handle_listed(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        list: Result<List, ApiError>,
    ) {
        let (behaviour, rng) = (&self.behaviour, &mut self.rng);
        self.feed.handle_listed(now, kind, id, list, behaviour, rng);
    }

    /// Takes an event of a watch.
    pub fn handle_watch_event(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        event: WatchEvent,
    ) {
        let (merges, rng) = (self.behaviour.merges, &mut self.rng);
        let changed = self.feed.handle_event(now, kind, id, event, merges, rng);
        if changed && self.rng.chance(self.behaviour.lists_unasked) {
            self.feed.list(kind, &self.behaviour);
        }
    }

    /// Takes the end of a watch, or its refusal.
    pub fn handle_watch_closed(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        error: Option<&ApiError>,
    ) {
        self.feed.handle_ended(now, kind, id, error, &mut self.rng);
    }

    /// Takes the answer to a call.
    pub fn handle_reply(&mut self, now: Timestamp, id: CallId, result: Result<Reply, ApiError>) {
        let (behaviour, rng) = (&self.behaviour, &mut self.rng);
        let next = self.work.handle_reply(now, id, result, behaviour, rng);
        self.calls.extend(next);
    }

    /// Handles timers that are due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.polled = now;
        self.feed.handle_timeout(now, &self.behaviour);
        if self.channel.is_silent(now) {
            self.channel.abort(now);
            self.end_session();
        }
    }

    /// Takes a batch, and executes the batch if its session and epoch are current and its ReplicaSet is known.
    fn take(&mut self, now: Timestamp, batch: &v1::Batch) {
        let guard = batch.guard.clone().unwrap_or_default();
        let own =
            self.channel.session() == Some(guard.session_id.as_str()) && guard.epoch == self.epoch;
        let owner = batch.replica_set.clone().unwrap_or_default();
        let set = self.feed.sets.get(&owner.uid);
        let known = set.is_some_and(|set| is_named(&set.projected, &owner));
        if !own || !known {
            self.work.refuse(now, batch, NotStartedCause::Guard);
        } else if self.channel.is_draining() {
            self.work.refuse(now, batch, NotStartedCause::NotEnforcing);
        } else {
            self.work.begin(batch, &self.behaviour);
        }
    }

    fn list_all(&mut self) {
        let mut kinds = Kind::ALL;
        let first = usize::from(self.rng.chance(500));
        kinds.swap(0, first);
        kinds
            .into_iter()
            .for_each(|kind| self.feed.list(kind, &self.behaviour));
    }

    fn end_session(&mut self) {
        self.work.abandon(std::mem::take(&mut self.calls));
        self.feed.stop();
    }
}

// === impl ForeignAgent: what it does ===

impl ForeignAgent {
    /// Returns the next command.
    pub fn poll_command(&mut self, now: Timestamp) -> Option<AgentCommand> {
        self.polled = now;
        let mut call = self.calls.pop();
        // The server cannot tell which writes a list without a version shows, so no write is in flight during such a list.
        if call.is_none() && (self.behaviour.versions_lists || !self.feed.is_listing()) {
            call = self.work.poll_call(now, &self.feed.sets);
        }
        if let Some(call) = call {
            return Some(AgentCommand::Call(call));
        }
        let (settled, done) = (self.work.is_settled(now), self.work.is_done());
        if let Some(command) = self.channel.poll_command(now, settled, done) {
            return Some(AgentCommand::Link(command));
        }
        let (kind, command) = self.feed.poll_command()?;
        Some(AgentCommand::Watch(kind, command))
    }

    /// Returns the next frame to send.
    pub fn poll_frame(&mut self, now: Timestamp) -> Option<v1::ReconcileRequest> {
        let mut frame = self.channel.poll_own_frame(now);
        if frame.is_none() && self.channel.takes_frames() {
            // The outcome of a write may precede or follow the change that the write made.
            frame = if self.rng.chance(500) {
                self.poll_outcomes(now).or_else(|| self.poll_feed())
            } else {
                self.poll_feed().or_else(|| self.poll_outcomes(now))
            };
        }
        frame.map(|frame| self.channel.send(now, frame))
    }

    /// Returns the next report.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop()
    }

    /// Returns the deadline of [`handle_timeout`](Self::handle_timeout) and the polls without other input.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let due = self
            .channel
            .poll_timeouts()
            .chain(self.feed.poll_timeouts());
        let due = due.chain(self.work.poll_timeouts());
        // An overdue deadline waits for something else: for room in the window, or for the end of a call.
        due.filter(|at| *at > self.polled).min()
    }

    /// Returns whether a list of a kind uses `resourceVersion=0`. The first list of a session does not, because it must show the
    /// writes of the session before.
    #[must_use]
    pub fn lists_from_cache(&self, kind: Kind) -> bool {
        self.behaviour.lists_from_cache && self.feed.is_listed(kind)
    }

    /// Returns the id of the open session.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.channel.session()
    }

    fn poll_outcomes(&mut self, now: Timestamp) -> Option<request::Frame> {
        let max = self.behaviour.frame_items_max;
        // The newest change of a replaced pod may wait after newer changes of other objects. A server that learned of the
        // creation only now would take the pod for deleted.
        let held = |pod: &str| self.behaviour.merges && self.feed.is_waiting(pod);
        let outcomes = self.work.poll_outcomes(now, max, held);
        outcomes.map(request::Frame::Outcomes)
    }

    fn poll_feed(&mut self) -> Option<request::Frame> {
        let may_list = self.behaviour.versions_lists || self.work.is_done();
        self.feed
            .poll_frame(self.behaviour.frame_items_max, may_list)
    }
}
