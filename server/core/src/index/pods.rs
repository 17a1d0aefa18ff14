//! The life of a pod in the index, from events of the stream and from outcomes.
//!
//! An outcome counts at once. A late outcome does not undo what the stream has shown since.

use std::{mem, sync::Arc};

use super::{
    IfUnknown, Index, Loss, Made, PodChange, PodUpdate, cost, counting,
    group::GroupId,
    paid,
    pod::{Contribution, Entry, PodId},
    set::SetId,
};
use crate::{
    object::{Key, Kind, OwnerReference, ReplicaSet, ResourceVersion, Timestamp, Uid},
    pod_view::{OwnerView, PodView},
};

impl Index {
    /// Applies a pod from the stream, or a member of a list, unless the index knows a newer state. A list says who owns a pod whose owner is
    /// presumed.
    pub(crate) fn apply_pod(
        &mut self,
        pod: &PodView<'_>,
        if_unknown: IfUnknown,
        is_listed: bool,
    ) -> PodUpdate {
        let known = self.pod_named(pod.namespace, pod.name);
        let known = known.map(|(id, entry)| {
            let is_presumed = entry.is_presumed && is_listed && pod.version == entry.version;
            (id, *entry.uid.0 == *pod.uid, entry.version, is_presumed)
        });
        if let Some((id, is_same, version, is_presumed)) = known {
            let is_newer = is_newer(pod.version, version) || is_presumed;
            let mut returns = false;
            if is_same && let Some(entry) = self.pods.get_mut(id) {
                entry.snapshot = self.snapshot;
                let group = entry.group;
                returns = pod.version == version && self.can_have_labels_back(group, pod);
            }
            if is_same && (is_newer || returns) {
                return self.change_pod(id, pod);
            }
            if is_same || !is_newer {
                return PodUpdate::Nothing;
            }
        }
        // A create of ours may still be open, and nothing has reported the pod as deleted: then any news of the pod is right.
        let is_certain =
            if_unknown == IfUnknown::New || self.namespaces.is_in_making(pod.namespace, pod.name);
        if self.is_gone(pod) || (if_unknown == IfUnknown::Gone && !is_certain) {
            return PodUpdate::Nothing;
        }
        let old = known.map(|(id, ..)| self.take_out_pod(id));
        let (id, new) = self.add_pod(pod, self.snapshot);
        if !is_certain {
            self.doubtful_pods.insert(id);
        }
        PodUpdate::Changed(old, new)
    }

    fn is_gone(&self, pod: &PodView<'_>) -> bool {
        self.tombstones.covers(Kind::Pod, pod.uid, pod.version)
    }

    /// Removes a pod if it is known by this UID, because the stream reports its deletion.
    pub(crate) fn remove_pod(
        &mut self,
        namespace: &str,
        name: &str,
        uid: Uid,
        version: Option<ResourceVersion>,
    ) -> Option<PodChange> {
        let id = self.pod_identified(namespace, name, &uid);
        // The outcome of its create may still be under way. Only this tombstone shows that the outcome is older news, however far the
        // stream is.
        let is_in_making = self.namespaces.is_in_making(namespace, name);
        if is_in_making || version.is_some() {
            let version = version.filter(|_| !is_in_making);
            self.tombstones
                .insert(Kind::Pod, uid, version, self.pod_list);
        } else {
            self.tombstones.remove(Kind::Pod, &uid);
        }
        if id.is_none() && self.pod_named(namespace, name).is_none() {
            paid::free_name(self, namespace, name);
        }
        Some(self.take_out_pod(id?))
    }

    fn pod_identified(&self, namespace: &str, name: &str, uid: &Uid) -> Option<PodId> {
        let (id, entry) = self.pod_named(namespace, name)?;
        (entry.uid == *uid).then_some(id)
    }

