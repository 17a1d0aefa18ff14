//! The whole agent as one value: news in by `handle_*`, work out by `poll_*`.
//!
//! The shell and the simulator drive it alike. After any `handle_*`: drain [`Agent::poll_command`], then [`Agent::poll_frame`] as
//! far as the connection takes frames, and both again until neither has anything (a link closes when the last frame is gone);
//! then [`Agent::poll_report`]. Come back at [`Agent::poll_timeout`].

use std::{collections::VecDeque, time::Duration};

use decree::{
    TraceContext,
    v1::{self, NotStartedCause},
};
use jiff::Timestamp;

use crate::{
    api::{ApiError, CallId, Kind, Reply},
    backoff::since,
    batches::{Batches, outcome_class},
    budget::Hold,
    guard::{Guard, operation_count},
    history::{VersionId, WentBack},
    link::{Disconnect, Incoming, Link, bounds},
    outbox::Outbox,
    recorder::Note,
    report::Report,
    rules::Refusal,
    view::View,
    watch::{List, WatchEvent, WatchId},
};

pub use self::{command::AgentCommand, config::AgentConfig};
use self::{
    intake::Intake,
    reading::{Listed, Reading},
};

/// The agent. Owned by one task, which is the only one to change it.
#[derive(Clone, Debug)]
pub struct Agent {
    mode: v1::Mode,
    guard: Guard,
    link: Link,
    reading: Reading,
    view: View,
    batches: Batches,
    calls_max: usize,
    outbox: Outbox,
    reports: VecDeque<Report>,
    stopping: bool,
}

// === impl Agent ===

impl Agent {
    /// Returns an agent that wants to connect at once.
    #[must_use]
    pub fn new(config: AgentConfig) -> Self {
        Self {
            mode: config.mode,
            guard: config.guard(),
            link: Link::new(config.link()),
            reading: Reading::new(config.ask_version_every, config.seed),
            view: View::new(config.api_version),
            batches: Batches::new(config.calls_max, config.creates, config.budget),
            calls_max: config.calls_max,
            outbox: Outbox::new(config.events_max),
            reports: VecDeque::new(),
            stopping: false,
        }
    }

    /// Takes the news that the stream to the server is open.
    pub fn handle_connected(&mut self, now: Timestamp) {
        self.link.handle_connected(now);
    }

    /// Takes a frame of the server.
    pub fn handle_frame(&mut self, now: Timestamp, frame: v1::ReconcileResponse) {
        match self.link.handle_frame(now, frame) {
            Incoming::Opened => self.open_session(now),
            Incoming::Batches(batches) => self.handle_batches(now, batches),
            Incoming::Resync(resync) => self.handle_resync(now, resync),
            Incoming::Drain => {
                self.wind_down("the server drains");
                self.reports.push_back(Report::Draining);
            }
            Incoming::Rejection(mut rejection) => {
                let others = std::mem::take(&mut rejection.others);
                let all = std::iter::once(rejection).chain(others);
                self.reports.extend(all.map(Report::Rejected));
            }
            Incoming::Violation(text) => self.handle_violation(now, &text),
            Incoming::Nothing => {}
        }
        self.collect_outcomes();
    }

    /// Takes the end of the connection, or a failed try to open one.
    pub fn handle_disconnected(&mut self, now: Timestamp, cause: Disconnect) {
        if self.link.handle_disconnected(now, &cause) {
            self.close_session(cause);
        }
    }

    /// Takes the answer to a list, or the next page of it.
    pub fn handle_listed(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        list: Result<List, ApiError>,
    ) {
        let own_write = self.view.own_write(kind);
        let listed = self.reading.handle_listed(now, (kind, id), list, own_write);
        let list = match listed {
            Ok(Listed::Pages(list)) => list,
            Ok(Listed::Nothing) => return,
            Ok(Listed::OldHistory(pods)) => {
                return self.reports.push_back(Report::OldHistory { pods });
            }
            Err(went_back) => return self.handle_went_back(now, &went_back),
        };
        let watch = self.reading.watch(kind);
        let (part, count) = (list.part, watch.listed());
        self.view.note_seen(kind, watch.version());
        self.intake().handle_list(kind, list, count);
        if part.ends() {
            self.end_holds(now, kind);
        }
    }

