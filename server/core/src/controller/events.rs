//! Events of the stream enter the index and queue the ReplicaSets that they affect. All objects that a list did not name are gone at its
//! end.

use std::{collections::BTreeSet, sync::Arc};

use super::{Controller, lists::Unseen};
use crate::{
    compact_uid::CompactUid,
    event::Event,
    handlers::{self, Enqueue},
    index::{EndedList, EndedReplica, IfUnknown, PodChange, PodUpdate, SetChange, SetId, lasting},
    object::{Kind, ReplicaSet, ResourceVersion, Timestamp},
    pod_view::PodView,
    queue::Priority,
    reason::Reason,
    report::ControllerReport,
};

// === impl Controller ===

impl Controller {
    /// Records an event, without a decision.
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

    /// Records a pod, as [`Self::handle_event`] does for [`Event::PodApplied`].
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

    /// Returns how to treat an unknown object of this version. An unknown object of a version that the stream has passed is gone.
    fn if_unknown(&self, kind: Kind, version: Option<ResourceVersion>) -> IfUnknown {
        if !self.consistency.has_passed(kind, version) {
            IfUnknown::New
        } else if self.lists.open(kind).is_some() {
            IfUnknown::Doubtful
        } else if self.consistency.is_repeated(kind, version) {
            IfUnknown::Gone
        } else {
            // The event is out of order, which the contract forbids. The object that it shows counts.
            IfUnknown::New
        }
    }

    /// Begins a list, which ends the request for a list.
    fn begin_list(&mut self, kind: Kind) {
        let number = self.index.begin_snapshot(kind);
        self.lists.begin(kind, number);
        self.requests.remove(&kind);
    }

    /// Ends a list. A list that is older than one of our writes is not used: the view stays partial until a newer list is complete.
    fn end_list(&mut self, now: Timestamp, kind: Kind, version: Option<ResourceVersion>) {
        let Some(number) = self.lists.open(kind) else {
            return;
        };
        if !self.consistency.covers(kind, version) {
            return self.request_list(kind, "the list is older than a write already reported");
        }
        let is_older = self.consistency.is_older(kind, version);
        let shown = self.consistency.seen(kind).filter(|_| is_older);
        let list = EndedList {
            number,
            version,
            shown,
        };
        match kind {
            Kind::Pod => self.take_pod_list(now, &list, is_older),
            Kind::ReplicaSet => self.take_set_list(&list),
        }
        self.lists.complete(kind, number);
        self.index.end_doubts(kind);
        self.consistency.listed(kind, version);
        self.saw(now, kind, version);
        self.resume_waiting(now);
    }

    /// Removes the pods that a list did not name, in the order of their names. A list that is older than the stream may name deleted pods.
    fn take_pod_list(&mut self, now: Timestamp, list: &EndedList, is_older: bool) {
        let unlisted = list.unlisted_pods(&self.index);
        if !is_older {
            self.index.forget_unlisted(Kind::Pod, list.number);
        }
        for id in unlisted {
            let gone = self.index.take_out_pod(id);
            self.pods_changed(now, Priority::Resync, [gone]);
        }
    }

    /// Removes the ReplicaSets that a list did not name, in the order of their arrival.
    fn take_set_list(&mut self, list: &EndedList) {
        for id in list.unlisted_sets(&self.index) {
            self.index.take_out_set(id);
            self.forget_set(id);
        }
    }

    /// Continues the syncs whose writes the lists have shown by now.
    fn resume_waiting(&mut self, now: Timestamp) {
        if self.waiting.is_empty() {
            return;
        }
        let shown = self.waiting.iter();
        let shown = shown.filter(|(_, waiting)| self.lists.show(&waiting.unseen));
        let shown: Vec<_> = shown.map(|(id, _)| *id).collect();
        for id in shown {
            if let Some(waiting) = self.waiting.remove(&id) {
                self.mark_listed(now, id, &waiting.namespace, &waiting.unseen);
                self.free_names(&waiting.namespace, &waiting.unseen);
                self.answered.push_back((id, waiting.result));
                // The lists may show another state than the sync that waited will leave.
                self.queue.add(id, Priority::Live);
            }
        }
        self.request_missing();
    }

    /// Notes that the stream has shown everything of a kind up to a version, unless a list is open.
    fn saw(&mut self, now: Timestamp, kind: Kind, version: Option<ResourceVersion>) {
        if let Some(version) = version.filter(|_| self.lists.open(kind).is_none()) {
            self.consistency.saw(now, kind, version);
            self.index.forget_gone(kind, version);
        }
    }

    /// Queues the ReplicaSets that the update of a pod affects.
    pub(super) fn pod_applied(&mut self, now: Timestamp, priority: Priority, news: PodUpdate) {
        match news {
            PodUpdate::Nothing => {}
            PodUpdate::Version(owner) => {
                owner
                    .into_iter()
                    .for_each(|id| self.queue.add(id, priority));
            }
            PodUpdate::Changed(gone, change) => {
                self.pods_changed(now, priority, gone.into_iter().chain([change]));
            }
        }
    }