    /// Applies a pod that a create made, and which may be gone again. If the stream has passed its version and has not shown the pod, the
    /// index does not take it for granted: `None`, and a list must show its state.
    pub(crate) fn apply_created_pod(
        &mut self,
        pod: &PodView<'_>,
        has_passed: bool,
    ) -> Option<PodUpdate> {
        let known = self.pod_named(pod.namespace, pod.name);
        let earlier = match known {
            Some((_, known)) if *known.uid.0 == *pod.uid => {
                return Some(self.apply_written_pod(pod));
            }
            _ if self.is_gone(pod) => return Some(PodUpdate::Nothing),
            // Another pod has its name by now.
            Some((_, known)) if known.version.is_none() || pod.version <= known.version => {
                return Some(PodUpdate::Nothing);
            }
            _ if has_passed => return None,
            // The stream has yet to show that the earlier pod of this name is gone.
            earlier => earlier.map(|(id, _)| id),
        };
        let old = earlier.map(|id| self.take_out_pod(id));
        let (_, new) = self.add_pod(pod, 0);
        Some(PodUpdate::Changed(old, new))
    }

    pub(crate) fn apply_written_pod(&mut self, pod: &PodView<'_>) -> PodUpdate {
        let known = self.pod_named(pod.namespace, pod.name);
        let known = known.filter(|(_, known)| *known.uid.0 == *pod.uid);
        // If only the known pod has a version, the known one counts.
        match known {
            Some((id, known)) if known.version.is_none() || pod.version > known.version => {
                self.change_pod(id, pod)
            }
            Some(_) | None => PodUpdate::Nothing,
        }
    }

    /// Applies a pod without an owner, as the answer to a successful adoption shows it: a webhook may have removed the owner again. As
    /// upstream does, the ReplicaSet counts the pod until the stream or a list shows that it has no owner. A ReplicaSet that is gone
    /// meanwhile counts none.
    pub(crate) fn apply_adopted_pod(&mut self, pod: &PodView<'_>, by: &Key) -> PodUpdate {
        let known = self.pod_named(pod.namespace, pod.name);
        let known = known.filter(|(_, known)| *known.uid.0 == *pod.uid);
        let is_newer = |known: &Entry| known.version.is_some() && known.version > pod.version;
        let Some((id, _)) = known.filter(|(_, known)| !is_newer(known)) else {
            return PodUpdate::Nothing;
        };
        let owner = OwnerReference::to_replica_set(by);
        if self.resolve(pod.namespace, owner.view()).is_none() {
            return PodUpdate::Nothing;
        }
        let controller = Some(owner.view());
        let news = self.change_pod(id, &PodView { controller, ..*pod });
        if let Some(entry) = self.pods.get_mut(id) {
            entry.is_presumed = true;
        }
        news
    }

    /// Takes the pods of a ReplicaSet whose owner is presumed for orphans again, if they were presumed to be its own for long enough.
    pub(crate) fn doubt_presumed(&mut self, id: SetId) {
        let now = self.now;
        let set = self.set_mut(id);
        let until = set.and_then(|set| set.pace.presumed_until.take_if(|until| *until <= now));
        if until.is_none() {
            return;
        }
        let owned = self.set(id).map(|set| set.owned.clone());
        owned.into_iter().flatten().for_each(|id| self.disown(id));
    }

    /// Takes a pod for an orphan again, if its owner is presumed.
    pub(super) fn disown(&mut self, id: PodId) {
        let presumed = self.pod(id).filter(|entry| entry.is_presumed);
        // A pod without its labels waits for them.
        let known = presumed.filter(|it| self.groups.at(it.group).labels.is_some());
        if let Some(pod) = known.map(|entry| self.pod_object(entry)) {
            let (controller, deleted) = (None, self.deletions.get(&id).copied());
            pod.viewed(|pod| {
                self.change_pod(
                    id,
                    &PodView {
                        controller,
                        deleted,
                        ..*pod
                    },
                )
            });
        }
    }

