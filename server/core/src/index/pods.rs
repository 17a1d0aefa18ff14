//! Pods come, change and go: as the stream shows them, and as outcomes carry them.
//!
//! An outcome counts at once, and one that comes late takes back nothing that the stream has shown since.

use std::sync::Arc;

use super::{
    Index, PodChange, PodFacts, PodNews, cost,
    group::Counting,
    pod::{Contribution, Entry, PodId},
};
use crate::{
    object::{Kind, OwnerReference, Pod, ResourceVersion, Timestamp, Uid},
    pod_view::PodView,
};

impl Index {
    /// Takes a pod as the stream shows it, unless something newer is known.
    pub(crate) fn apply_pod(&mut self, now: Timestamp, pod: &PodView<'_>) -> PodNews {
        let known = self.pod_named(pod.namespace, pod.name);
        let known = known.map(|(id, entry)| {
            let is_same = *entry.uid.0 == *pod.uid;
            (id, is_same, is_newer(pod.version, entry.version))
        });
        match known {
            Some((id, true, newer)) => {
                self.mark_pod(id);
                if newer {
                    return self.change_pod(now, id, pod);
                }
                PodNews::Nothing
            }
            Some((id, false, true)) if !self.is_gone(pod) => {
                let old = self.take_out_pod(id);
                PodNews::Changed(Some(old), self.add_pod(now, pod, self.snapshot))
            }
            None if !self.is_gone(pod) => {
                PodNews::Changed(None, self.add_pod(now, pod, self.snapshot))
            }
            Some((_, false, _)) | None => PodNews::Nothing,
        }
    }

    /// Returns whether a pod is known to be gone at this version.
    fn is_gone(&self, pod: &PodView<'_>) -> bool {
        !self.tombstones.is_empty() && {
            let uid = Uid(pod.uid.into());
            self.tombstones.covers(Kind::Pod, &uid, pod.version)
        }
    }

    /// Takes a pod out, if it is known by this uid, because the stream says that it is gone.
    pub(crate) fn remove_pod(
        &mut self,
        namespace: &str,
        name: &str,
        uid: &Uid,
        version: Option<ResourceVersion>,
    ) -> Option<PodChange> {
        // The outcome of its creation may still be under way, and without versions only this shows that it is the older news.
        let may_return = version.is_some() || self.is_in_making(namespace, name);
        self.tombstones.remove(Kind::Pod, uid);
        if may_return {
            self.tombstones
                .insert(Kind::Pod, uid.clone(), version, self.pod_list);
        }
        let (id, _) = self
            .pod_named(namespace, name)
            .filter(|(_, entry)| entry.uid == *uid)?;
        Some(self.take_out_pod(id))
    }

    /// Takes a pod that a create made, unless the stream has gone beyond it: then a pod that is not known is gone already.
    pub(crate) fn apply_created_pod(
        &mut self,
        now: Timestamp,
        pod: &PodView<'_>,
        seen: Option<ResourceVersion>,
    ) -> PodNews {
        let passed = pod.version.is_some() && pod.version <= seen;
        match self.pod_named(pod.namespace, pod.name) {
            Some((id, known)) if *known.uid.0 == *pod.uid => {
                if is_newer_written(pod.version, known.version) {
                    return self.change_pod(now, id, pod);
                }
                PodNews::Nothing
            }
            // The stream has yet to show that the pod of this name before it is gone.
            Some((id, known))
                if !passed
                    && known.version.is_some()
                    && pod.version > known.version
                    && !self.is_gone(pod) =>
            {
                let old = self.take_out_pod(id);
                PodNews::Changed(Some(old), self.add_pod(now, pod, 0))
            }
            None if !passed && !self.is_gone(pod) => {
                PodNews::Changed(None, self.add_pod(now, pod, 0))
            }
            Some(_) | None => PodNews::Nothing,
        }
    }

    /// Takes a known pod as a write returned it.
    pub(crate) fn apply_written_pod(&mut self, now: Timestamp, pod: &PodView<'_>) -> PodNews {
        match self.pod_named(pod.namespace, pod.name) {
            Some((id, known))
                if *known.uid.0 == *pod.uid && is_newer_written(pod.version, known.version) =>
            {
                self.change_pod(now, id, pod)
            }
            Some(_) | None => PodNews::Nothing,
        }
    }

