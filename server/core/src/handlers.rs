//! The keys that a change queues, branch by branch as in upstream's event handlers (spec 3.2–3.6).

use crate::{
    index::{Index, PodChange, PodFacts, SetId},
    object::Span,
};

/// A key to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueue {
    /// At once.
    Now(SetId),
    /// After a delay: when the pod becomes available.
    After(SetId, Span),
}

/// The maximum number of keys that a change of a pod queues for its owners: the former owner, and the current owner at once and later.
const OWNERS_MAX: usize = 3;

/// The ReplicaSets that a change of a pod affects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Affected {
    /// The owners to sync, in this order. Most changes have one, so the array needs no allocation.
    owners: [Option<Enqueue>; OWNERS_MAX],
    /// For an orphan, the ReplicaSets that match it (spec 3.3), which are synced next.
    selecting: Vec<SetId>,
}

// === impl Affected ===

impl Affected {
    pub(crate) fn keys(&self) -> impl Iterator<Item = Enqueue> {
        let selecting = self.selecting.iter().copied().map(Enqueue::Now);
        self.owners.iter().flatten().copied().chain(selecting)
    }

    /// For an orphan, the number of ReplicaSets that match it.
    pub(crate) const fn matches(&self) -> usize {
        self.selecting.len()
    }

    fn queue(&mut self, key: Option<Enqueue>) {
        if let Some(free) = self.owners.iter_mut().find(|owner| owner.is_none()) {
            *free = key;
        }
    }
}

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

/// Upstream handles a deletion first and then nothing else (spec 3.5). Here several changes may come as one, so the owner that lost the pod
/// is queued first: its counts differ in any case.
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

fn queue_owner(pod: &PodFacts) -> Affected {
    let mut affected = Affected::default();
    affected.queue(pod.owner.map(Enqueue::Now));
    affected
}

/// Queues an owner again for the time at which a pod that has become ready becomes available.
fn availability(index: &Index, id: SetId) -> Option<Enqueue> {
    let seconds = index.set(id)?.object.min_ready_seconds;
    (seconds > 0).then(|| Enqueue::After(id, Span::seconds(i64::from(seconds))))
}
