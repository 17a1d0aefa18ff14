//! Events of the stream enter the index and queue the ReplicaSets that they affect. All objects that a list did not name are gone at its
//! end.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Controller,
    stream::{ListWait, Unseen},
};
use crate::{
    event::Event,
    handlers,
    index::{EndedList, IfUnknown, PodChange, PodUpdate, SetId, paid},
    object::{Kind, ReplicaSet, ResourceVersion, Timestamp},
    pod_view::PodView,
    queue::Priority,
    report::ControllerReport,
};

/// The cause of a list for an outcome that did not carry its object.
pub(super) const UNSEEN: &str = "an outcome did not show what its write led to";

impl Controller {
    /// Records an event, without a decision.
    pub fn handle_event(&mut self, now: Timestamp, event: Event) {
        self.tick(now);
        match event {
            Event::SnapshotBegin(kind) => {
                let number = self.index.begin_snapshot(kind);
                self.streams.of_mut(kind).begin_list(number);
                self.requests.remove(&kind);
            }
            Event::SnapshotEnd { kind, version } => self.end_list(kind, version),
            Event::PodApplied(pod) => pod.viewed(|pod| self.handle_pod(now, pod)),
            Event::ReplicaSetApplied(set) => self.apply_set(*set),
            Event::PodDeleted {
                namespace,
                name,
                uid,
                version,
            } => {
                let change = self.index.remove_pod(&namespace, &name, uid, version);
                self.pods_changed(Priority::Live, change);
                self.saw(Kind::Pod, version);
            }
            Event::ReplicaSetDeleted { key, version } => {
                if let Some(id) = self.index.remove_set(&key, version) {
                    self.forget_set(id);
                }
                self.saw(Kind::ReplicaSet, version);
            }
            Event::Bookmark { kind, version } => self.saw(kind, Some(version)),
        }
    }

    /// Records a pod, as [`Self::handle_event`] does for [`Event::PodApplied`].
    pub fn handle_pod(&mut self, now: Timestamp, pod: &PodView<'_>) {
        self.tick(now);
        let priority = self.priority_of(Kind::Pod);
        let if_unknown = self.if_unknown(Kind::Pod, pod.version);
        let is_listed = priority == Priority::Resync;
        let news = self.index.apply_pod(pod, if_unknown, is_listed);
        self.pod_applied(priority, news);
        self.saw(Kind::Pod, pod.version);
    }

    fn apply_set(&mut self, set: ReplicaSet) {
        let version = set.version;
        let priority = self.priority_of(Kind::ReplicaSet);
        let if_unknown = self.if_unknown(Kind::ReplicaSet, version);
        let (removed, applied) = self.index.apply_set(set, if_unknown);
        if let Some(id) = removed {
            self.forget_set(id);
        }
        if let Some(id) = applied {
            self.queue.add(id, priority);
            self.note_wanted(id);
        }
        self.resume_creates();
        self.saw(Kind::ReplicaSet, version);
    }

    /// Returns how to treat an unknown object of this version. An unknown object of a version that the stream has passed is gone.
    fn if_unknown(&self, kind: Kind, version: Option<ResourceVersion>) -> IfUnknown {
        let stream = self.streams.of(kind);
        if !stream.has_passed(version) {
            IfUnknown::New
        } else if stream.open_list.is_some() {
            IfUnknown::Doubtful
        } else if stream.is_repeated(version) {
            IfUnknown::Gone
        } else {
            // The event is out of order, which the contract forbids. The object that it shows counts.
            IfUnknown::New
        }
    }

    /// Ends a list, and removes the objects that it did not name: pods in the order of their names, and ReplicaSets in the order of their
    /// arrival. A list that is older than one of our writes is not used: the view stays partial until a newer list is complete.
    fn end_list(&mut self, kind: Kind, version: Option<ResourceVersion>) {
        let stream = self.streams.of(kind);
        let Some(number) = stream.open_list else {
            return;
        };
        if !stream.covers_writes(version) {
            let written = self.streams.of_mut(kind).refuse_list(self.clock);
            self.went_back = written.zip(version).map(|(last, got)| (kind, last, got));
            return self.handle_timeout(self.clock);
        }
        let is_older = stream.is_older(version);
        let shown = stream.seen.filter(|_| is_older);
        let list = EndedList {
            number,
            version,
            shown,
        };
        match kind {
            Kind::Pod => {
                let unlisted = list.unlisted_pods(&self.index);
                // A list that is older than the stream may name deleted pods.
                if !is_older {
                    self.index.tombstones.forget_unversioned(kind, number);
                }
                for id in unlisted {
                    let gone = self.index.take_out_pod(id);
                    self.pods_changed(Priority::Resync, [gone]);
                }
            }
            Kind::ReplicaSet => {
                for id in list.unlisted_sets(&self.index) {
                    self.index.take_out_set(id);
                    self.forget_set(id);
                }
                if let Some(ledger) = &mut self.index.ledger {
                    ledger.end_first_list();
                }
            }
        }
        let is_first = !self.is_synced();
        self.streams.of_mut(kind).end_list(number, version);
        self.unconfirmed.take_if(|it| *it == kind);
        if is_first && self.is_synced() {
            self.confirm_first_lists();
        }
        self.index.end_doubts(kind);
        self.saw(kind, version);
        self.resume_waiting();
    }

