//! From a change to the keys that it queues, branch by branch as upstream's event handlers (spec 3.2–3.6).

use crate::{
    index::{Index, PodChange, PodFacts, SetId},
    object::Span,
};

/// A key to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueue {
    /// At once.
    Now(SetId),
    /// After a while: when the pod will be available.
    After(SetId, Span),
}

/// How many keys a change of a pod queues for its owners at most: of the one that lost it, and of the one that has it, at once and later.
const OWNERS_MAX: usize = 3;

/// What a change of a pod means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Affected {
    /// The owners to sync, in this order; most changes have one, so there is no list of its own for it.
    owners: [Option<Enqueue>; OWNERS_MAX],
    /// Of an orphan: the ReplicaSets that match (spec 3.3), which are synced next.
    selecting: Vec<SetId>,
}

// === impl Affected ===

impl Affected {
    /// Returns the keys to sync, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Enqueue> {
        let selecting = self.selecting.iter().copied().map(Enqueue::Now);
        self.owners.iter().flatten().copied().chain(selecting)
    }

    /// Of an orphan: returns how many ReplicaSets match.
    pub(crate) const fn matches(&self) -> usize {
        self.selecting.len()
    }

    fn queue(&mut self, key: Option<Enqueue>) {
        if let Some(free) = self.owners.iter_mut().find(|owner| owner.is_none()) {
            *free = key;
        }
    }
}

/// Returns what a change of a pod queues.
pub(crate) fn pod_changed(index: &Index, change: &PodChange) -> Affected {
    match (&change.old, &change.new) {
        (None, Some(new)) => pod_added(index, new),
        (Some(old), Some(new)) => pod_updated(index, old, new),
        (Some(old), None) => queue_owner(old),
        (None, None) => Affected::default(),
    }
}

fn pod_added(index: &Index, pod: &PodFacts) -> Affected {
    if pod.deleting {
        return queue_owner(pod);
    }
    match &pod.controller {
        Some(_) => queue_owner(pod),
        None => Affected {
            selecting: index.selecting(&pod.namespace, &pod.labels),
            ..Affected::default()
        },
    }
}

/// Upstream looks at a deletion first and then at nothing else (spec 3.5). Here several changes may come as one, so the owner that the
/// pod has lost is queued before anything else is looked at: its counts differ whatever happened besides.
fn pod_updated(index: &Index, old: &PodFacts, new: &PodFacts) -> Affected {
    let labels_changed = old.labels != new.labels;
    let owner_changed = old.controller != new.controller;
    let mut affected = Affected::default();
    if owner_changed {
        affected.queue(old.owner.map(Enqueue::Now));
    }
    if new.deleting {
        affected.queue(new.owner.map(Enqueue::Now));
    } else if new.controller.is_some() {
        if !old.ready && new.ready {
            affected.queue(new.owner.and_then(|id| availability(index, id)));
        }
        affected.queue(new.owner.map(Enqueue::Now));
    } else if labels_changed || owner_changed {
        affected.selecting = index.selecting(&new.namespace, &new.labels);
    }
    affected
}

/// Queues the ReplicaSet that the pod's controller reference resolves to.
fn queue_owner(pod: &PodFacts) -> Affected {
    let mut affected = Affected::default();
    affected.queue(pod.owner.map(Enqueue::Now));
    affected
}

/// Queues an owner once more when a pod that has become ready becomes available.
fn availability(index: &Index, id: SetId) -> Option<Enqueue> {
    let seconds = index.set(id)?.object.min_ready_seconds;
    (seconds > 0).then(|| Enqueue::After(id, Span::seconds(i64::from(seconds))))
}