    /// Takes out a pod of which an outcome says that it is gone, and remembers that until the stream has shown it.
    pub(crate) fn remove_written_pod(
        &mut self,
        namespace: &str,
        name: &str,
        uid: &Uid,
        version: Option<ResourceVersion>,
    ) -> Option<PodChange> {
        let (id, _) = self
            .pod_named(namespace, name)
            .filter(|(_, entry)| entry.uid == *uid)?;
        self.tombstones
            .insert(Kind::Pod, uid.clone(), version, self.pod_list);
        Some(self.take_out_pod(id))
    }

    /// Adds a pod that list number `snapshot` named; 0 if no list did.
    fn add_pod(&mut self, now: Timestamp, pod: &PodView<'_>, snapshot: u32) -> PodChange {
        let namespace = self.namespace_name(pod.namespace);
        let (group, controller) = self.share(&namespace, pod);
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.pods.push(None);
            PodId::try_from(self.pods.len() - 1).expect("fewer than 2^32 pods fit in memory")
        });
        let mut entry = Entry {
            name: pod.name.into(),
            uid: Uid(pod.uid.into()),
            version: pod.version,
            group,
            controller,
            node: pod.node.map(|node| self.share_node(node)),
            state: pod.state,
            snapshot,
            position: 0,
            counted: Contribution::default(),
        };
        let content = self.namespaces.entry(Arc::clone(&namespace)).or_default();
        content.pods.insert(Arc::clone(&entry.name), id);
        self.pod_count += 1;
        self.bytes += cost::pod(&entry.name, &entry.uid);
        self.list_pod(&namespace, id, &mut entry);
        let new = self.facts(&entry);
        self.count_on_node(&entry, Counting::In);
        self.count_pod(now, id, entry);
        PodChange {
            old: None,
            new: Some(new),
        }
    }

    /// Returns the group and the owner of a new pod. Most are like the last pod of their ReplicaSet, and share what that has.
    fn share(
        &mut self,
        namespace: &Arc<str>,
        pod: &PodView<'_>,
    ) -> (u32, Option<Arc<OwnerReference>>) {
        let (mut group, mut shared) = (None, None);
        if let Some(like) = self.newest_sibling(pod) {
            let known = self.groups.at(like.group);
            let is_same = *known.namespace == *pod.namespace && pod.has_labels(&known.labels);
            group = is_same.then_some(like.group);
            let owner = like.controller.as_ref();
            shared = owner.filter(|owner| pod.has_owner(Some(owner))).cloned();
        }
        let group = match group {
            Some(group) => self.groups.rejoin(group),
            None => self.groups.join(namespace, pod.to_labels()),
        };
        let owner = pod.controller.map(|owner| match shared {
            Some(shared) => self.owners.share(shared),
            None => self.owners.share(Arc::new(owner.to_owner())),
        });
        (group, owner)
    }

    /// Returns the pod that was added last to those that the owner of this one has.
    fn newest_sibling(&self, pod: &PodView<'_>) -> Option<&Entry> {
        let set = self.set(self.resolve(pod.namespace, pod.controller?)?)?;
        let newest = self.owned.get(&set.object.key)?.last()?;
        self.pod(*newest)
    }

    fn share_node(&mut self, node: &str) -> Arc<str> {
        let known = self.nodes.share_known(node);
        known.unwrap_or_else(|| self.nodes.share(node.into()))
    }

    /// Lets a pod be as it is shown. Where nothing has changed that is kept, no more than its version is touched.
    fn change_pod(&mut self, now: Timestamp, id: PodId, pod: &PodView<'_>) -> PodNews {
        if let Some(entry) = self.pod(id)
            && entry.state == pod.state
            && entry.node.as_deref() == pod.node
            && pod.has_owner(entry.controller.as_deref())
            && pod.has_labels(&self.groups.at(entry.group).labels)
        {
            if let Some(entry) = self.pods.get_mut(id as usize).and_then(Option::as_mut) {
                entry.version = pod.version;
            }
            let owner = pod.controller;
            return PodNews::Version(owner.and_then(|owner| self.resolve(pod.namespace, owner)));
        }
        let pod = pod.to_pod();
        let mut entry = self.uncount_pod(id);
        let old = self.facts(&entry);
        let moves = self.moves(&entry, &pod);
        if moves {
            self.count_on_node(&entry, Counting::Out);
        }
        self.take_over(id, &mut entry, pod);
        if moves {
            self.count_on_node(&entry, Counting::In);
        }
        let new = self.facts(&entry);
        self.count_pod(now, id, entry);
        let change = PodChange {
            old: Some(old),
            new: Some(new),
        };
        PodNews::Changed(None, change)
    }

    /// Returns whether a new state may change where the pod is counted as active: on which node, and with which labels.
    fn moves(&self, entry: &Entry, new: &Pod) -> bool {
        entry.node != new.node
            || entry.state.is_active() != new.state.is_active()
            || *self.groups.at(entry.group).labels != new.labels
    }

    /// Makes an entry show the new state.
    fn take_over(&mut self, id: PodId, entry: &mut Entry, new: Pod) {
        let Pod {
            namespace: _,
            name: _,
            uid: _,
            version,
            labels,
            controller,
            node,
            state,
        } = new;
        entry.group = self.groups.regroup(entry.group, labels);
        if entry.node != node {
            if let Some(node) = entry.node.take() {
                self.nodes.drop_one(&node);
            }
            entry.node = node.map(|node| self.nodes.share(node));
        }
        if entry.controller.as_deref() != controller.as_ref() {
            self.change_owner(id, entry, controller.map(Arc::new));
        }
        (entry.version, entry.state) = (version, state);
    }

    pub(super) fn take_out_pod(&mut self, id: PodId) -> PodChange {
        let entry = self.uncount_pod(id);
        self.count_on_node(&entry, Counting::Out);
        let old = self.facts(&entry);
        self.unlist_pod(&old.namespace, &entry);
        self.vacant.push(id);
        self.pod_count -= 1;
        self.bytes -= cost::pod(&entry.name, &entry.uid);
        self.groups.leave(entry.group);
        if let Some(owner) = &entry.controller {
            self.owners.drop_one(owner);
        }
        if let Some(node) = &entry.node {
            self.nodes.drop_one(node);
        }
        if let Some(content) = self.namespaces.get_mut(&old.namespace) {
            content.pods.remove(&entry.name);
        }
        self.drop_empty_namespace(&old.namespace);
        self.retire_name(&old.namespace, &entry.name);
        PodChange {
            old: Some(old),
            new: None,
        }
    }

    /// Gives an entry another owner, and moves it to that owner's pods.
    fn change_owner(
        &mut self,
        id: PodId,
        entry: &mut Entry,
        controller: Option<Arc<OwnerReference>>,
    ) {
        let namespace = Arc::clone(&self.groups.at(entry.group).namespace);
        self.unlist_pod(&namespace, entry);
        if let Some(old) = entry.controller.take() {
            self.owners.drop_one(&old);
        }
        entry.controller = controller.map(|owner| self.owners.share(owner));
        self.list_pod(&namespace, id, entry);
    }

    fn facts(&self, entry: &Entry) -> PodFacts {
        let group = self.groups.at(entry.group);
        PodFacts {
            namespace: Arc::clone(&group.namespace),
            name: Arc::clone(&entry.name),
            labels: Arc::clone(&group.labels),
            controller: entry.controller.clone(),
            deleting: entry.state.deleting,
            ready: entry.state.ready.ready,
        }
    }

    fn mark_pod(&mut self, id: PodId) {
        if let Some(entry) = self.pods.get_mut(id as usize).and_then(Option::as_mut) {
            entry.snapshot = self.snapshot;
        }
    }
}

/// Returns whether a version goes beyond a known one. Unknown versions count as newer: what arrives last counts.
pub(super) fn is_newer(new: Option<ResourceVersion>, known: Option<ResourceVersion>) -> bool {
    match (new, known) {
        (Some(new), Some(known)) => new > known,
        (None, _) | (_, None) => true,
    }
}

/// Returns whether an outcome's object goes beyond the known one. Where only the known one has a version, the stream knows better.
fn is_newer_written(written: Option<ResourceVersion>, known: Option<ResourceVersion>) -> bool {
    is_newer(written, known) && (written.is_some() || known.is_none())
}

/// Returns whether an object is newer than a list, so that its absence from the list means nothing.
pub(super) fn is_after(object: Option<ResourceVersion>, list: Option<ResourceVersion>) -> bool {
    matches!((object, list), (Some(object), Some(list)) if object > list)
}
