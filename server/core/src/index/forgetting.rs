//! What the index forgets for lack of memory: the content of the largest objects, that is, labels, selectors and conditions.
//!
//! The objects themselves stay known. A ReplicaSet without its content is quarantined. So is a ReplicaSet with pods whose labels are
//! forgotten: nobody knows which of them it selects. An orphan without its labels is adopted by none.
//!
//! **Invariant:** no decision rests on forgotten content.

use std::collections::BTreeSet;

use super::{Index, counting::count_anew, large, set::SetId};
use crate::{
    held::Held,
    labels::Labels,
    object::{ReplicaSet, Status},
};

/// Forgets the content of the largest objects until this many bytes are free, as far as there are large objects. Returns the ReplicaSets
/// that are quarantined from now on.
pub(crate) fn forget_largest(index: &mut Index, bytes: usize) -> BTreeSet<SetId> {
    let goal = index.bytes().saturating_sub(bytes);
    let (mut sets, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
    while index.bytes() > goal {
        let set = index.large.largest();
        let group = index.groups.large.largest();
        match (set, group) {
            (Some((size, id)), group) if group.is_none_or(|(other, _)| other <= size) => {
                forget_set(index, id, size);
                sets.insert(id);
            }
            (_, Some((size, id))) => namespaces.extend(index.groups.forget(id, size)),
            (_, None) => break,
        }
    }
    for namespace in namespaces {
        sets.extend(count_unknown(index, &namespace));
    }
    sets
}

fn forget_set(index: &mut Index, id: SetId, size: usize) {
    let Some(set) = index.set(id) else {
        return index.large.remove(id);
    };
    let known = &set.object;
    let stub = ReplicaSet {
        key: known.key.clone(),
        controller: known.controller.clone(),
        selector: Err(large::object(size)),
        template_labels: Labels::default(),
        status: Status {
            conditions: Vec::new(),
            ..known.status
        },
        resume: known.resume.clone(),
        preferences: known.preferences.clone(),
        replicas_manager: known.replicas_manager.clone(),
        ..*known
    };
    index.change_set(id, stub);
    index.large.forget(id, size);
}

/// Counts anew the ReplicaSets of a namespace that own pods whose labels are forgotten. Returns those that knew all labels before.
fn count_unknown(index: &mut Index, namespace: &str) -> Vec<SetId> {
    let content = index.namespaces.get(namespace).into_iter();
    let sets = content.flat_map(|content| content.sets.values());
    let sets = sets.filter_map(|id| Some((*id, index.set(*id)?)));
    let concerned = sets.filter(|(_, set)| {
        let mut pods = set.owned.iter().filter_map(|pod| index.pod(*pod));
        pods.any(|pod| index.groups.at(pod.group).labels.is_none())
    });
    let mut concerned: Vec<_> = concerned.map(|(id, _)| id).collect();
    concerned.retain(|id| {
        let is_new = index.set(*id).is_some_and(|set| set.counts.unknown == 0);
        count_anew(index, *id);
        is_new
    });
    concerned
}
