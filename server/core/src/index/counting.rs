//! The lists that contain a pod, and the counts that include it.
//!
//! Listing follows the pod's owner; counting follows everything else. A change removes the old state from the counts and adds the new one,
//! so that its cost does not depend on the number of pods.

use std::sync::Arc;

use super::{
    Index,
    group::PodGroup,
    map, paid,
    pod::{Contribution, Entry, PodId},
    set::SetId,
};
use crate::object::Key;

/// Adds an entry to the pods of its owner, which resolves to `set`.
pub(super) fn list_pod(index: &mut Index, id: PodId, entry: &mut Entry, set: Option<SetId>) {
    let owned = match set.and_then(|set| index.sets.get_mut(&set)) {
        Some(set) => &mut set.owned,
        None => match owner_key(index.groups.at(entry.group)) {
            Some(key) => index.owned_by_unknown.entry(key).or_default(),
            None => return,
        },
    };
    entry.position = u32::try_from(owned.len()).expect("no more pods than ids");
    owned.push(id);
    index.largest_set = index.largest_set.max(owned.len());
}

/// Undoes [`list_pod`].
pub(super) fn unlist_pod(index: &mut Index, entry: &Entry, set: Option<SetId>) {
    let moved = if let Some(set) = set.and_then(|set| index.sets.get_mut(&set)) {
        swap_out(&mut set.owned, entry.position)
    } else if let Some(key) = owner_key(index.groups.at(entry.group))
        && let Some(unknown) = index.owned_by_unknown.get_mut(&key)
    {
        let moved = swap_out(unknown, entry.position);
        if unknown.is_empty() {
            map::remove(&mut index.owned_by_unknown, &key);
        }
        moved
    } else {
        None
    };
    if let Some(moved) = moved.and_then(|moved| index.pods.get_mut(moved)) {
        moved.position = entry.position;
    }
}

/// Removes an entry from its place and from the counts. Also returns the ReplicaSet that its owner resolves to.
pub(super) fn uncount_pod(index: &mut Index, id: PodId) -> (Entry, Option<SetId>) {
    let entry = index.pods.take(id).expect("the id came from the index");
    let set = index.set_of(&entry);
    index.groups.remove_orphan(entry.group, &entry.name, id);
    if let Some(owner) = set
        && let Some(set) = index.sets.get_mut(&owner)
    {
        set.count_out(id, &entry);
        // The labels of all its pods are known again.
        if entry.counted.unknown && set.counts.unknown == 0 {
            count_anew(index, owner);
        }
    }
    (entry, set)
}

/// Puts an entry, whose owner resolves to `set`, into its place and counts it.
pub(super) fn count_pod(index: &mut Index, id: PodId, mut entry: Entry, set: Option<SetId>) {
    entry.counted = Contribution::default();
    if entry.state.is_active() {
        index.groups.add_orphan(entry.group, &entry.name, id);
    }
    if let Some(set) = set.and_then(|set| index.sets.get_mut(&set)) {
        let labels = index.groups.at(entry.group).labels.as_ref();
        entry.counted = set.count_in(index.now, id, &entry, labels);
    }
    index.pods.put(id, entry);
}

/// Counts an active pod on its node, and with the others of its group there.
pub(super) fn count_on_node(index: &mut Index, entry: &Entry, by: i32) {
    if entry.state.is_active() {
        index.groups.count(entry.group, entry.node, by);
        if let Some(node) = entry.node {
            index.nodes.count(node, by);
        }
    }
}

/// Returns the key of the ReplicaSet that controls the pods of a group; `None` if none does.
fn owner_key(group: &PodGroup) -> Option<Key> {
    let owner = group.controller.as_ref();
    owner
        .filter(|it| it.view().is_replica_set())
        .map(|owner| Key {
            namespace: Arc::clone(&group.namespace),
            name: Arc::clone(&owner.name),
            uid: owner.uid.clone(),
        })
}

/// Removes a pod from a list, and returns the pod that moved to its position.
fn swap_out(owned: &mut Vec<PodId>, position: u32) -> Option<PodId> {
    owned.swap_remove(position as usize);
    if owned.len() < owned.capacity() / map::SPARSE {
        owned.shrink_to(2 * owned.len());
    }
    owned.get(position as usize).copied()
}

/// Counts all pods of the ReplicaSet again: the cost of a new selector, template or minimum ready time.
pub(super) fn count_anew(index: &mut Index, id: SetId) {
    let Some(set) = index.sets.get_mut(&id) else {
        return;
    };
    set.reset();
    // Pods without labels are counted first, because no other pod counts beside them.
    for is_known in [false, true] {
        for at in 0..set.owned.len() {
            let pod = set.owned[at];
            if let Some(entry) = index.pods.get_mut(pod) {
                let labels = index.groups.at(entry.group).labels.as_ref();
                if labels.is_some() == is_known {
                    entry.counted = set.count_in(index.now, pod, entry, labels);
                }
            }
        }
    }
    for pod in set.owned.clone() {
        paid::replica_changed(index, pod, id);
    }
}
