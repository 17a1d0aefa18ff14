//! The whole agent as one value: `handle_*` functions take input, and `poll_*` functions return output.
//!
//! The shell and the simulator drive it in the same way. After any `handle_*`, drain [`Agent::poll_command`]. Then drain
//! [`Agent::poll_frame`] as far as the connection accepts frames. Repeat both until neither returns anything (a link closes after its last
//! frame). Then drain [`Agent::poll_report`], and come back at [`Agent::poll_timeout`].

use std::{collections::VecDeque, time::Duration};

use decree_api::v1::{
    self, NotStartedCause, reconcile_request::Frame as Sent, reconcile_response::Frame,
};
use jiff::Timestamp;

use crate::{
    api::{Answer, ApiError, CallId, Kind, Reply, Request},
    asking::Asking,
    budget::Hold,
    execute::{
        Batches,
        guard::{Guard, operation_count},
    },
    link::{Disconnect, Link, OUTCOMES_WAITING_MAX, operations_in_flight},
    nodes::Nodes,
    outbox::Outbox,
    pace::since,
    recorder::{Note, Reason},
    refusal::{Refusal, Rule},
    report::Report,
    view::View,
    watch::{List, WatchEvent, WatchId, history::WentBack},
};

use self::reading::Reading;
pub use self::{config::AgentConfig, reading::AgentCommand};

/// The namespace whose uid names the cluster.
const CLUSTER_NAMESPACE: &str = "kube-system";

/// The agent. Owned by one task, which is the only one to change it.
#[derive(Clone, Debug)]
pub struct Agent {
    guard: Guard,
    link: Link,
    reading: Reading,
    view: View,
    batches: Batches,
    asking: Asking,
    outbox: Outbox,
    reports: VecDeque<Report>,
    /// Whether the nodes must be read from the beginning.
    nodes_due: bool,
}

impl Agent {
    /// Creates an agent that connects at once.
    pub fn new(config: AgentConfig) -> Self {
        let mut agent = Self {
            link: Link::new(
                config.hello(),
                config.backoff_min..=config.backoff_max,
                config.seed,
            ),
            reading: Reading::new(config.seed),
            view: View::default(),
            batches: Batches::new(config.calls_max, config.creates, config.budget),
            asking: Asking::default(),
            outbox: Outbox::new(config.events_max),
            reports: VecDeque::new(),
            nodes_due: false,
            guard: Guard {
                config,
                ..Guard::default()
            },
        };
        agent.forget_cluster();
        agent
    }

    /// Handles the opening of the stream to the server.
    pub fn handle_connected(&mut self, now: Timestamp) {
        self.link.handle_connected(now);
    }

    /// Handles a frame of the server.
    pub fn handle_frame(&mut self, now: Timestamp, frame: v1::ReconcileResponse) {
        match self.link.handle_frame(now, frame) {
            Ok(Some(Frame::Welcome(_))) => self.open_session(now),
            Ok(Some(Frame::Batches(batches))) => self.handle_batches(now, batches.batches),
            Ok(Some(Frame::Resync(resync))) => self.handle_resync(now, resync),
            Ok(Some(Frame::Drain(_))) => {
                self.wind_down("the server drains");
                self.reports.push_back(Report::Draining);
            }
            Ok(Some(Frame::Rejection(rejection))) => {
                let objects = rejection.objects.into_iter();
                self.reports.extend(objects.map(Report::Rejected));
            }
            Ok(Some(Frame::CostsWanted(wanted))) => self.handle_question(now, wanted),
            Ok(Some(Frame::Heartbeat(_)) | None) => {}
            Err(text) => self.handle_violation(now, &text),
        }
        self.collect_reports();
    }

    /// Handles the end of the connection, or a failed attempt to open one.
    pub fn handle_disconnected(&mut self, now: Timestamp, cause: Disconnect) {
        if self.link.handle_disconnected(now, &cause) {
            self.close_session(cause);
        }
    }

    /// Handles a page of a list, or the error of the list.
    pub fn handle_listed(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        list: Result<List, ApiError>,
    ) {
        let own_write = self.view.own_write(kind);
        let (reading, reports) = (&mut self.reading, &mut self.reports);
        let list = match reading.handle_listed(now, (kind, id), list, own_write, reports) {
            Ok(Some(list)) => list,
            Ok(None) => return,
            Err(went_back) => return self.handle_went_back(now, &went_back),
        };
        let watch = self.reading.watch(kind);
        let (part, count) = (list.part, watch.listed);
        self.view.note_seen(kind, watch.version());
        self.take_list(kind, list, count);
        if part.ends {
            self.end_holds(now, kind);
        }
    }