    /// Takes an event of a watch.
    pub fn handle_watch_event(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        event: WatchEvent,
    ) {
        self.handle_traced_event(now, kind, id, event, None);
    }

    /// Takes an event of a watch, and its trace context, which its frame then has.
    pub fn handle_traced_event(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        event: WatchEvent,
        trace: Option<TraceContext>,
    ) {
        let Some(event) = self.reading.handle_event(now, (kind, id), event) else {
            return;
        };
        self.view
            .note_seen(kind, self.reading.watch(kind).version());
        self.intake().handle_event(now, kind, event, trace);
        self.end_holds(now, kind);
    }

    /// Takes the end of a watch, or its refusal.
    pub fn handle_watch_closed(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        error: Option<&ApiError>,
    ) {
        self.reading.handle_closed(now, (kind, id), error);
    }

    /// Takes the answer to a question for the newest version of a kind.
    pub fn handle_version(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: VersionId,
        answer: &Result<String, ApiError>,
    ) {
        if let Err(went_back) = self.reading.handle_version(now, (kind, id), answer) {
            self.handle_went_back(now, &went_back);
        }
    }

    /// Asks for the newest versions at once: something else of the cluster went back, such as a Lease.
    pub fn ask_versions(&mut self, now: Timestamp) {
        self.reading.ask_versions(now);
    }

    /// Lets fewer calls be in flight than configured, or as many again: what the cluster bears at the moment.
    pub fn limit_calls(&mut self, calls: usize) {
        self.batches.limit_calls(calls.min(self.calls_max));
    }

    /// Takes the answer to a call.
    pub fn handle_reply(&mut self, now: Timestamp, id: CallId, result: Result<Reply, ApiError>) {
        // First, so that no outcome tells of a pod that the server would take for one that came and went.
        if let Some(went_back) = self.reading.check_answer(id, &result) {
            self.handle_went_back(now, &went_back);
        }
        self.batches.handle_reply(now, &mut self.view, id, result);
        self.collect_outcomes();
        self.hold_link();
    }

