//! What the stream tells enters the index, and wakes the ReplicaSets that it concerns.

use std::sync::Arc;

use super::{Controller, Snapshot};
use crate::{
    event::Event,
    expectations::{Settled, Shown, Write},
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
            Event::SnapshotBegin(kind) => {
                let number = self.index.begin_snapshot(kind);
                self.snapshot(kind).open = Some(number);
            }
            Event::SnapshotEnd { kind, version } => self.end_snapshot(now, kind, version),
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
        let shown = if pod.deleting {
            Shown::Going
        } else {
            Shown::Staying
        };
        self.settle_shown(&pod.namespace, &pod.name, &pod.uid, shown);
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
        self.settle_shown(&namespace, &name, uid, Shown::Going);
        let change = self.index.remove_pod(&namespace, &name, uid, version);
        self.pods_changed(now, Lane::Live, change);
        self.saw(now, Kind::Pod, version);
    }

    fn settle_shown(&mut self, namespace: &Arc<str>, name: &Arc<str>, uid: &Uid, shown: Shown) {
        let pod = (Arc::clone(namespace), Arc::clone(name));
        let settled = self.expectations.saw(&pod, uid, shown);
        self.settled(settled);
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

    /// Completes a list. One that is older than a write of ours is not used: the view stays partial until a newer one is complete.
    fn end_snapshot(&mut self, now: Timestamp, kind: Kind, version: Option<ResourceVersion>) {
        let Some(number) = self.snapshot(kind).open else {
            return;
        };
        if !self.consistency.covers(kind, version) {
            let cause = "the list is older than a write already reported".to_owned();
            self.reports.push(Report::ResyncNeeded { kind, cause });
            return;
        }
        *self.snapshot(kind) = Snapshot {
            complete: true,
            open: None,
        };
        match kind {
            Kind::Pod => self.end_pods(now, number, version),
            Kind::ReplicaSet => {
                for id in self.index.sweep_sets(number, version) {
                    self.forget_set(id);
                }
            }
        }
        if version.is_none() {
            self.consistency.saw_all(kind);
        }
        self.saw(now, kind, version);
    }

    fn end_pods(&mut self, now: Timestamp, number: u32, version: Option<ResourceVersion>) {
        let gone = self.index.sweep_pods(number, version);
        self.pods_changed(now, Lane::Resync, gone);
        let settled = self.expectations.listed(number);
        self.settled(settled);
        self.index.forgive_names();
    }

    /// Notes that the stream has shown everything of a kind up to a version. Inside a list that is not so yet.
    fn saw(&mut self, now: Timestamp, kind: Kind, version: Option<ResourceVersion>) {
        let Some(version) = version.filter(|_| self.snapshot(kind).open.is_none()) else {
            return;
        };
        self.consistency.saw(now, kind, version);
        self.index.forget_gone(kind, version);
        if kind == Kind::Pod {
            let settled = self.expectations.passed(version);
            self.settled(settled);
        }
    }

    /// Ends what expectations kept: the name, and the wait of the ReplicaSet.
    fn settled(&mut self, settled: impl IntoIterator<Item = Settled>) {
        for Settled {
            pod: (namespace, name),
            set,
            write,
        } in settled
        {
            self.index.end_making(&namespace, &name);
            if write == Write::Create {
                self.queue.add(set, Lane::Live);
            }
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
        for Settled {
            pod: (namespace, name),
            ..
        } in self.expectations.forget(id)
        {
            self.index.end_making(&namespace, &name);
        }
    }

    const fn snapshot(&mut self, kind: Kind) -> &mut Snapshot {
        match kind {
            Kind::Pod => &mut self.pods,
            Kind::ReplicaSet => &mut self.replica_sets,
        }
    }

    /// Lists wake by the lane of resyncs, changes by the live lane.
    const fn lane_of(&mut self, kind: Kind) -> Lane {
        match self.snapshot(kind).open {
            Some(_) => Lane::Resync,
            None => Lane::Live,
        }
    }
}