    /// Handles an event of a watch.
    pub fn handle_watch_event(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        event: WatchEvent,
    ) {
        let watch = self.reading.watch(kind);
        let Some(event) = watch.handle_event(now, id, event) else {
            return;
        };
        self.view.note_seen(kind, watch.version());
        self.take_event(now, kind, event);
        self.end_holds(now, kind);
    }

    /// Handles the end of a watch, or its refusal.
    pub fn handle_watch_closed(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        error: Option<&ApiError>,
    ) {
        self.reading.watch(kind).handle_closed(now, id, error);
    }

    /// Handles the answer to a request for the newest version of a kind. A failed request tells nothing.
    pub fn handle_version(
        &mut self,
        now: Timestamp,
        kind: Kind,
        answer: &Result<String, ApiError>,
    ) {
        let version = answer.as_deref().unwrap_or_default();
        if let Err(went_back) = self.reading.history.handle_newest(kind, version) {
            self.handle_went_back(now, &went_back);
        }
    }

    /// Limits the calls in flight to what the cluster can take now, up to the configured number.
    pub fn limit_calls(&mut self, calls: usize) {
        self.batches.calls_max = calls.min(self.guard.config.calls_max).max(1);
    }

    /// Handles the answer to a call.
    pub fn handle_reply(&mut self, now: Timestamp, id: CallId, mut result: Answer) {
        if let Ok(Reply::ReplicaSet(set)) = &mut result {
            self.guard.apply_preferences(&mut set.projected);
        }
        let history = &mut self.reading.history;
        history.handle_read(id, &result);
        // First: the server would take a pod in the outcome for one that came and went.
        if let Some(pod) = self.batches.created(id)
            && let Err(went_back) = history.check_create(pod, &result)
        {
            self.handle_went_back(now, &went_back);
        }
        self.batches.handle_reply(now, &mut self.view, id, result);
        self.collect_reports();
        self.hold_link();
    }

    /// Handles the answers to a question for costs, or why there are none: one for each of its pods, in their order.
    pub fn handle_costs(&mut self, id: u64, costs: Vec<Result<i32, String>>) {
        self.asking.handle_costs(id, costs);
    }

    /// Takes no further work, finishes what has begun, and ends the session.
    pub fn handle_shutdown(&mut self) {
        self.wind_down("the agent stops");
        self.collect_reports();
        self.link.stop();
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if let Some(cause) = self.link.handle_timeout(now) {
            self.abort(now, cause);
        }
        self.reading.handle_timeout(now);
        self.asking.handle_timeout(now);
    }

    /// Returns the next thing to do.
    pub fn poll_command(&mut self, now: Timestamp) -> Option<AgentCommand> {
        let call = self.batches.poll_call(now, &mut self.view, &self.guard);
        self.collect_reports();
        if let Some(call) = call {
            if let Request::CreatePod(create) = &call.request {
                let pod = (create.namespace.clone(), create.name.clone());
                let known = self.view.known(Kind::Pod);
                self.reading.history.note_create(pod, known);
            }
            return Some(AgentCommand::Call(call));
        }
        if std::mem::take(&mut self.nodes_due) {
            return Some(AgentCommand::WatchNodes);
        }
        if let Some(call) = self.asking.poll_call(now) {
            return Some(AgentCommand::AskCosts(call));
        }
        if let Some(command) = self.link.poll_command(now, self.is_settled()) {
            return Some(AgentCommand::Link(command));
        }
        Kind::ALL.into_iter().find_map(|kind| {
            let next_call = || self.batches.next_call();
            self.reading.poll(now, kind, &self.view, next_call)
        })
    }

    /// Returns the next frame to send.
    pub fn poll_frame(&mut self, now: Timestamp) -> Option<v1::ReconcileRequest> {
        let view_age = self.view_age(now);
        let in_session = self.link.session.is_some();
        let waiting = in_session.then(|| {
            let costs = self.asking.poll_answer().map(Sent::Costs);
            costs.or_else(|| self.outbox.poll_frame(&mut self.batches.outcomes))
        });
        let frame = waiting
            .flatten()
            .or_else(|| self.link.poll_own_frame(view_age))?;
        Some(self.link.number(now, frame))
    }