    /// Takes no further work, brings to its end what has begun, and ends the session.
    pub fn handle_shutdown(&mut self) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        self.wind_down("the agent stops");
        self.collect_outcomes();
        self.link.stop();
    }

    /// Does what time asks for.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if let Some(cause) = self.link.handle_timeout(now) {
            self.abort(now, cause);
        }
        self.reading.handle_timeout(now);
    }

    /// Returns the next thing to do.
    pub fn poll_command(&mut self, now: Timestamp) -> Option<AgentCommand> {
        let call = self.batches.poll_call(now, &mut self.view, &self.guard);
        self.collect_outcomes();
        if let Some(call) = call {
            self.reading.begin_call(&call, &self.view);
            return Some(AgentCommand::Call(call));
        }
        if let Some(command) = self.link.poll_command(now, self.is_settled()) {
            return Some(AgentCommand::Link(command));
        }
        Kind::ALL.into_iter().find_map(|kind| {
            let next_call = || self.batches.next_call();
            self.reading
                .poll(now, kind, self.view.own_write(kind), next_call)
        })
    }

    /// Returns the next frame to send.
    pub fn poll_frame(&mut self, now: Timestamp) -> Option<v1::ReconcileRequest> {
        let in_session = self.link.session().is_some();
        let frame = in_session.then(|| self.outbox.poll_frame());
        let frame = match frame.flatten() {
            Some(frame) => frame,
            None => self.link.poll_own_frame(self.view_age(now))?,
        };
        Some(self.link.number(now, frame))
    }

    /// Returns the next thing that happened.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) and the polls are due without other news.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let link = self.link.poll_timeout(self.is_settled());
        let unsettled = self.batches.unsettled_until();
        let end = unsettled.filter(|_| self.link.is_stopped());
        let reading = self.reading.poll_timeout();
        reading.into_iter().chain(link).chain(end).min()
    }

    /// Returns whether a frame waits to be sent.
    #[must_use]
    pub fn has_frames(&self) -> bool {
        let waits = self.link.session().is_some() && self.outbox.has_frame();
        waits || self.link.has_own_frame()
    }

    /// Returns whether everything has ended after [`handle_shutdown`](Self::handle_shutdown), so that another agent may begin: no
    /// call is in flight, and no create can still take effect.
    #[must_use]
    pub fn is_stopped(&self, now: Timestamp) -> bool {
        let settled = self
            .batches
            .unsettled_until()
            .is_none_or(|until| until <= now);
        self.link.is_stopped() && self.batches.calls_in_flight() == 0 && settled
    }

    /// Returns the id of the open session.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.link.session().map(|session| session.id.as_str())
    }

    /// Returns the trace context of the batch that a call in flight serves.
    #[must_use]
    pub fn trace(&self, call: CallId) -> Option<TraceContext> {
        self.batches.trace(call)
    }

    /// Returns how many operations, and how many calls, are under way.
    #[must_use]
    pub fn in_flight(&self) -> (usize, usize) {
        (
            self.batches.operations_in_flight(),
            self.batches.calls_in_flight(),
        )
    }

    /// Returns what the budget holds.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.batches.budget.holds()
    }

    /// Returns how long ago the cluster was last heard of, by the kind that is further behind; `None` before both are listed.
    #[must_use]
    pub fn view_age(&self, now: Timestamp) -> Option<Duration> {
        self.reading.heard().map(|heard| since(now, heard))
    }

    /// Returns whether nothing of any session is left to do or to send.
    fn is_settled(&self) -> bool {
        self.batches.calls_in_flight() == 0
            && self.batches.operations_in_flight() == 0
            && self.outbox.is_empty()
    }

    /// Forgets the cluster, whose versions went back, and begins anew with another session. What the server knows is of another history.
    fn handle_went_back(&mut self, now: Timestamp, went_back: &WentBack) {
        self.reading.forget();
        self.view.forget();
        self.reports.push_back(Report::WentBack(*went_back));
        let note = Note::of_cluster(self.link.cluster_uid(), went_back);
        self.reports.push_back(Report::Noted(note));
        self.abort(now, Disconnect::WentBack(*went_back));
    }

    fn intake(&mut self) -> Intake<'_> {
        Intake {
            guard: &self.guard,
            view: &mut self.view,
            outbox: &mut self.outbox,
            reports: &mut self.reports,
            budget: &mut self.batches.budget,
            enforces: self.mode == v1::Mode::Enforce,
        }
    }

    /// Starts nothing more; what is left of the session are the outcomes of what has begun.
    fn wind_down(&mut self, cause: &str) {
        self.batches.stop(NotStartedCause::NotEnforcing, cause);
        self.reading.stop();
        self.outbox.keep_outcomes();
    }

    fn open_session(&mut self, now: Timestamp) {
        let Some(session) = self.link.session() else {
            return;
        };
        self.guard.session_id = Some(session.id.clone());
        self.guard.operations_in_flight_max =
            bounds::operations_in_flight(session.limits.max_operations_in_flight);
        self.reports.push_back(Report::SessionOpened {
            id: session.id.clone(),
        });
        for kind in Kind::ALL {
            self.reading.request(now, kind);
        }
    }

    fn close_session(&mut self, cause: Disconnect) {
        self.guard.session_id = None;
        self.batches.abandon();
        self.outbox.clear();
        self.reading.stop();
        self.hold_link();
        self.reports.push_back(Report::Disconnected(cause));
    }

    /// Opens no session while a create of an older one may take effect that no list has shown.
    fn hold_link(&mut self) {
        if let Some(until) = self.batches.unsettled_until() {
            self.link.hold_until(until);
        }
    }

    fn abort(&mut self, now: Timestamp, cause: Disconnect) {
        if self.link.abort(now, &cause) {
            self.close_session(cause);
        }
    }

    fn handle_violation(&mut self, now: Timestamp, text: &str) {
        let cause = Disconnect::Refused {
            status: format!("the server broke the protocol: {text}"),
            retry_after: None,
        };
        self.abort(now, cause);
    }

    /// Takes batches. A server that asks for more and more and reads no outcome is left: they would wait without bound.
    fn handle_batches(&mut self, now: Timestamp, batches: Vec<v1::Batch>) {
        for batch in batches {
            let waiting = self.outbox.outcomes_waiting() + operation_count(&batch);
            if waiting > bounds::OUTCOMES_WAITING_MAX {
                let text = format!("{waiting} outcomes are not read");
                return self.handle_violation(now, &text);
            }
            self.handle_batch(batch);
            self.collect_outcomes();
        }
    }

    fn handle_batch(&mut self, batch: v1::Batch) {
        let (id, operations) = (batch.id, operation_count(&batch));
        let taken = match self.check_batch(&batch) {
            Ok(()) => self.batches.handle_batch(batch),
            Err(refusal) => {
                self.batches.refuse(&batch, &refusal);
                if self.mode == v1::Mode::DryRun {
                    self.reports.push_back(Report::Shown(Box::new(batch)));
                }
                Err(refusal)
            }
        };
        self.reports.push_back(match taken {
            Ok(()) => Report::BatchTaken { id, operations },
            Err(refusal) => Report::BatchRefused { id, refusal },
        });
    }

    fn check_batch(&self, batch: &v1::Batch) -> Result<(), Refusal> {
        self.guard
            .check_batch(batch, self.batches.operations_in_flight())?;
        let not_enforcing = match self.mode {
            v1::Mode::Shadow => "the agent only watches",
            v1::Mode::DryRun => "the agent executes nothing",
            v1::Mode::Enforce | v1::Mode::Unspecified if !self.link.takes_work() => {
                "the session drains"
            }
            v1::Mode::Enforce | v1::Mode::Unspecified => {
                self.reading.check_listed()?;
                return self.guard.check_replica_set(&self.view, batch).map(drop);
            }
        };
        Err(Refusal::not_enforcing(not_enforcing))
    }

    fn handle_resync(&mut self, now: Timestamp, resync: v1::Resync) {
        let kind = Kind::from_wire(resync.kind()).filter(|_| self.link.takes_work());
        if let Some(kind) = kind {
            self.reading.request(now, kind);
        }
        self.reports.push_back(Report::ResyncAsked(resync));
    }

    /// Ends the holds that people resume, and those of ReplicaSets that are gone. Where others than that of one ReplicaSet end, the
    /// ReplicaSets are listed again: the server then looks at all of them, and waits for no backoff.
    fn end_holds(&mut self, now: Timestamp, kind: Kind) {
        if kind != Kind::ReplicaSet {
            return;
        }
        let templates = &self.view.templates;
        let budget = &mut self.batches.budget;
        budget.retain(|uid| templates.newest(uid).is_some());
        let mut concerns_many = false;
        for resume in self.view.take_resumes() {
            concerns_many |= budget.resume(&resume);
        }
        if concerns_many && self.link.takes_work() {
            self.reading.request(now, Kind::ReplicaSet);
        }
        self.collect_outcomes();
    }

    fn collect_outcomes(&mut self) {
        while let Some(change) = self.batches.budget.poll_change() {
            self.reports.push_back(Report::Budget(Box::new(change)));
        }
        while let Some(note) = self.batches.poll_note() {
            self.reports.push_back(Report::Noted(note));
        }
        while let Some(refused) = self.batches.poll_refused() {
            self.reports.push_back(Report::Refused(refused));
        }
        while let Some(outcome) = self.batches.poll_outcome() {
            let class = outcome_class(&outcome);
            self.reports.push_back(Report::finished(&outcome, class));
            self.outbox.push_outcome(outcome);
        }
    }
}

mod command;
mod config;
mod intake;
mod reading;
#[cfg(test)]
mod tests;
