//! From a change to the keys that it wakes, branch by branch as upstream's event handlers (spec 3.2–3.6).

use crate::{
    index::{Index, PodChange, PodFacts, SetId},
    object::Span,
};

/// A key to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// At once.
    Now(SetId),
    /// After a while: when the pod will be available.
    After(SetId, Span),
}

/// What a change of a pod means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Woken {
    /// The keys to sync.
    pub(crate) keys: Vec<Wake>,
    /// More than one ReplicaSet matches the orphan: how many (spec 3.3).
    pub(crate) matches: usize,
}

/// Returns what a change of a pod wakes.
pub(crate) fn pod_changed(index: &Index, change: &PodChange) -> Woken {
    match (&change.old, &change.new) {
        (None, Some(new)) => pod_added(index, new),
        (Some(old), Some(new)) => pod_updated(index, old, new),
        (Some(old), None) => pod_deleted(index, old),
        (None, None) => Woken::default(),
    }
}

fn pod_added(index: &Index, pod: &PodFacts) -> Woken {
    if pod.deleting {
        return pod_deleted(index, pod);
    }
    match &pod.controller {
        Some(_) => owner(index, pod),
        None => selecting(index, pod),
    }
}

/// Upstream looks at a deletion first and then at nothing else (spec 3.5). Here several changes may come as one, so the owner that the
/// pod has lost is woken before anything else is looked at: its counts differ whatever happened besides.
fn pod_updated(index: &Index, old: &PodFacts, new: &PodFacts) -> Woken {
    let labels_changed = old.labels != new.labels;
    let owner_changed = old.controller != new.controller;
    let mut woken = Woken::default();
    if owner_changed {
        woken.keys.extend(owner(index, old).keys);
    }
    if new.deleting {
        woken.keys.extend(pod_deleted(index, new).keys);
    } else if new.controller.is_some() {
        let owned = owner(index, new);
        if !old.ready && new.ready {
            woken.keys.extend(availability(index, &owned));
        }
        woken.keys.extend(owned.keys);
    } else if labels_changed || owner_changed {
        let orphan = selecting(index, new);
        woken.keys.extend(orphan.keys);
        woken.matches = orphan.matches;
    }
    woken
}

fn pod_deleted(index: &Index, pod: &PodFacts) -> Woken {
    owner(index, pod)
}

/// Wakes the ReplicaSet that the pod's controller reference resolves to.
fn owner(index: &Index, pod: &PodFacts) -> Woken {
    let id = pod
        .controller
        .as_ref()
        .and_then(|owner| index.resolve(&pod.namespace, owner));
    Woken {
        keys: id.map(Wake::Now).into_iter().collect(),
        matches: 0,
    }
}

/// Wakes the ReplicaSets that may adopt the pod.
fn selecting(index: &Index, pod: &PodFacts) -> Woken {
    let ids = index.selecting(&pod.namespace, &pod.labels);
    Woken {
        matches: ids.len(),
        keys: ids.into_iter().map(Wake::Now).collect(),
    }
}

/// Wakes an owner once more when a pod that has become ready becomes available.
fn availability(index: &Index, owned: &Woken) -> Option<Wake> {
    let Some(Wake::Now(id)) = owned.keys.first() else {
        return None;
    };
    let seconds = index.set(*id)?.object.min_ready_seconds;
    (seconds > 0).then(|| Wake::After(*id, Span::seconds(i64::from(seconds))))
}
