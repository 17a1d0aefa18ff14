//! The pods that creates of this session have made, and the creates that are lost. [`ledger`](super::ledger) counts these.
//!
//! **Invariant:** a pod is marked as made only while it is an active pod of the ReplicaSet whose create made it. When that ends, the create
//! is lost or credited, once. While the ReplicaSet is quarantined, nobody knows which pods it selects, so each of its pods keeps its mark.

use super::{Index, Loss, Made, pod::PodId, set::SetId};
use crate::{names, object::Key};

/// Records that a create of a ReplicaSet made the pod of this name and UID, now. Returns whether the create is lost already: the pod is
/// no active pod of the ReplicaSet.
pub(crate) fn pay(
    index: &mut Index,
    set: SetId,
    (namespace, name, uid): (&str, &str, Option<&str>),
) -> bool {
    let made = Made::at(index.now);
    let known = index.pod_named(namespace, name);
    let known = known.filter(|(_, entry)| uid.is_none_or(|uid| *entry.uid.0 == *uid));
    let known = known.map(|(id, _)| id);
    if let Some(id) = known.filter(|id| is_replica(index, *id, set))
        && let Some(entry) = index.pods.get_mut(id)
    {
        (entry.made, entry.is_victim) = (made, false);
        return false;
    }
    let how = known.map_or(Loss::Gone, |id| loss_of(index, id));
    lose(index, set, made, how);
    true
}

/// Records the pods that the view shows under names whose creates had no answer.
pub(crate) fn pay_for_shown(index: &mut Index, id: SetId) {
    let set = index.sets.get_mut(&id);
    let Some(set) = set.filter(|set| set.cursor.open_names() > 0) else {
        return;
    };
    let namespace = set.object.key.namespace.clone();
    let usage = |name: &str| index.namespaces.name_use(&namespace, name);
    let base = names::base(&set.generate_name);
    for name in set.cursor.take_shown(base, usage) {
        pay(index, id, (&namespace, &name, None));
    }
}

/// Frees the name of a pod that is gone. If an unanswered create has made the pod, and the view has not shown it, that create is lost.
pub(super) fn free_name(index: &mut Index, namespace: &str, name: &str) {
    index.namespaces.unname_pod(namespace, name);
    let Some(base) = names::base_of_pod(name) else {
        return;
    };
    let mut unseen = Vec::new();
    for id in index.namespaces.of_base(namespace, base) {
        if let Some(set) = index.sets.get_mut(&id)
            && set.name_base() == base
            && set.cursor.mark_gone(name)
        {
            unseen.push(id);
        }
    }
    for id in unseen {
        lose(index, id, Made::at(index.now), Loss::Gone);
    }
}

pub(crate) fn mark_victims<'a>(
    index: &mut Index,
    namespace: &str,
    names: impl IntoIterator<Item = &'a str>,
    are_victims: bool,
) {
    for name in names {
        let known = index.pod_named(namespace, name).map(|(id, _)| id);
        if let Some(entry) = known.and_then(|id| index.pods.get_mut(id)) {
            entry.is_victim = are_victims;
        }
    }
}

/// Notes that pods are deleted because they have replacements. The create of one that came to a leaving node is lost at any age, since the
/// next one may come there, too: it counts as made now.
pub(crate) fn mark_replaced<'a>(
    index: &mut Index,
    namespace: &str,
    names: impl IntoIterator<Item = &'a str>,
) {
    let now = Made::at(index.now);
    for name in names {
        let known = index.pod_named(namespace, name).map(|(id, _)| id);
        let entry = known.and_then(|id| index.pods.get_mut(id));
        if let Some(entry) = entry.filter(|it| it.came_leaving && it.made != Made::default()) {
            entry.made = now;
        }
    }
}

/// Records that a pod of a ReplicaSet has changed: it may be no active pod of the ReplicaSet any more.
pub(super) fn replica_changed(index: &mut Index, id: PodId, of: SetId) {
    let is_paid = index.pod(id).is_some_and(|pod| pod.made != Made::default());
    if !is_paid || is_replica(index, id, of) {
        return;
    }
    let how = loss_of(index, id);
    if let Some(entry) = index.pods.get_mut(id) {
        let made = std::mem::take(&mut entry.made);
        if !std::mem::take(&mut entry.is_victim) {
            lose(index, of, made, how);
        }
    }
}

/// Counts a create as lost, if its pod has not lived for a minute.
pub(super) fn lose(index: &mut Index, set: SetId, made: Made, how: Loss) {
    if made.is_young(index.now)
        && let Some(set) = index.sets.get(&set)
        && let Some(ledger) = &mut index.ledger
    {
        let key = &set.object.key;
        ledger.lose(index.now, key, set.wanted().unsigned_abs(), (1, how));
    }
}

/// Counts creates as lost whose pods nobody follows any more.
pub(crate) fn lose_unfollowed(index: &mut Index, key: &Key, creates: usize) {
    if let Some(ledger) = &mut index.ledger {
        let creates = u32::try_from(creates).unwrap_or(u32::MAX);
        ledger.lose(index.now, key, 0, (creates, Loss::Unfollowed));
    }
}

/// Returns the number of creates of a ReplicaSet whose pods may be young: active ones, and unanswered ones. Victims count, since their
/// deletes may be refused.
pub(crate) fn young_creates(index: &Index, id: SetId) -> usize {
    let Some(set) = index.set(id) else {
        return 0;
    };
    let pods = set.owned.iter().filter_map(|pod| index.pod(*pod));
    let young = pods.filter(|pod| pod.made.is_young(index.now));
    young.count() + set.cursor.open_names()
}

/// Whether a pod is an active pod of a ReplicaSet, or may be one for all that is known.
fn is_replica(index: &Index, id: PodId, of: SetId) -> bool {
    let is_quarantined = index.set(of).is_some_and(|set| set.selector().is_none());
    let entry = index.pod(id);
    entry
        .filter(|pod| pod.counted.active || (is_quarantined && pod.state.is_active()))
        .is_some_and(|pod| index.set_of(pod) == Some(of))
}

fn loss_of(index: &Index, id: PodId) -> Loss {
    match index.pod(id).map(|entry| entry.state) {
        None => Loss::Gone,
        Some(state) if state.is_active() => Loss::NotSelected,
        Some(state) if state.deleting => Loss::Deleted,
        Some(state) => Loss::Phase(state.phase),
    }
}