    /// Returns the next thing that happened.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) and the polls are due without other input.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let link = self.link.poll_timeout(self.is_settled());
        let unsettled = self.batches.unsettled.until();
        let end = unsettled.filter(|_| self.link.is_stopped());
        let reading = self.reading.poll_timeout();
        let asking = self.asking.poll_timeout();
        let paced = self.batches.paced_until;
        let due = reading.into_iter().chain(link).chain(end);
        due.chain(asking).chain(paced).min()
    }

    /// Returns whether a frame waits to be sent.
    pub fn has_frames(&self) -> bool {
        let waits = self.outbox.has_frame()
            || !self.batches.outcomes.is_empty()
            || self.asking.has_answers();
        (waits && self.link.session.is_some()) || self.link.has_own_frame()
    }

    /// Returns whether everything has ended after [`handle_shutdown`](Self::handle_shutdown): no call is in flight, and no create can still
    /// take effect. Another agent may then begin.
    pub fn is_stopped(&self, now: Timestamp) -> bool {
        let unsettled = self.batches.unsettled.until();
        let is_settled = unsettled.is_none_or(|until| until <= now);
        self.link.is_stopped() && self.batches.calls_in_flight() == 0 && is_settled
    }

    /// Returns whether an agent that withdraws its advice is done: only pods without a ReplicaSet, or of one being deleted, have any.
    pub fn has_withdrawn(&self) -> bool {
        let is_listed = self.guard.config.withdraw && self.reading.heard().is_some();
        let is_left = |(namespace, uid): (&str, &str)| {
            let set = self.view.templates.newest(uid);
            set.is_some_and(|it| it.namespace == namespace && it.deletion_timestamp.is_none())
        };
        is_listed && self.batches.calls_in_flight() == 0 && !self.view.pods.any_advised(is_left)
    }

    /// Returns the id of the open session.
    pub fn session_id(&self) -> Option<&str> {
        self.link
            .session
            .as_ref()
            .map(|session| session.id.as_str())
    }

    /// Returns how many operations, and how many calls, are under way.
    pub fn in_flight(&self) -> (usize, usize) {
        (self.batches.operations, self.batches.calls_in_flight())
    }

    /// Returns what the budget holds.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.batches.budget.holds.values()
    }

    /// The time since the last news of the cluster, for the kind that is further behind; `None` before both kinds are listed.
    fn view_age(&self, now: Timestamp) -> Option<Duration> {
        self.reading.heard().map(|heard| since(now, heard))
    }

    /// True if no session has work or frames left.
    fn is_settled(&self) -> bool {
        self.batches.calls_in_flight() == 0
            && self.batches.operations == 0
            && self.batches.outcomes.is_empty()
            && self.outbox.is_empty()
    }

    /// Forgets the cluster after its versions went back, and begins another session. The server's knowledge is of another history.
    fn handle_went_back(&mut self, now: Timestamp, went_back: &WentBack) {
        self.reading.history.forget();
        self.forget_cluster();
        self.reports.push_back(Report::WentBack(*went_back));
        self.reports.push_back(Report::Noted(Note {
            object: v1::ObjectRef {
                namespace: String::new(),
                name: CLUSTER_NAMESPACE.into(),
                uid: self.link.hello.cluster_uid.clone(),
            },
            reason: Reason::VersionsWentBack,
            message: went_back.to_string(),
        }));
        self.abort(now, Disconnect::WentBack(*went_back));
    }

    fn forget_cluster(&mut self) {
        self.view = View::default();
        self.nodes_due = self.guard.config.nodes().is_some();
        self.view.pods.nodes = self.nodes_due.then(Nodes::default);
    }

    /// Starts no more operations. The session only sends the outcomes of operations that have begun.
    fn wind_down(&mut self, cause: &str) {
        self.batches.stop(NotStartedCause::NotEnforcing, cause);
        self.reading.stop();
        self.outbox.clear();
        self.asking.clear();
    }

    fn open_session(&mut self, now: Timestamp) {
        let Some(session) = &self.link.session else {
            return;
        };
        self.guard.session_id = Some(session.id.clone());
        self.guard.operations_in_flight_max =
            operations_in_flight(session.limits.max_operations_in_flight);
        self.reports.push_back(Report::SessionOpened {
            id: session.id.clone(),
        });
        if Kind::ALL.iter().all(|kind| self.view.seen(*kind).is_none()) {
            // After the cluster went back, answers to older calls may have been of the lost history.
            let nodes = self.view.pods.nodes.take();
            self.view = View::default();
            self.view.pods.nodes = nodes;
        }
        if let Some(nodes) = &self.view.pods.nodes {
            self.outbox.push_nodes(nodes.all(), nodes.is_complete);
        }
        self.reading.begin(now);
    }

    fn close_session(&mut self, cause: Disconnect) {
        self.guard.session_id = None;
        self.batches.abandon();
        self.asking.clear();
        self.outbox.clear();
        self.reading.stop();
        self.hold_link();
        self.reports.push_back(Report::Disconnected(cause));
    }

    /// Opens no session while a create of an older session may take effect unseen by any list.
    fn hold_link(&mut self) {
        if let Some(until) = self.batches.unsettled.until() {
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

    /// Takes batches. The agent leaves a server that sends batches without reading outcomes: the outcomes would wait without bound.
    fn handle_batches(&mut self, now: Timestamp, batches: Vec<v1::Batch>) {
        for batch in batches {
            let waiting = self.batches.outcomes.len() + operation_count(&batch);
            if waiting > OUTCOMES_WAITING_MAX {
                let text = format!("{waiting} outcomes are not read");
                return self.handle_violation(now, &text);
            }
            self.handle_batch(batch);
            self.collect_reports();
        }
    }

    fn handle_batch(&mut self, batch: v1::Batch) {
        let Err(refusal) = self.check_batch(&batch) else {
            return self.batches.handle_batch(batch);
        };
        self.batches.refuse(&batch, &refusal);
        if self.guard.config.mode == v1::Mode::DryRun {
            self.reports.push_back(Report::Shown(Box::new(batch)));
        }
    }

    fn check_batch(&self, batch: &v1::Batch) -> Result<(), Refusal> {
        self.guard.check_batch(batch, self.batches.operations)?;
        let idle = match self.guard.config.mode {
            v1::Mode::Shadow => Some("the agent only watches"),
            v1::Mode::DryRun => Some("the agent executes nothing"),
            v1::Mode::Enforce | v1::Mode::Advise | v1::Mode::Unspecified => {
                (!self.link.takes_work()).then_some("the session drains")
            }
        };
        if let Some(text) = idle {
            return Err(Refusal::not_enforcing(text));
        }
        // What was known before the session began may be long outdated.
        if self.reading.heard().is_none() {
            let text = "the batch comes before both kinds are listed";
            return Err(Refusal::new(Rule::View, text.to_owned()));
        }
        self.guard.check_replica_set(&self.view, batch).map(drop)
    }

    fn handle_resync(&mut self, now: Timestamp, resync: v1::Resync) {
        let kind = Kind::from_wire(resync.kind()).filter(|_| self.link.takes_work());
        if let Some(kind) = kind {
            self.reading.watch(kind).request(now);
        }
        self.reports.push_back(Report::ResyncAsked(resync));
    }

    /// Ends the holds that people resume, and the holds of deleted ReplicaSets. If a hold of a wider scope ends, the agent lists the
    /// ReplicaSets again. The server then examines all of them, without waiting for a backoff.
    fn end_holds(&mut self, now: Timestamp, kind: Kind) {
        if kind != Kind::ReplicaSet {
            return;
        }
        let templates = &self.view.templates;
        let budget = &mut self.batches.budget;
        budget.retain(|uid| templates.newest(uid).is_some());
        let mut concerns_many = false;
        for (replica_set, extent) in self.view.resumes.drain(..) {
            concerns_many |= budget.resume(&replica_set, extent);
        }
        if concerns_many && self.link.takes_work() {
            self.reading.watch(Kind::ReplicaSet).request(now);
        }
        self.collect_reports();
    }

    fn collect_reports(&mut self) {
        self.batches.drain_reports(&mut self.reports);
    }
}

pub(crate) mod config;
mod intake;
mod reading;
#[cfg(test)]
mod tests;