    pub(super) fn pods_changed(
        &mut self,
        now: Timestamp,
        priority: Priority,
        changes: impl IntoIterator<Item = PodChange>,
    ) {
        for change in changes {
            if let Some(ended) = change.ended {
                self.replica_ended(now, ended);
            }
            let affected = handlers::pod_changed(&self.index, &change);
            for key in affected.keys() {
                match key {
                    Enqueue::Now(id) => self.queue.add(id, priority),
                    Enqueue::After(id, delay) => self.queue.add_after(now, id, delay),
                }
            }
            if affected.matches() > 1
                && let Some(pod) = change.new
            {
                self.reports.push_back(ControllerReport::OrphanMatchesMany {
                    pod: (pod.namespace, pod.name),
                    matches: affected.matches(),
                });
            }
        }
    }

    /// Records the end of a replica, which closes the creates of its ReplicaSet if its pods do not last.
    pub(super) fn replica_ended(&mut self, now: Timestamp, ended: EndedReplica) {
        if !self.config.create_back_off || !lasting::end_replica(&mut self.index, now, ended) {
            return;
        }
        let Some(set) = self.index.set(ended.set) else {
            return;
        };
        if let Some(back_off) = &set.create_back_off {
            let key = set.object.key.clone();
            let Reason { detail, .. } = back_off.reason();
            let until = back_off.closed_until(now);
            self.reports.push_back(ControllerReport::PodsDoNotLast {
                key,
                detail: detail.into_owned(),
                closed: until.map_or_else(Default::default, |until| until.since(now)),
            });
        }
    }

    /// Forgets the state of a deleted ReplicaSet. The outcomes of its batch in flight are still recorded, and awaited if an older list
    /// brings the ReplicaSet back.
    pub(super) fn forget_set(&mut self, id: SetId) {
        self.queue.drop_key(id);
        let sync = self.running.remove(&id);
        let sent = sync.and_then(|sync| self.in_flight.get(sync.batch));
        self.abandoned.extend(sent.map(|sent| sent.key.uid.clone()));
        self.quarantined.remove(&id);
        self.miscounted.forget(id);
        self.unavailable.forget(id);
        self.obstacles.remove(id);
        self.status_without_room.take_if(|ready| ready.set == id);
        self.without_room.retain(|(ready, _)| ready.set != id);
        if let Some(waiting) = self.waiting.remove(&id) {
            self.free_names(&waiting.namespace, &waiting.unseen);
        }
    }

    /// Reports the number of desired pods of a ReplicaSet, if the number has changed.
    pub(super) fn note_wanted(&mut self, now: Timestamp, id: SetId) {
        let is_listed = self.lists.open(Kind::ReplicaSet).is_some();
        let Some(set) = self.index.set_mut(id) else {
            return;
        };
        let Some(from) = set.note_wanted() else {
            return;
        };
        if from.is_some() || !is_listed {
            let (key, to) = (set.object.key.clone(), set.wanted());
            let at = now;
            self.reports
                .push_back(ControllerReport::Scaled { key, at, from, to });
        }
    }

    /// Lists come after changes.
    pub(super) const fn priority_of(&self, kind: Kind) -> Priority {
        if self.lists.open(kind).is_some() {
            Priority::Resync
        } else {
            Priority::Live
        }
    }

    /// Requests the lists that syncs wait for, unless one is open or requested already.
    pub(super) fn request_missing(&mut self) {
        let waiting = self.waiting.values();
        let missing = waiting.flat_map(|waiting| self.lists.missing(&waiting.unseen));
        let missing: BTreeSet<_> = missing.collect();
        self.request_lists(missing);
    }

    /// Requests lists, unless they are open or requested already.
    pub(super) fn request_lists(&mut self, missing: BTreeSet<Kind>) {
        for kind in missing {
            if !self.lists.is_coming(kind) {
                self.request_list(kind, "an outcome did not show what its write led to");
            }
        }
    }

    /// Frees the names of created pods that are not in the view.
    pub(super) fn free_names(&mut self, namespace: &str, unseen: &Unseen) {
        let names = unseen.names.iter();
        names.for_each(|name| self.index.namespaces.end_making(namespace, name));
    }

    /// Marks the created pods whose outcomes carried no object, after a list has shown their state.
    pub(super) fn mark_listed(
        &mut self,
        now: Timestamp,
        id: SetId,
        namespace: &str,
        unseen: &Unseen,
    ) {
        for name in &unseen.names {
            if let Some(ended) =
                lasting::mark_made(&mut self.index, now, id, (namespace, name, None))
            {
                self.replica_ended(now, ended);
            }
        }
    }
}
