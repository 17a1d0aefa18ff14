//! What the other controller can have seen of a ReplicaSet: what is known, with the latest changes taken back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use server_core::{
    CompactUid, DeletionPosition, KnownSet, Ranked, Reason, Replica, Span, Timestamp, Uid, choice,
    deletion_positions,
};

use crate::past::{Change, PodChange, What};

/// The smallest and the largest power of two of nanoseconds at which an age class ends that can matter: a millisecond, and more years
/// than there are.
const CLASSES: std::ops::Range<u32> = 20..62;

/// The replicas of a ReplicaSet, and how many related pods each node has.
#[derive(Clone, Debug)]
pub(super) struct View {
    own: Uid,
    pods: BTreeMap<CompactUid, Replica>,
    /// Those among them whose adoption was taken back.
    adopted: Vec<CompactUid>,
    /// `None` where the ReplicaSet stands alone: then no node is crowded (spec 7.3).
    related: Option<BTreeMap<Option<Arc<str>>, u32>>,
}

/// What a change was that is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A replica went.
    Deleted,
    /// A replica was made.
    Made,
    /// A pod became a replica.
    Adopted(CompactUid),
    /// Something else.
    Changed,
}

// === impl View ===

impl View {
    /// Returns what is known.
    pub(super) fn of(set: &KnownSet<'_>) -> Self {
        let has_owner = set.object().controller.is_some();
        Self {
            own: set.object().key.uid.clone(),
            pods: set.replicas().map(|pod| (pod.uid.clone(), pod)).collect(),
            adopted: Vec::new(),
            related: has_owner.then(|| set.related_by_node()),
        }
    }

    /// Takes a change back, and returns what it was.
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
            // What was made or deleted before an adoption was so before the sync that adopted.
            Taken::Deleted | Taken::Made => {
                for adopted in self.adopted.drain(..) {
                    self.pods.remove(&adopted);
                }
            }
            // Whoever adopts a pod counts it at once.
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

    /// Returns how many replicas there are.
    pub(super) fn active(&self) -> i64 {
        self.pods.len() as i64
    }

    /// Returns the place of each replica in the order of deletion at a moment.
    pub(super) fn places(&self, moment: Timestamp) -> BTreeMap<&CompactUid, DeletionPosition> {
        let places = deletion_positions(moment, &self.ranked());
        self.pods.keys().zip(places).collect()
    }

    /// Returns the first so many in the order of deletion at a moment, each with the reason.
    pub(super) fn choice(&self, moment: Timestamp, count: usize) -> Vec<(&Replica, Reason)> {
        let pods: Vec<_> = self.pods.values().collect();
        let chosen = choice(moment, &self.ranked(), count).into_iter();
        chosen.map(|(at, reason)| (pods[at], reason)).collect()
    }

    /// Returns the moments of a while at which the order of deletion can become another, and its beginning.
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

    fn ranked(&self) -> Vec<Ranked<'_>> {
        let rank = |pod: &Replica| {
            let related = self.related.as_ref();
            related.and_then(|related| related.get(&pod.node).copied())
        };
        let pods = self.pods.values();
        pods.map(|pod| Ranked {
            uid: &pod.uid,
            node: pod.node.as_deref(),
            state: &pod.state,
            rank: rank(pod).unwrap_or(0),
        })
        .collect()
    }
}