    /// Requests the first of the two first lists again, if the second began later and is older. The cluster may have been restored between
    /// them, and two lists of different histories are a view of no cluster. The new list shows that versions went back, or confirms the
    /// first one.
    fn confirm_first_lists(&mut self) {
        let (sets, pods) = (Kind::ReplicaSet, Kind::Pod);
        let (first, second) = if self.streams.of(sets).began_before(self.streams.of(pods)) {
            (sets, pods)
        } else {
            (pods, sets)
        };
        let version = self.last_list(second);
        if version.is_some() && version < self.last_list(first) {
            self.unconfirmed = Some(first);
            self.request_list(first, "a list that began later is older");
        }
    }

    /// Continues the syncs whose writes the lists have shown by now.
    fn resume_waiting(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let shown = self.waiting.iter();
        let shown = shown.filter(|(_, waiting)| waiting.unseen.is_shown(&self.streams));
        let shown: Vec<_> = shown.map(|(id, _)| *id).collect();
        for id in shown {
            if let Some(waiting) = self.waiting.remove(&id) {
                self.take_listed(id, &waiting.key.namespace, &waiting.unseen);
                self.answered.push_back((id, waiting.result));
                // The lists may show another state than the sync that waited will leave.
                self.queue.add(id, Priority::Live);
            }
        }
        let waiting = self.waiting.values();
        let missing = waiting.flat_map(|waiting| waiting.unseen.missing(&self.streams));
        let missing: BTreeSet<_> = missing.collect();
        self.request_lists(missing, UNSEEN);
    }

    /// Notes that the stream has shown everything of a kind up to a version, unless a list is open.
    fn saw(&mut self, kind: Kind, version: Option<ResourceVersion>) {
        let stream = self.streams.of_mut(kind);
        if let Some(version) = version.filter(|_| stream.open_list.is_none()) {
            stream.saw(self.clock, version);
            self.index.tombstones.forget(kind, version);
        }
    }

    pub(super) fn pod_applied(&mut self, priority: Priority, news: PodUpdate) {
        match news {
            PodUpdate::Nothing => {}
            PodUpdate::Version(owner) => {
                let owner = owner.into_iter();
                owner.for_each(|id| self.queue.add(id, priority));
            }
            PodUpdate::Changed(gone, change) => {
                self.pods_changed(priority, gone.into_iter().chain([change]));
            }
        }
    }

    pub(super) fn pods_changed(
        &mut self,
        priority: Priority,
        changes: impl IntoIterator<Item = PodChange>,
    ) {
        for change in changes {
            let queue = &mut self.queue;
            handlers::pod_changed(&self.index, &change, |id| queue.add(id, priority));
        }
    }

    pub(super) fn resume_creates(&mut self) {
        for id in self.index.take_resumed() {
            self.queue.add(id, Priority::Live);
        }
    }

    /// Forgets the state of a deleted ReplicaSet. The outcomes of its batch in flight are still recorded, and awaited if an older list
    /// brings the ReplicaSet back. Nobody follows the pods of its creates.
    pub(super) fn forget_set(&mut self, id: SetId) {
        self.queue.drop_key(id);
        let sync = self.running.remove(&id);
        if let Some(sent) = sync.and_then(|sync| self.in_flight.get(sync.batch)) {
            self.abandoned.insert(sent.key.uid.clone());
            paid::lose_unfollowed(&mut self.index, &sent.key, sent.unfollowed());
        }
        self.quarantined.remove(&id);
        self.miscounted.forget(id);
        self.unavailable.forget(id);
        self.obstacles.remove(&id);
        self.without_room.take_if(|ready| ready.set == id);
        if let Some(ListWait { key, unseen, .. }) = self.waiting.remove(&id) {
            paid::lose_unfollowed(&mut self.index, &key, unseen.names.len());
            self.free_names(&key.namespace, &unseen);
        }
    }

    /// Reports the number of desired pods of a ReplicaSet, if the number has changed.
    pub(super) fn note_wanted(&mut self, id: SetId) {
        let is_listed = self.streams.of(Kind::ReplicaSet).open_list.is_some();
        let Some(set) = self.index.set_mut(id) else {
            return;
        };
        let Some(from) = set.note_wanted() else {
            return;
        };
        if from.is_some() || !is_listed {
            let report = ControllerReport::Scaled {
                key: set.object.key.clone(),
                at: self.clock,
                from,
                to: set.wanted(),
                manager: Arc::clone(&set.object.replicas_manager),
            };
            self.reports.push_back(report);
        }
    }

    /// Lists come after changes.
    fn priority_of(&self, kind: Kind) -> Priority {
        if self.streams.of(kind).open_list.is_some() {
            Priority::Resync
        } else {
            Priority::Live
        }
    }

    /// Frees the names of created pods that are not in the view.
    pub(super) fn free_names(&mut self, namespace: &str, unseen: &Unseen) {
        for name in &unseen.names {
            self.index.namespaces.end_making(namespace, name);
        }
    }

    /// Records the created pods whose outcomes carried no object, after a list has shown their state.
    pub(super) fn take_listed(&mut self, id: SetId, namespace: &str, unseen: &Unseen) {
        for name in &unseen.names {
            paid::pay(&mut self.index, id, (namespace, name, None));
        }
        self.free_names(namespace, unseen);
    }
}
