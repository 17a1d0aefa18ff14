//! What the stream tells enters the index, and wakes the ReplicaSets that it concerns.

use std::sync::Arc;

use super::Controller;
use crate::{
    event::Event,
    handlers::{self, Wake},
    index::{PodChange, SetChange, SetId},
    object::{Kind, Pod, ReplicaSet, ResourceVersion, Timestamp, Uid},
    queue::Lane,
    report::Report,
};

impl Controller {
    /// Records news. Decides nothing.
    pub fn handle_event(&mut self, now: Timestamp, event: Event) {
        let now = self.tick(now);
        match event {
            Event::SnapshotBegin(kind) => self.begin_list(kind),
            Event::SnapshotEnd { kind, version } => self.end_list(now, kind, version),
            Event::PodApplied(pod) => self.apply_pod(now, pod),
            Event::ReplicaSetApplied(set) => self.apply_set(now, *set),
            Event::PodDeleted {
                namespace,
                name,
                uid,
                version,
            } => {
                self.remove_pod(now, (namespace, name), &uid, version);
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

    fn apply_pod(&mut self, now: Timestamp, pod: Pod) {
        let version = pod.version;
        let lane = self.lane_of(Kind::Pod);
        let changes = self.index.apply_pod(now, pod);
        self.pods_changed(now, lane, changes);
        self.saw(now, Kind::Pod, version);
    }

    fn remove_pod(
        &mut self,
        now: Timestamp,
        (namespace, name): (Arc<str>, Arc<str>),
        uid: &Uid,
        version: Option<ResourceVersion>,
    ) {
        let change = self.index.remove_pod(&namespace, &name, uid, version);
        self.pods_changed(now, Lane::Live, change);
        self.saw(now, Kind::Pod, version);
    }

    fn apply_set(&mut self, now: Timestamp, set: ReplicaSet) {
        let version = set.version;
        let lane = self.lane_of(Kind::ReplicaSet);
        for change in self.index.apply_set(now, set) {
            match change {
                SetChange::Applied(id) => self.queue.add(id, lane),
                SetChange::Removed(id) => self.forget_set(id),
            }
        }
        self.saw(now, Kind::ReplicaSet, version);
    }

    /// Takes what a complete list says by not naming it.
    pub(super) fn take_list(
        &mut self,
        now: Timestamp,
        kind: Kind,
        number: u32,
        version: Option<ResourceVersion>,
    ) {
        match kind {
            Kind::Pod => {
                let gone = self.index.sweep_pods(number, version);
                self.pods_changed(now, Lane::Resync, gone);
                self.index.forgive_names();
            }
            Kind::ReplicaSet => {
                for id in self.index.sweep_sets(number, version) {
                    self.forget_set(id);
                }
            }
        }
    }

    /// Notes that the stream has shown everything of a kind up to a version. Inside a list that is not so yet.
    pub(super) fn saw(&mut self, now: Timestamp, kind: Kind, version: Option<ResourceVersion>) {
        if let Some(version) = version.filter(|_| !self.lists.is_open(kind)) {
            self.consistency.saw(now, kind, version);
            self.index.forget_gone(kind, version);
        }
    }

    /// Wakes what changes of pods wake.
    pub(super) fn pods_changed(
        &mut self,
        now: Timestamp,
        lane: Lane,
        changes: impl IntoIterator<Item = PodChange>,
    ) {
        for change in changes {
            let woken = handlers::pod_changed(&self.index, &change);
            if woken.matches > 1
                && let Some(pod) = change.new
            {
                let pod = (pod.namespace, pod.name);
                self.reports.push(Report::OrphanMatchesMany {
                    pod,
                    matches: woken.matches,
                });
            }
            for wake in woken.keys {
                match wake {
                    Wake::Now(id) => self.queue.add(id, lane),
                    Wake::After(id, delay) => self.queue.add_after(now, id, delay),
                }
            }
        }
    }

    /// Forgets what was kept for a ReplicaSet that is gone. The outcomes of its batch in flight are still recorded.
    pub(super) fn forget_set(&mut self, id: SetId) {
        self.queue.drop_key(id);
        self.runs.remove(&id);
        self.quarantined.remove(&id);
        if self.parked.as_ref().is_some_and(|parked| parked.set == id) {
            self.parked = None;
        }
        if let Some(waiting) = self.waiting.remove(&id) {
            self.free_names(&waiting.namespace, &waiting.unseen);
        }
    }

    /// Lists wake by the lane of resyncs, changes by the live lane.
    const fn lane_of(&self, kind: Kind) -> Lane {
        if self.lists.is_open(kind) {
            Lane::Resync
        } else {
            Lane::Live
        }
    }
}
