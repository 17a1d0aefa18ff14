//! Pods come, change and go.

use std::sync::Arc;

use super::{
    Index, OWNER_KIND, PodChange, PodFacts,
    group::Step,
    pod::{Counted, Entry, PodId},
};
use crate::object::{Key, Kind, OwnerReference, Pod, ResourceVersion, Timestamp, Uid};

impl Index {
    /// Takes a pod as it is told, unless something newer is known. Returns the changes in order: at most the going of an older pod of
    /// the same name, then the coming or change of this one.
    pub(crate) fn apply_pod(&mut self, now: Timestamp, pod: Pod) -> Vec<PodChange> {
        let known = self
            .pod_named(&pod.namespace, &pod.name)
            .map(|(id, entry)| {
                (
                    id,
                    entry.uid == pod.uid,
                    is_newer(pod.version, entry.version),
                )
            });
        match known {
            Some((id, true, newer)) => {
                self.mark_pod(id);
                newer
                    .then(|| self.change_pod(now, id, pod))
                    .into_iter()
                    .collect()
            }
            Some((_, false, false)) => Vec::new(),
            Some((id, false, true)) if !self.is_gone(&pod) => {
                let gone = self.take_out_pod(id);
                vec![gone, self.add_pod(now, pod)]
            }
            None if !self.is_gone(&pod) => vec![self.add_pod(now, pod)],
            Some((_, false, true)) | None => Vec::new(),
        }
    }

    /// Takes a pod out, if it is known by this uid, and remembers that it is gone.
    pub(crate) fn remove_pod(
        &mut self,
        namespace: &str,
        name: &str,
        uid: &Uid,
        version: Option<ResourceVersion>,
    ) -> Option<PodChange> {
        let (id, entry) = self.pod_named(namespace, name)?;
        if entry.uid != *uid {
            return None;
        }
        if version.is_some() {
            self.tombstones.insert(Kind::Pod, uid.clone(), version);
        }
        Some(self.take_out_pod(id))
    }

    /// Remembers that a pod is gone although no event said so yet.
    pub(crate) fn bury_pod(&mut self, uid: &Uid, version: Option<ResourceVersion>) {
        self.tombstones.insert(Kind::Pod, uid.clone(), version);
    }

    /// Marks a pod as on its way out for good: the API never takes an accepted deletion back.
    pub(crate) fn condemn_pod(
        &mut self,
        now: Timestamp,
        namespace: &str,
        name: &str,
        uid: &Uid,
    ) -> Option<PodChange> {
        let (id, entry) = self.pod_named(namespace, name)?;
        if entry.uid != *uid || entry.condemned {
            return None;
        }
        Some(self.alter_pod(now, id, |entry| {
            entry.condemned = true;
            entry.deleting = true;
        }))
    }

    /// Sets the controller of a pod to what a write made it.
    pub(crate) fn own_pod(
        &mut self,
        now: Timestamp,
        (namespace, name, uid): (&str, &str, &Uid),
        controller: Option<OwnerReference>,
        version: Option<ResourceVersion>,
    ) -> Option<PodChange> {
        let (id, entry) = self.pod_named(namespace, name)?;
        if entry.uid != *uid {
            return None;
        }
        let controller = controller.map(|owner| self.owners.share(Arc::new(owner)));
        let old = self.pod(id).and_then(|entry| entry.controller.clone());
        let change = self.alter_pod(now, id, |entry| {
            entry.controller = controller;
            entry.version = entry.version.max(version);
        });
        if let Some(old) = old {
            self.owners.drop_one(&old);
        }
        Some(change)
    }

    /// Removes the pods that a complete list did not name and that are not newer than it. Returns the changes, by namespace and name.
    pub(crate) fn sweep_pods(
        &mut self,
        snapshot: u32,
        version: Option<ResourceVersion>,
    ) -> Vec<PodChange> {
        let stale = |entry: &&Entry| entry.snapshot < snapshot && !is_after(entry.version, version);
        let mut gone: Vec<(Arc<str>, Arc<str>, PodId)> = (0..)
            .zip(&self.pods)
            .filter_map(|(id, entry)| {
                let entry = entry.as_ref().filter(stale)?;
                Some((
                    Arc::clone(&self.groups.at(entry.group).namespace),
                    Arc::clone(&entry.name),
                    id,
                ))
            })
            .collect();
        gone.sort_unstable();
        self.tombstones.forget_unversioned(Kind::Pod);
        gone.into_iter()
            .map(|(_, _, id)| self.take_out_pod(id))
            .collect()
    }

    fn is_gone(&self, pod: &Pod) -> bool {
        self.tombstones.buries(Kind::Pod, &pod.uid, pod.version)
    }

