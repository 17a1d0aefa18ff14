//! The reads of the cluster: lists and watches of both kinds, and whether its versions grow.

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::{
    api::{ApiError, Call, CallId, Kind},
    asking::CostCall,
    link::LinkCommand,
    report::Report,
    view::View,
    watch::{
        List, Watch, WatchCommand, WatchId,
        history::{History, WentBack},
    },
};

/// A command to the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentCommand {
    /// A command about the connection to the server.
    Link(LinkCommand),
    /// A command about the list and watch of a kind.
    Watch(Kind, WatchCommand),
    /// Ask for the newest version of a kind, answered by [`Agent::handle_version`](super::Agent::handle_version).
    AskVersion(Kind),
    /// Read and watch the nodes from the beginning, in place of an earlier stream, and tell [`Agent::handle_nodes`](super::Agent::handle_nodes).
    WatchNodes,
    /// A call to the cluster, answered by [`Agent::handle_reply`](super::Agent::handle_reply).
    Call(Call),
    /// A question for costs, answered by [`Agent::handle_costs`](super::Agent::handle_costs).
    AskCosts(CostCall),
}

/// The lists and watches. Owned and changed by one [`Agent`](super::Agent).
#[derive(Clone, Debug)]
pub(super) struct Reading {
    watches: [Watch; 2],
    pub(super) history: History,
}

impl Reading {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            watches: Kind::ALL.map(|kind| Watch::new(kind, seed)),
            history: History::new(seed),
        }
    }

    pub(super) const fn watch(&mut self, kind: Kind) -> &mut Watch {
        &mut self.watches[kind as usize]
    }

    /// Takes a list or its next page; `own_write` is the newest write of this agent. Returns the part of the list to pass on.
    pub(super) fn handle_listed(
        &mut self,
        now: Timestamp,
        (kind, id): (Kind, WatchId),
        mut list: Result<List, ApiError>,
        own_write: Option<u64>,
        reports: &mut VecDeque<Report>,
    ) -> Result<Option<List>, WentBack> {
        let watch = &mut self.watches[kind as usize];
        if !watch.is_listing(id) {
            return Ok(None);
        }
        if let Ok(page) = &list {
            self.history.check_list(kind, &page.resource_version)?;
            if !self.history.allow(page) {
                let pods = self.history.doubts();
                reports.push_back(Report::OldHistory { pods });
                let text = "the list does not show pods that were created before";
                list = Err(ApiError::no_answer(text));
            }
        }
        Ok(watch.handle_listed(now, list, own_write))
    }

    /// Reads the cluster for a session, as far as the rate of lists allows.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.watches.iter_mut().for_each(|watch| watch.request(now));
        self.history.begin(now);
    }

    pub(super) fn stop(&mut self) {
        self.watches.iter_mut().for_each(Watch::stop);
        self.history.stop();
    }

    pub(super) fn handle_timeout(&mut self, now: Timestamp) {
        let watches = self.watches.iter_mut();
        watches.for_each(|watch| watch.handle_timeout(now));
    }

    /// The next read of a kind; `next_call` numbers a call.
    pub(super) fn poll(
        &mut self,
        now: Timestamp,
        kind: Kind,
        view: &View,
        next_call: impl FnOnce() -> CallId,
    ) -> Option<AgentCommand> {
        // The first list of pods begins after that of ReplicaSets. If it is older, the cluster was restored between them: the server sees that.
        let waits = kind == Kind::Pod && self.watches[Kind::ReplicaSet as usize].is_unanswered();
        let watch = &mut self.watches[kind as usize];
        let command = (!waits).then(|| watch.poll_command()).flatten();
        if matches!(command, Some(WatchCommand::List(_))) {
            self.history.note_list(kind, view.seen(kind));
        }
        if let Some(command) = command {
            return Some(AgentCommand::Watch(kind, command));
        }
        if let Some(call) = self.history.poll_read(next_call) {
            return Some(AgentCommand::Call(call));
        }
        let asks = self.history.poll_question(now, kind, view.known(kind));
        asks.then_some(AgentCommand::AskVersion(kind))
    }

    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        let watches = self.watches.iter().filter_map(Watch::poll_timeout);
        watches.chain(self.history.poll_timeout()).min()
    }

    /// The time of the last news of the cluster, for the kind that is further behind; `None` before both are listed.
    pub(super) fn heard(&self) -> Option<Timestamp> {
        let [sets, pods] = &self.watches;
        Some(sets.heard?.min(pods.heard?))
    }
}