    /// Removes a pod that an outcome reports as deleted, and remembers the deletion until the stream has shown it.
    pub(crate) fn remove_written_pod(
        &mut self,
        namespace: &str,
        name: &str,
        uid: &Uid,
        version: Option<ResourceVersion>,
    ) -> Option<PodChange> {
        let id = self.pod_identified(namespace, name, uid)?;
        self.tombstones
            .insert(Kind::Pod, uid.clone(), version, self.pod_list);
        Some(self.take_out_pod(id))
    }

    /// Adds a pod that list number `snapshot` named; 0 if no list named it.
    fn add_pod(&mut self, pod: &PodView<'_>, snapshot: u32) -> (PodId, PodChange) {
        let namespace = self.namespaces.shared_name(pod.namespace);
        let set = pod
            .controller
            .and_then(|owner| self.resolve(pod.namespace, owner));
        let group = self.join_group(&namespace, pod, set);
        let id = self.pods.reserve();
        let mut entry = Entry {
            name: self.namespaces.name_pod(&namespace, pod.name, id),
            uid: Uid(pod.uid.into()),
            version: pod.version,
            group,
            node: pod.node.map(|node| self.nodes.join(node)),
            waiting: pod.waiting.map(|reason| self.waiting.join(reason)),
            state: pod.state,
            snapshot,
            position: 0,
            counted: Contribution::default(),
            made: Made::default(),
            is_victim: false,
            came_leaving: false,
            is_presumed: false,
        };
        entry.came_leaving = self.leaves(&entry);
        self.pod_count += 1;
        self.bytes += cost::pod(&entry.name, &entry.uid);
        self.note_deletion(id, pod.deleted);
        counting::list_pod(self, id, &mut entry, set);
        counting::count_on_node(self, &entry, 1);
        counting::count_pod(self, id, entry, set);
        let change = PodChange {
            pod: Some(id),
            owner: set,
            labels_changed: true,
            owner_changed: true,
            ..PodChange::default()
        };
        (id, change)
    }

    /// Adds a new pod, whose owner resolves to `set`, to its group: mostly that of the last pod of its ReplicaSet.
    fn join_group(
        &mut self,
        namespace: &Arc<str>,
        pod: &PodView<'_>,
        set: Option<SetId>,
    ) -> GroupId {
        let set = set.and_then(|set| self.set(set));
        let newest = set.and_then(|set| self.pod(*set.owned.last()?));
        let group = newest.map(|like| like.group).filter(|group| {
            let known = self.groups.at(*group);
            known.has_labels_of(pod) && known.has_owner_of(pod)
        });
        if let Some(group) = group {
            return self.groups.rejoin(group);
        }
        let set = set.map(|set| &set.object);
        let template = set.map(|set| &set.template_labels);
        let template = template.filter(|template| pod.has_labels(template));
        let labels = template.cloned().unwrap_or_else(|| pod.to_labels());
        let owner = pod.controller.map(|owner| to_owner(owner, set));
        self.groups.join(namespace, labels, owner)
    }

