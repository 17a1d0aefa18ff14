//! The reads of the cluster: lists and watches of both kinds, and whether its versions grow.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;

use crate::{
    api::{
        ApiError, Call, CallId, Kind, Reply, Request, leaves_effect_open, parse_version, pod_ref,
    },
    doubts::Doubts,
    history::{History, VersionId, WentBack, Written},
    link::LinkCommand,
    report::Report,
    view::View,
    watch::{List, Watch, WatchCommand, WatchEvent, WatchId},
};

/// A command to the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentCommand {
    /// A command about the connection to the server.
    Link(LinkCommand),
    /// A command about the list and watch of a kind.
    Watch(Kind, WatchCommand),
    /// Ask for the newest version of a kind, answered by [`Agent::handle_version`](super::Agent::handle_version).
    AskVersion(Kind, VersionId),
    /// A call to the cluster, answered by [`Agent::handle_reply`](super::Agent::handle_reply).
    Call(Call),
}

/// The lists and watches. Owned and changed by one [`Agent`](super::Agent).
#[derive(Clone, Debug)]
pub(super) struct Reading {
    watches: [Watch; 2],
    pub(super) history: History,
    doubts: Doubts,
}

// === impl Reading ===

impl Reading {
    pub(super) fn new(ask_version_every: Option<Duration>, seed: u64) -> Self {
        Self {
            watches: Kind::ALL.map(|kind| Watch::new(kind, seed)),
            history: History::new(ask_version_every, seed),
            doubts: Doubts::default(),
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
            if !self.doubts.allow(page) {
                let pods = self.doubts.count();
                reports.push_back(Report::OldHistory { pods });
                let text = "the list does not show pods that were created before";
                list = Err(ApiError::no_answer(text));
            }
        }
        let listed = watch.handle_listed(now, id, list, own_write);
        self.history.note_shown(kind, watch.version());
        Ok(listed)
    }

    /// Returns the event if it is news about objects.
    pub(super) fn handle_event(
        &mut self,
        now: Timestamp,
        (kind, id): (Kind, WatchId),
        event: WatchEvent,
    ) -> Option<WatchEvent> {
        let watch = &mut self.watches[kind as usize];
        let event = watch.handle_event(now, id, event)?;
        self.history.note_shown(kind, watch.version());
        Some(event)
    }

    /// Notes that a call leaves, with what the view shows at that time.
    pub(super) fn begin_call(&mut self, call: &Call, view: &View) {
        match &call.request {
            Request::CreatePod(create) => {
                let pod = Written::Pod((create.namespace.clone(), create.name.clone()));
                let own_write = view.own_write(Kind::Pod);
                self.history.begin_write(call.id, pod, own_write);
            }
            Request::ReadPod { namespace, name } => {
                let pod = (namespace.clone(), name.clone());
                self.history.begin_read(call.id, &pod);
            }
            Request::WriteStatus(write) => {
                let seen = view.templates.newest(&write.replica_set.uid);
                let seen = seen.and_then(|set| parse_version(&set.resource_version));
                self.history.begin_write(call.id, Written::Status, seen);
            }
            Request::DeletePod { .. }
            | Request::AdoptPod { .. }
            | Request::ReleasePod { .. }
            | Request::ReadReplicaSet { .. } => {}
        }
    }

    /// Takes the answer to a call, which may be a write, or a read that tells of an earlier write. Returns a fall of the versions, if that
    /// is news.
    pub(super) fn check_answer(
        &mut self,
        id: CallId,
        answer: &Result<Reply, ApiError>,
    ) -> Option<WentBack> {
        self.doubts.handle_answer(id, answer);
        if matches!(answer, Err(error) if leaves_effect_open(error))
            && let Some((pod, reached)) = self.history.leave_open(id)
        {
            self.doubts.push(pod, reached);
        }
        let version = answer.as_ref().ok().map(|reply| reply.version().1);
        let (went_back, is_news) = self.history.check_write(id, version)?;
        if let Ok(Reply::Pod(pod)) = answer {
            self.doubts.push(pod_ref(pod), went_back.from);
        }
        is_news.then_some(went_back)
    }

    pub(super) fn stop(&mut self) {
        self.watches.iter_mut().for_each(Watch::stop);
    }

    /// Forgets the versions, as another history begins.
    pub(super) fn forget(&mut self) {
        for (pod, reached) in self.history.forget() {
            self.doubts.push(pod, reached);
        }
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
        own_write: Option<u64>,
        next_call: impl FnOnce() -> CallId,
    ) -> Option<AgentCommand> {
        // The first list of pods begins after that of ReplicaSets. If it is older, the cluster was restored between them: the server sees that.
        let waits = kind == Kind::Pod && self.watches[Kind::ReplicaSet as usize].is_unanswered();
        let watch = &mut self.watches[kind as usize];
        let command = (!waits).then(|| watch.poll_command()).flatten();
        if matches!(command, Some(WatchCommand::List(_))) {
            self.history.begin_list(kind, own_write);
        }
        self.history.set_watched(now, kind, watch.is_watching());
        if let Some(command) = command {
            return Some(AgentCommand::Watch(kind, command));
        }
        if let Some(call) = self.doubts.poll_read(next_call) {
            return Some(AgentCommand::Call(call));
        }
        let id = self.history.poll_question(now, kind, own_write)?;
        Some(AgentCommand::AskVersion(kind, id))
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
