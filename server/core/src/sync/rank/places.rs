//! The whole order of deletion, with the positions that upstream leaves open, for shadow mode.

use std::collections::BTreeSet;

use super::{SortKey, candidate::Candidate, choose, keys, share_out};
use crate::{
    compact_uid::CompactUid,
    object::{PodState, Timestamp},
    reason::Reason,
};

/// One active pod of a ReplicaSet.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<'a> {
    /// Its UID.
    pub uid: &'a CompactUid,
    /// Its node; `None` while it is unassigned.
    pub node: Option<&'a str>,
    /// Its plain values.
    pub state: &'a PodState,
    /// The number of active related pods on its node (spec 7.3).
    pub rank: u32,
}

/// The position of a pod in the order of deletion, counted from 1: a choice of this number of pods or more takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionPosition {
    /// In the total order.
    pub own: usize,
    /// The first position that upstream may give it. If upstream's comparison calls pods equal (spec 7.2) or has a cycle (spec 7.5), the
    /// order of its input decides.
    pub earliest: usize,
}

/// Returns the position of each pod at `now`, in the order of `pods`.
#[must_use]
pub fn deletion_positions(now: Timestamp, pods: &[Ranked<'_>]) -> Vec<DeletionPosition> {
    let candidates = candidates(pods);
    let mut keys = keys(&candidates, now);
    keys.sort_unstable_by(SortKey::cmp);
    share_out(&mut keys, pods.len());
    let mut places = vec![
        DeletionPosition {
            own: 0,
            earliest: 0
        };
        pods.len()
    ];
    let mut next = 1;
    for alike in keys.chunk_by(|left, right| left.class == right.class) {
        place_alike(alike, next, &candidates, &mut places);
        next += alike.len();
    }
    places
}

/// Returns the indices in `pods` of the `count` pods to delete first at `now`, in order of choice, each with its reason.
#[must_use]
pub fn choice(now: Timestamp, pods: &[Ranked<'_>], count: usize) -> Vec<(usize, Reason)> {
    let chosen = choose(candidates(pods), count, now).into_iter();
    chosen.map(|chosen| (chosen.id, chosen.reason)).collect()
}

fn candidates<'a>(pods: &[Ranked<'a>]) -> Vec<Candidate<'a, usize>> {
    let pods = pods.iter().enumerate();
    pods.map(|(id, pod)| Candidate {
        id,
        node: pod.node,
        state: pod.state,
        rank: pod.rank,
        uid: pod.uid,
    })
    .collect()
}

/// Places the pods of one class, the first one at `next`.
///
/// At a rule of times, only pods of exactly the same time are compared further, and others by UID. So the order is open as soon as two pods
/// that reach that rule together have the same time.
fn place_alike(
    alike: &[SortKey<'_>],
    mut next: usize,
    candidates: &[Candidate<'_, usize>],
    places: &mut [DeletionPosition],
) {
    let instants = instants(alike, |key| Some(key.since));
    if alike[0].has_time() && instants > 1 {
        return place(alike, next, instants < alike.len(), places);
    }
    for tied in alike.chunk_by(|left, right| left.tail == right.tail) {
        let created = instants_of(tied, candidates);
        place(tied, next, created < tied.len(), places);
        next += tied.len();
    }
}

fn place(tied: &[SortKey<'_>], next: usize, is_open: bool, places: &mut [DeletionPosition]) {
    for (own, key) in (next..).zip(tied) {
        let earliest = if is_open { next } else { own };
        places[key.candidate] = DeletionPosition { own, earliest };
    }
}

fn instants_of(keys: &[SortKey<'_>], candidates: &[Candidate<'_, usize>]) -> usize {
    instants(keys, |key| candidates[key.candidate].state.created)
}

fn instants(keys: &[SortKey<'_>], of: impl Fn(&SortKey<'_>) -> Option<Timestamp>) -> usize {
    keys.iter().map(of).collect::<BTreeSet<_>>().len()
}
