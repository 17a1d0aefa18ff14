//! The whole order of deletion, with the positions that upstream leaves open, for shadow mode, and the order of the preferences alone, for advice.

use std::collections::BTreeSet;

use super::{
    SortKey,
    candidate::{BUCKET_BITS, COST_BIT, Candidate},
    keys,
    preference::measured,
    share_out,
};
use crate::object::Timestamp;

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
///
/// At a rule of times, only pods of exactly the same time are compared further, and others by UID. So the order is open as soon as two pods
/// that reach that rule together have the same time.
pub fn deletion_positions<I: Copy>(
    now: Timestamp,
    pods: &[Candidate<'_, I>],
) -> Vec<DeletionPosition> {
    let pods = &*measured(pods, now);
    let mut keys = keys(pods, now);
    keys.sort_unstable_by(SortKey::cmp);
    share_out(&mut keys, pods.len());
    let (own, earliest) = (0, 0);
    let mut places = vec![DeletionPosition { own, earliest }; pods.len()];
    let mut next = 1;
    let mut place = |tied: &[SortKey<'_>], instants: usize| {
        for (own, key) in (next..).zip(tied) {
            let is_open = instants < tied.len();
            let earliest = if is_open { next } else { own };
            places[key.candidate] = DeletionPosition { own, earliest };
        }
        next += tied.len();
    };
    for alike in keys.chunk_by(|left, right| left.class == right.class) {
        let ready = count_instants(alike, |key| Some(key.since));
        if alike[0].has_time() && ready > 1 {
            place(alike, ready);
            continue;
        }
        for tied in alike.chunk_by(|left, right| left.tail == right.tail) {
            place(
                tied,
                count_instants(tied, |key| pods[key.candidate].state.created),
            );
        }
    }
    places
}

/// Returns the place of each pod by the preferences of its ReplicaSet and then the cost alone, in the order of `pods`. Pods that tie have the
/// same place.
pub(crate) fn preferred_places<I: Copy>(pods: &[Candidate<'_, I>], now: Timestamp) -> Vec<u64> {
    let pods = &*measured(pods, now);
    let mut places = vec![0; pods.len()];
    for key in keys(pods, now) {
        places[key.candidate] = (key.class >> (COST_BIT + BUCKET_BITS)) as u64;
    }
    places
}

fn count_instants(keys: &[SortKey<'_>], of: impl Fn(&SortKey<'_>) -> Option<Timestamp>) -> usize {
    keys.iter().map(of).collect::<BTreeSet<_>>().len()
}
