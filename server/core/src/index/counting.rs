//! Which lists a pod stands in and what it is counted for.
//!
//! Listing follows the pod's owner; counting follows everything else. A change takes back what the old state counted and counts the new one,
//! so that it costs the same however many pods there are.

use std::sync::Arc;

use super::{
    Index, OWNER_KIND,
    group::Counting,
    pod::{Contribution, Entry, PodId},
};
use crate::object::{Key, OwnerReference, Timestamp};

impl Index {
    /// Puts an entry among the pods of its owner.
    pub(super) fn list_pod(&mut self, namespace: &Arc<str>, id: PodId, entry: &mut Entry) {
        let Some(owner) = &entry.controller else {
            return;
        };
        if let Some(key) = owner_key(namespace, owner) {
            let owned = self.owned.or_default(key);
            entry.position = u32::try_from(owned.len()).expect("no more pods than ids");
            owned.push(id);
        }
    }

    /// Takes an entry out of where [`Self::list_pod`] put it.
    pub(super) fn unlist_pod(&mut self, namespace: &Arc<str>, entry: &Entry) {
        let Some(owner) = &entry.controller else {
            return;
        };
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
        if let Some(moved) = moved.and_then(|moved| self.pods.get_mut(moved)) {
            moved.position = entry.position;
        }
    }

    /// Takes an entry out of its place and takes back what it counted.
    pub(super) fn uncount_pod(&mut self, id: PodId) -> Entry {
        let entry = self.pods.take(id).expect("the id came from the index");
        let group = self.groups.at(entry.group);
        let Some(owner) = &entry.controller else {
            if let Some(content) = self.namespaces.get_mut(&group.namespace) {
                content.orphans.remove(entry.group, &entry.name, id);
            }
            return entry;
        };
        let set = self.resolve(&group.namespace, owner.view());
        if let Some(set) = set.and_then(|id| self.sets.get_mut(&id)) {
            set.count_out(id, &entry);
        }
        entry
    }

    /// Puts an entry into its place and counts it.
    pub(super) fn count_pod(&mut self, now: Timestamp, id: PodId, mut entry: Entry) {
        let group = self.groups.at(entry.group);
        entry.counted = Contribution::default();
        match &entry.controller {
            Some(owner) => {
                let set = self.resolve(&group.namespace, owner.view());
                if let Some(set) = set.and_then(|id| self.sets.get_mut(&id)) {
                    entry.counted =
                        set.count_in(now, id, &entry, &self.groups.at(entry.group).labels);
                }
            }
            None => {
                if let Some(content) = self.namespaces.get_mut(&group.namespace)
                    && entry.state.is_active()
                {
                    let orphans = &mut content.orphans;
                    orphans.insert(entry.group, &group.labels, &entry.name, id);
                }
            }
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
