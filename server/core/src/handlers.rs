//! From a change to the keys that it queues, branch by branch as upstream's event handlers (spec 3.2–3.6).

use crate::{
    index::{Index, PodChange, PodFacts, SetId},
    object::Span,
};

/// How many ReplicaSets are asked at once whether they may adopt an orphan.
pub(crate) const ASKED_AT_ONCE: usize = 256;

/// A key to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueue {
    /// At once.
    Now(SetId),
    /// After a while: when the pod will be available.
    After(SetId, Span),
}

/// What a change of a pod means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Affected {
    /// The keys to sync.
    pub(crate) keys: Vec<Enqueue>,
    /// Of an orphan: how many ReplicaSets match (spec 3.3).
    pub(crate) matches: usize,
    /// Of an orphan: the last ReplicaSet that was asked, if there are others behind it.
    pub(crate) next: Option<SetId>,
}

/// Returns what a change of a pod queues.
pub(crate) fn pod_changed(index: &Index, change: &PodChange) -> Affected {
    match (&change.old, &change.new) {
        (None, Some(new)) => pod_added(index, new),
        (Some(old), Some(new)) => pod_updated(index, old, new),
        (Some(old), None) => pod_deleted(index, old),
        (None, None) => Affected::default(),
    }
}

fn pod_added(index: &Index, pod: &PodFacts) -> Affected {
    if pod.deleting {
        return pod_deleted(index, pod);
    }
    match &pod.controller {
        Some(_) => owner(index, pod),
        None => selecting(index, pod),
    }
}

/// Upstream looks at a deletion first and then at nothing else (spec 3.5). Here several changes may come as one, so the owner that the
/// pod has lost is queued before anything else is looked at: its counts differ whatever happened besides.
fn pod_updated(index: &Index, old: &PodFacts, new: &PodFacts) -> Affected {
    let labels_changed = old.labels != new.labels;
    let owner_changed = old.controller != new.controller;
    let mut affected = Affected::default();
    if owner_changed {
        affected.keys.extend(owner(index, old).keys);
    }
    if new.deleting {
        affected.keys.extend(pod_deleted(index, new).keys);
    } else if new.controller.is_some() {
        let owned = owner(index, new);
        if !old.ready && new.ready {
            affected.keys.extend(availability(index, &owned));
        }
        affected.keys.extend(owned.keys);
    } else if labels_changed || owner_changed {
        let orphan = selecting(index, new);
        affected.keys.extend(orphan.keys);
        affected.matches = orphan.matches;
        affected.next = orphan.next;
    }
    affected
}

fn pod_deleted(index: &Index, pod: &PodFacts) -> Affected {
    owner(index, pod)
}

/// Queues the ReplicaSet that the pod's controller reference resolves to.
fn owner(index: &Index, pod: &PodFacts) -> Affected {
    let id = pod
        .controller
        .as_ref()
        .and_then(|owner| index.resolve(&pod.namespace, owner.view()));
    Affected {
        keys: id.map(Enqueue::Now).into_iter().collect(),
        ..Affected::default()
    }
}

/// Queues the first of the ReplicaSets that may adopt the pod.
fn selecting(index: &Index, pod: &PodFacts) -> Affected {
    let selecting = index.selecting(&pod.namespace, &pod.labels, None, ASKED_AT_ONCE);
    Affected {
        matches: selecting.ids.len(),
        keys: selecting.ids.into_iter().map(Enqueue::Now).collect(),
        next: selecting.next,
    }
}

/// Queues an owner once more when a pod that has become ready becomes available.
fn availability(index: &Index, owned: &Affected) -> Option<Enqueue> {
    let Some(Enqueue::Now(id)) = owned.keys.first() else {
        return None;
    };
    let seconds = index.set(*id)?.object.min_ready_seconds;
    (seconds > 0).then(|| Enqueue::After(*id, Span::seconds(i64::from(seconds))))
}
