//! A possible view that the other controller had of a ReplicaSet: the known state, with the latest changes undone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use server_core::{
    Candidate, CompactUid, DeletionPosition, KnownSet, Reason, Replica, Span, Timestamp, Uid,
    choice, deletion_positions,
};

use crate::past::{Change, PodChange, What};

/// The smallest and the largest power of two of nanoseconds that matter as the end of an age class: a millisecond, and longer than any
/// time.
const CLASSES: std::ops::Range<u32> = 20..62;

/// The replicas of a ReplicaSet, and the number of related pods on each node.
#[derive(Clone, Debug)]
pub(super) struct View {
    own: Uid,
    pods: BTreeMap<CompactUid, Replica>,
    /// The replicas whose adoption was undone.
    adopted: Vec<CompactUid>,
    /// `None` if the ReplicaSet has no controller: then no node is crowded (spec 7.3).
    related: Option<BTreeMap<Option<Arc<str>>, u32>>,
}

/// The kind of an undone change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A replica was deleted.
    Deleted,
    /// A replica was created.
    Made,
    /// A pod became a replica.
    Adopted(CompactUid),
    /// Any other change.
    Changed,
}

// === impl View ===

impl View {
    /// Returns the view of the known state.
    pub(super) fn of(set: &KnownSet<'_>) -> Self {
        let has_owner = set.object().controller.is_some();
        Self {
            own: set.object().key.uid.clone(),
            pods: set.replicas().map(|pod| (pod.uid.clone(), pod)).collect(),
            adopted: Vec::new(),
            related: has_owner.then(|| set.related_by_node()),
        }
    }

    /// Undoes a change, and returns its kind.
    pub(super) fn take_back(&mut self, change: &Change) -> Taken {
        let What::Pod(pod) = &change.what else {
            return Taken::Changed;
        };
        let PodChange {
            before,
            after,
            is_made,
        } = &**pod;
        if let Some(related) = &mut self.related {
            if let Some(after) = after {
                let count = related.entry(after.node.clone()).or_default();
                *count = count.saturating_sub(1);
            }
            if let Some(before) = before {
                *related.entry(before.node.clone()).or_default() += 1;
            }
        }
        if change.set != self.own {
            return Taken::Changed;
        }
        let taken = match (before, after) {
            (Some(_), None) => Taken::Deleted,
            (None, Some(_)) if *is_made => Taken::Made,
            (None, Some(after)) => Taken::Adopted(after.uid.clone()),
            (Some(_), Some(_)) | (None, None) => Taken::Changed,
        };
        match &taken {
            // A creation or deletion before an adoption was before the sync that adopted.
            Taken::Deleted | Taken::Made => {
                for adopted in self.adopted.drain(..) {
                    self.pods.remove(&adopted);
                }
            }
            // A controller counts a pod as soon as it adopts it.
            Taken::Adopted(uid) => self.adopted.push(uid.clone()),
            Taken::Changed => {}
        }
        match (before, after) {
            (Some(before), _) => drop(self.pods.insert(before.uid.clone(), before.clone())),
            (None, Some(after)) if *is_made => drop(self.pods.remove(&after.uid)),
            (None, Some(_) | None) => {}
        }
        taken
    }

    pub(super) fn active(&self) -> i64 {
        self.pods.len() as i64
    }

    /// Returns the position of each replica in the order of deletion at a moment.
    pub(super) fn places(&self, moment: Timestamp) -> BTreeMap<&CompactUid, DeletionPosition> {
        let places = deletion_positions(moment, &self.ranked());
        self.pods.keys().zip(places).collect()
    }

    /// Returns the first `count` replicas in the order of deletion at a moment, each with the reason.
    pub(super) fn choice(&self, moment: Timestamp, count: usize) -> Vec<(&Replica, Reason)> {
        choice(moment, &self.ranked(), count)
    }

    /// Returns the moments at which the order of deletion can change from `from` to `to`, and `from`.
    pub(super) fn moments(&self, from: Timestamp, to: Timestamp) -> BTreeSet<Timestamp> {
        let times = self.pods.values().flat_map(|pod| {
            let since = pod.state.ready.since.filter(|_| pod.state.ready.ready);
            [since, pod.state.created]
        });
        let times: BTreeSet<_> = times.flatten().collect();
        let mut moments = BTreeSet::from([from]);
        for time in times {
            let ends = CLASSES.map(|class| time.plus(Span(1 << class)));
            let ends = ends.chain([time.plus(Span(1))]);
            moments.extend(ends.filter(|end| (from..=to).contains(end)));
        }
        moments
    }

    fn ranked(&self) -> Vec<Candidate<'_, &Replica>> {
        let rank = |pod: &Replica| self.related.as_ref()?.get(&pod.node).copied();
        let pods = self.pods.values();
        pods.map(|pod| Candidate {
            id: pod,
            uid: &pod.uid,
            node: pod.node.as_deref(),
            state: &pod.state,
            rank: rank(pod).unwrap_or(0),
        })
        .collect()
    }
}
