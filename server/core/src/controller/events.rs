//! What the stream shows enters the index, and queues the ReplicaSets that it concerns.

use std::sync::Arc;

use super::Controller;
use crate::{
    compact_uid::CompactUid,
    event::Event,
    index::{IfUnknown, SetChange},
    object::{Kind, ReplicaSet, ResourceVersion, Timestamp},
    pod_view::PodView,
    queue::Priority,
};

impl Controller {
    /// Records news. Decides nothing.
    pub fn handle_event(&mut self, now: Timestamp, event: Event) {
        let now = self.tick(now);
        match event {
            Event::SnapshotBegin(kind) => self.begin_list(kind),
            Event::SnapshotEnd { kind, version } => self.end_list(now, kind, version),
            Event::PodApplied(pod) => pod.viewed(|pod| self.handle_pod(now, pod)),
            Event::ReplicaSetApplied(set) => self.apply_set(now, *set),
            Event::PodDeleted {
                namespace,
                name,
                uid,
                version,
            } => {
                self.remove_pod(now, (namespace, name), uid, version);
            }
            Event::ReplicaSetDeleted { key, version } => {
                if let Some(id) = self.index.remove_set(&key, version) {
                    self.forget_set(id);
                }
                self.saw(now, Kind::ReplicaSet, version);
            }
            Event::Bookmark { kind, version } => self.saw(now, kind, Some(version)),
        }
    }

    /// Records a pod as it is shown, as [`Self::handle_event`] records [`Event::PodApplied`].
    pub fn handle_pod(&mut self, now: Timestamp, pod: &PodView<'_>) {
        let now = self.tick(now);
        let priority = self.priority_of(Kind::Pod);
        let if_unknown = self.if_unknown(Kind::Pod, pod.version);
        let news = self.index.apply_pod(now, pod, if_unknown);
        self.pod_applied(now, priority, news);
        self.saw(now, Kind::Pod, pod.version);
    }

    fn remove_pod(
        &mut self,
        now: Timestamp,
        (namespace, name): (Arc<str>, Arc<str>),
        uid: CompactUid,
        version: Option<ResourceVersion>,
    ) {
        let change = self.index.remove_pod(&namespace, &name, uid, version);
        self.pods_changed(now, Priority::Live, change);
        self.saw(now, Kind::Pod, version);
    }

    fn apply_set(&mut self, now: Timestamp, set: ReplicaSet) {
        let version = set.version;
        let priority = self.priority_of(Kind::ReplicaSet);
        let if_unknown = self.if_unknown(Kind::ReplicaSet, version);
        for change in self.index.apply_set(now, set, if_unknown) {
            match change {
                SetChange::Applied(id) => {
                    self.queue.add(id, priority);
                    self.note_wanted(now, id);
                }
                SetChange::Removed(id) => self.forget_set(id),
            }
        }
        self.saw(now, Kind::ReplicaSet, version);
    }

    /// Returns what an object of this version is if it is not known: the stream has shown what it has passed, and not shown since is gone.
    fn if_unknown(&self, kind: Kind, version: Option<ResourceVersion>) -> IfUnknown {
        if !self.consistency.has_passed(kind, version) {
            IfUnknown::New
        } else if self.lists.open(kind).is_some() {
            IfUnknown::Doubtful
        } else if self.consistency.is_repeated(kind, version) {
            IfUnknown::Gone
        } else {
            // Out of order, which the contract forbids. What is there counts.
            IfUnknown::New
        }
    }

    /// Begins a list. It is the one that was asked for, if one was.
    fn begin_list(&mut self, kind: Kind) {
        let number = self.index.begin_snapshot(kind);
        self.lists.begin(kind, number);
        self.requests.remove(&kind);
    }
}