    /// Applies the shown state of a known pod. If nothing has changed that a decision reads, it updates the rest, such as the version. If
    /// not, it copies only the new values.
    fn change_pod(&mut self, id: PodId, pod: &PodView<'_>) -> PodUpdate {
        let Some(entry) = self.pod(id) else {
            return PodUpdate::Nothing;
        };
        let group = self.groups.at(entry.group);
        let (same_labels, same_owner) = (group.has_labels_of(pod), group.has_owner_of(pod));
        let same_node = self.node_of(entry).map(|node| &**node) == pod.node;
        let same_group = same_labels && same_owner;
        let is_same = same_group && same_node && entry.state == pod.state;
        self.note_deletion(id, pod.deleted);
        self.note_waiting(id, pod.waiting);
        if is_same {
            if let Some(entry) = self.pods.get_mut(id) {
                (entry.version, entry.is_presumed) = (pod.version, false);
            }
            let owner = pod.controller;
            return PodUpdate::Version(owner.and_then(|owner| self.resolve(pod.namespace, owner)));
        }
        let (mut entry, before) = counting::uncount_pod(self, id);
        let mut set = before;
        // These changes move an active pod between counts: its node and its group.
        let is_active = pod.state.is_active();
        let moves = !same_node || !same_group || entry.state.is_active() != is_active;
        if moves {
            counting::count_on_node(self, &entry, -1);
        }
        if !same_owner {
            counting::unlist_pod(self, &entry, set);
        }
        if !same_group {
            entry.group = self.groups.regroup(entry.group, pod);
        }
        if !same_owner {
            set = self.set_of(&entry);
            counting::list_pod(self, id, &mut entry, set);
        }
        if !same_node {
            if let Some(node) = entry.node.take() {
                self.nodes.leave(node);
            }
            entry.node = pod.node.map(|node| self.nodes.join(node));
        }
        entry.version = pod.version;
        entry.is_presumed = false;
        entry.state = pod.state;
        if !same_node {
            entry.came_leaving = self.leaves(&entry);
        }
        if moves {
            counting::count_on_node(self, &entry, 1);
        }
        counting::count_pod(self, id, entry, set);
        if let Some(before) = before {
            paid::replica_changed(self, id, before);
        }
        let change = PodChange {
            pod: Some(id),
            former: before,
            owner: set,
            labels_changed: !same_labels,
            owner_changed: !same_owner,
        };
        PodUpdate::Changed(None, change)
    }

    fn note_deletion(&mut self, id: PodId, deleted: Option<Timestamp>) {
        match deleted {
            Some(deleted) => self.deletions.insert(id, deleted),
            None => self.deletions.remove(&id),
        };
    }

    fn note_waiting(&mut self, id: PodId, reason: Option<&str>) {
        let known = self.pod(id).and_then(|entry| self.waiting_of(entry));
        if known.map(|known| &**known) == reason {
            return;
        }
        let joined = reason.map(|reason| self.waiting.join(reason));
        let entry = self.pods.get_mut(id);
        let left = entry.and_then(|entry| mem::replace(&mut entry.waiting, joined));
        left.into_iter().for_each(|left| self.waiting.leave(left));
    }

    pub(crate) fn take_out_pod(&mut self, id: PodId) -> PodChange {
        let (entry, set) = counting::uncount_pod(self, id);
        if let Some(set) = set.filter(|_| !entry.is_victim) {
            paid::lose(self, set, entry.made, Loss::Gone);
        }
        counting::count_on_node(self, &entry, -1);
        let namespace = Arc::clone(&self.groups.at(entry.group).namespace);
        counting::unlist_pod(self, &entry, set);
        self.pods.release(id);
        self.note_deletion(id, None);
        self.pod_count -= 1;
        self.bytes -= cost::pod(&entry.name, &entry.uid);
        self.groups.leave(entry.group);
        if let Some(node) = entry.node {
            self.nodes.leave(node);
        }
        if let Some(reason) = entry.waiting {
            self.waiting.leave(reason);
        }
        paid::free_name(self, &namespace, &entry.name);
        PodChange {
            former: set,
            ..PodChange::default()
        }
    }
}

/// Copies a reference, and shares the texts of the ReplicaSet that it resolves to.
fn to_owner(owner: OwnerView<'_>, set: Option<&ReplicaSet>) -> OwnerReference {
    let Some(Key { name, uid, .. }) = set.map(|set| &set.key) else {
        return owner.to_owner();
    };
    OwnerReference {
        name: Arc::clone(name),
        uid: uid.clone(),
        ..owner.to_owner()
    }
}

/// Returns whether a version is newer than a known one. Unknown versions count as newer: the latest arrival counts.
pub(super) fn is_newer(new: Option<ResourceVersion>, known: Option<ResourceVersion>) -> bool {
    new.is_none() || new > known
}

/// Returns whether an object is newer than a list, so that its absence from the list means nothing.
pub(super) fn is_after(object: Option<ResourceVersion>, list: Option<ResourceVersion>) -> bool {
    list.is_some() && object > list
}
