//! Which lists a pod stands in and what it is counted for.
//!
//! Listing follows the pod's owner; counting follows everything else. A change takes back what the old state counted and counts the new one,
//! so that it costs the same however many pods there are.

use std::sync::Arc;

use super::{
    Index, OWNER_KIND,
    group::Counting,
    pod::{Contribution, Entry, PodId},
    set::SetId,
};
use crate::object::{Key, OwnerReference, Timestamp};

impl Index {
    /// Returns the ReplicaSet that the owner of an entry resolves to.
    pub(super) fn set_of(&self, entry: &Entry) -> Option<SetId> {
        let owner = entry.controller.as_ref()?;
        self.resolve(&self.groups.at(entry.group).namespace, owner.view())
    }

    /// Puts an entry among the pods of its owner, which resolves to `set`.
    pub(super) fn list_pod(
        &mut self,
        namespace: &Arc<str>,
        id: PodId,
        entry: &mut Entry,
        set: Option<SetId>,
    ) {
        let Some(owner) = &entry.controller else {
            return;
        };
        let owned = match set.and_then(|set| self.sets.get_mut(&set)) {
            Some(set) => &mut set.owned,
            None => match owner_key(namespace, owner) {
                Some(key) => self.owned_by_unknown.entry(key).or_default(),
                None => return,
            },
        };
        entry.position = u32::try_from(owned.len()).expect("no more pods than ids");
        owned.push(id);
        self.largest_set = self.largest_set.max(owned.len());
    }

    /// Takes an entry out of where [`Self::list_pod`] put it.
    pub(super) fn unlist_pod(&mut self, namespace: &Arc<str>, entry: &Entry, set: Option<SetId>) {
        let Some(owner) = &entry.controller else {
            return;
        };
        let moved = match set.and_then(|set| self.sets.get_mut(&set)) {
            Some(set) => swap_out(&mut set.owned, entry.position),
            None => {
                let Some(key) = owner_key(namespace, owner) else {
                    return;
                };
                let Some(owned) = self.owned_by_unknown.get_mut(&key) else {
                    return;
                };
                let moved = swap_out(owned, entry.position);
                if owned.is_empty() {
                    self.owned_by_unknown.remove(&key);
                }
                moved
            }
        };
        if let Some(moved) = moved.and_then(|moved| self.pods.get_mut(moved)) {
            moved.position = entry.position;
        }
    }

    /// Takes an entry out of its place and takes back what it counted. Returns the ReplicaSet that its owner resolves to as well.
    pub(super) fn uncount_pod(&mut self, id: PodId) -> (Entry, Option<SetId>) {
        let entry = self.pods.take(id).expect("the id came from the index");
        let set = self.set_of(&entry);
        if entry.controller.is_none() {
            let group = self.groups.at(entry.group);
            if let Some(content) = self.namespaces.get_mut(&group.namespace) {
                content.orphans.remove(entry.group, &entry.name, id);
            }
        } else if let Some(set) = set.and_then(|set| self.sets.get_mut(&set)) {
            set.count_out(id, &entry);
        }
        (entry, set)
    }

    /// Puts an entry, whose owner resolves to `set`, into its place and counts it.
    pub(super) fn count_pod(
        &mut self,
        now: Timestamp,
        id: PodId,
        mut entry: Entry,
        set: Option<SetId>,
    ) {
        let group = self.groups.at(entry.group);
        entry.counted = Contribution::default();
        if entry.controller.is_none() {
            if let Some(content) = self.namespaces.get_mut(&group.namespace)
                && entry.state.is_active()
            {
                let orphans = &mut content.orphans;
                orphans.insert(entry.group, &group.labels, &entry.name, id);
            }
        } else if let Some(set) = set.and_then(|set| self.sets.get_mut(&set)) {
            entry.counted = set.count_in(now, id, &entry, &group.labels);
        }
        self.pods.put(id, entry);
    }

    /// Counts an entry in or out among the active pods of its node.
    pub(super) fn count_on_node(&mut self, entry: &Entry, counting: Counting) {
        if entry.state.is_active() {
            self.groups.count(entry.group, entry.node, counting);
        }
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

/// Takes a pod out of a list, and returns the one that has its place then.
fn swap_out(owned: &mut Vec<PodId>, position: u32) -> Option<PodId> {
    owned.swap_remove(position as usize);
    owned.get(position as usize).copied()
}