    fn mark_pod(&mut self, id: PodId) {
        if let Some(entry) = self.pods.get_mut(id as usize).and_then(Option::as_mut) {
            entry.snapshot = self.snapshot;
        }
    }

    fn facts(&self, entry: &Entry) -> PodFacts {
        let group = self.groups.at(entry.group);
        PodFacts {
            namespace: Arc::clone(&group.namespace),
            name: Arc::clone(&entry.name),
            labels: Arc::clone(&group.labels),
            controller: entry.controller.clone(),
            deleting: entry.deleting,
            ready: entry.ready.ready,
        }
    }

    fn add_pod(&mut self, now: Timestamp, pod: Pod) -> PodChange {
        let namespace = self.namespace_name(&pod.namespace);
        let entry = self.entry(&namespace, pod);
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.pods.push(None);
            PodId::try_from(self.pods.len() - 1).expect("fewer than 2^32 pods fit in memory")
        });
        let name = Arc::clone(&entry.name);
        self.namespaces
            .entry(namespace)
            .or_default()
            .pods
            .insert(name, id);
        self.pod_count += 1;
        let new = self.facts(&entry);
        self.attach(now, id, entry);
        PodChange {
            old: None,
            new: Some(new),
        }
    }

    fn entry(&mut self, namespace: &Arc<str>, pod: Pod) -> Entry {
        Entry {
            group: self.groups.join(namespace, pod.labels),
            controller: pod
                .controller
                .map(|owner| self.owners.share(Arc::new(owner))),
            node: pod.node.map(|node| self.nodes.share(node)),
            name: pod.name,
            uid: pod.uid,
            version: pod.version,
            created: pod.created,
            ready: pod.ready,
            deletion_cost: pod.deletion_cost,
            restarts: pod.restarts,
            sidecar_restarts: pod.sidecar_restarts,
            phase: pod.phase,
            deleting: pod.deleting,
            condemned: false,
            snapshot: self.snapshot,
            position: 0,
            counted: Counted::default(),
        }
    }

    fn change_pod(&mut self, now: Timestamp, id: PodId, pod: Pod) -> PodChange {
        let namespace = self.namespace_name(&pod.namespace);
        let fresh = self.entry(&namespace, pod);
        let mut shared = None;
        let change = self.alter_pod(now, id, |entry| {
            let old = std::mem::replace(entry, fresh);
            entry.condemned = old.condemned;
            entry.deleting |= old.condemned;
            entry.name = Arc::clone(&old.name);
            shared = Some(old);
        });
        if let Some(old) = shared {
            self.let_go(&old);
        }
        change
    }

    /// Changes an entry between taking back what it counted and counting it anew.
    fn alter_pod(
        &mut self,
        now: Timestamp,
        id: PodId,
        alter: impl FnOnce(&mut Entry),
    ) -> PodChange {
        let mut entry = self.detach(id);
        let old = self.facts(&entry);
        alter(&mut entry);
        let new = self.facts(&entry);
        self.attach(now, id, entry);
        PodChange {
            old: Some(old),
            new: Some(new),
        }
    }

    fn take_out_pod(&mut self, id: PodId) -> PodChange {
        let entry = self.detach(id);
        let old = self.facts(&entry);
        self.vacant.push(id);
        self.pod_count -= 1;
        self.let_go(&entry);
        if let Some(content) = self.namespaces.get_mut(&old.namespace) {
            content.pods.remove(&entry.name);
            if content.is_empty() {
                self.namespaces.remove(&old.namespace);
            }
        }
        self.free_name(&old.namespace, &entry.name);
        PodChange {
            old: Some(old),
            new: None,
        }
    }

    /// Gives up an entry's share of what pods have in common.
    fn let_go(&mut self, entry: &Entry) {
        self.groups.leave(entry.group);
        if let Some(owner) = &entry.controller {
            self.owners.drop_one(owner);
        }
        if let Some(node) = &entry.node {
            self.nodes.drop_one(node);
        }
    }

    /// Takes an entry out of its place and takes back what it counted.
    fn detach(&mut self, id: PodId) -> Entry {
        let entry = self.pods[id as usize]
            .take()
            .expect("the id came from the index");
        if entry.is_active() {
            self.groups
                .count(entry.group, entry.node.as_ref(), Step::Out);
        }
        let namespace = Arc::clone(&self.groups.at(entry.group).namespace);
        match entry.controller.clone() {
            Some(owner) => self.disown(&namespace, &owner, id, &entry),
            None => self.detach_orphan(&namespace, id, &entry),
        }
        entry
    }

    fn disown(&mut self, namespace: &Arc<str>, owner: &OwnerReference, id: PodId, entry: &Entry) {
        if let Some(set) = self
            .resolve(namespace, owner)
            .and_then(|id| self.sets.get_mut(&id))
        {
            set.count_out(id, entry);
        }
        let Some(key) = owner_key(namespace, owner) else {
            return;
        };
        let Some(owned) = self.owned.get_mut(&key) else {
            return;
        };
        owned.swap_remove(entry.position as usize);
        let moved = owned.get(entry.position as usize).copied();
        if owned.is_empty() {
            self.owned.remove(&key);
        }
        if let Some(moved) = moved.and_then(|moved| self.pods[moved as usize].as_mut()) {
            moved.position = entry.position;
        }
    }

    fn detach_orphan(&mut self, namespace: &str, id: PodId, entry: &Entry) {
        let labels = Arc::clone(self.labels(entry));
        for set in self.matching(namespace, &labels) {
            if let Some(set) = self.sets.get_mut(&set) {
                set.adopts.remove(&(Arc::clone(&entry.name), id));
            }
        }
        if let Some(content) = self.namespaces.get_mut(namespace) {
            content.orphans.remove(&id);
        }
    }

    /// Puts an entry into its place and counts it.
    fn attach(&mut self, now: Timestamp, id: PodId, mut entry: Entry) {
        if entry.is_active() {
            self.groups
                .count(entry.group, entry.node.as_ref(), Step::In);
        }
        let namespace = Arc::clone(&self.groups.at(entry.group).namespace);
        let labels = Arc::clone(self.labels(&entry));
        match entry.controller.clone() {
            Some(owner) => {
                if let Some(key) = owner_key(&namespace, &owner) {
                    let owned = self.owned.entry(key).or_default();
                    entry.position = u32::try_from(owned.len()).expect("no more pods than ids");
                    owned.push(id);
                }
                let set = self
                    .resolve(&namespace, &owner)
                    .and_then(|id| self.sets.get_mut(&id));
                entry.counted = set.map_or_else(Counted::default, |set| {
                    set.count_in(now, id, &entry, &labels)
                });
            }
            None => {
                entry.counted = Counted::default();
                self.attach_orphan(&namespace, id, &entry, &labels);
            }
        }
        self.pods[id as usize] = Some(entry);
    }

    fn attach_orphan(
        &mut self,
        namespace: &str,
        id: PodId,
        entry: &Entry,
        labels: &crate::object::Labels,
    ) {
        if let Some(content) = self.namespaces.get_mut(namespace) {
            content.orphans.insert(id);
        }
        if !entry.is_active() {
            return;
        }
        for set in self.matching(namespace, labels) {
            if let Some(set) = self.sets.get_mut(&set) {
                set.adopts.insert((Arc::clone(&entry.name), id));
            }
        }
    }

    /// Tells the ReplicaSets that make names on this base that one is free.
    pub(crate) fn free_name(&mut self, namespace: &str, name: &str) {
        let Some(base) = name.len().checked_sub(5).and_then(|end| name.get(..end)) else {
            return;
        };
        let sets = self
            .namespaces
            .get(namespace)
            .and_then(|content| content.bases.get(base));
        for id in sets.cloned().into_iter().flatten() {
            if let Some(set) = self.sets.get_mut(&id) {
                set.cursor.freed(name);
            }
        }
    }

    /// Returns the shared copy of a namespace's name.
    pub(crate) fn namespace_name(&self, name: &Arc<str>) -> Arc<str> {
        self.namespaces
            .get_key_value(name)
            .map_or_else(|| Arc::clone(name), |(name, _)| Arc::clone(name))
    }
}

/// Returns the key of the ReplicaSet that a controller reference means; none if it means another kind.
fn owner_key(namespace: &Arc<str>, owner: &OwnerReference) -> Option<Key> {
    (&*owner.kind == OWNER_KIND).then(|| Key {
        namespace: Arc::clone(namespace),
        name: Arc::clone(&owner.name),
        uid: owner.uid.clone(),
    })
}

/// Returns whether a told version goes beyond a known one. Unknown versions count as newer: what arrives last counts.
pub(super) fn is_newer(told: Option<ResourceVersion>, known: Option<ResourceVersion>) -> bool {
    match (told, known) {
        (Some(told), Some(known)) => told > known,
        (None, _) | (_, None) => true,
    }
}

/// Returns whether an object is newer than a list, so that its absence from the list means nothing.
pub(super) fn is_after(object: Option<ResourceVersion>, list: Option<ResourceVersion>) -> bool {
    matches!((object, list), (Some(object), Some(list)) if object > list)
}
