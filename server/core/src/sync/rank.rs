//! The order of deletion (spec 7), total where upstream's comparison has cycles (W25).
//!
//! 1. By class: unassigned, phase, readiness, preferences, deletion cost, crowded node. Within a class pods that are not ready, or ready since
//!    an unknown time, come first and by tail: restarts, sidecar restarts, age. Ready pods with a known time come by the power of two of
//!    that time, then by UID.
//! 2. Ready pods of one class with exactly the same ready time then share out the keys that they hold among themselves, by tail.
//!
//! The second step is upstream's comparison of two such pods. As a third key of the first step, it would make cycles.

mod candidate;
mod near_cut;
mod places;
mod preference;
mod reason;

use std::{cmp::Ordering, sync::Arc};

pub(crate) use self::places::preferred_places;
use self::{
    candidate::{BUCKET_BITS, PLACE_BITS, PREFERENCE_BIT},
    reason::explain,
};
pub use self::{
    candidate::{Candidate, Preferred},
    near_cut::RankedPod,
    places::{DeletionPosition, deletion_positions},
};
use crate::{
    object::{Timestamp, Uid},
    reason::{Reason, Rule},
};

/// The maximum number of pods that are asked for their deletion costs before a choice.
const ASKED_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen<I> {
    pub(crate) id: I,
    /// What puts it before the first remaining pod.
    pub(crate) reason: Reason,
}

#[derive(Clone, Debug)]
pub(crate) struct Choice<I> {
    /// The victims, in order of choice.
    pub(crate) chosen: Vec<Chosen<I>>,
    /// The pods on both sides of the cut, in the order of deletion.
    pub(crate) near_cut: Vec<RankedPod>,
}

/// The first candidates in the order of deletion, as indices.
struct Head {
    order: Vec<usize>,
    /// The candidate that the first step of the order puts in each position.
    holders: Vec<usize>,
}

/// The keys of a candidate, so that a comparison of two reads nothing else.
#[derive(Clone, Copy, Debug)]
struct SortKey<'a> {
    /// Class, then the bucket of the ready time: 0 for pods that come by tail.
    class: u128,
    tail: u128,
    since: Timestamp,
    uid: &'a Uid,
    candidate: usize,
}

/// Chooses the `count` pods to delete first, in order of choice, and compares the pods on both sides of the cut; `name` returns a pod's
/// name.
///
/// If `count` takes all, they come in the given order, as upstream does not sort then (spec 7.1): give them by name. If not, the given
/// order does not matter.
pub(crate) fn choose<I: Copy>(
    candidates: &[Candidate<'_, I>],
    count: usize,
    now: Timestamp,
    name: &dyn Fn(I) -> Arc<str>,
) -> Choice<I> {
    let candidates = &*preference::measured(candidates, now);
    if count == 0 || count >= candidates.len() {
        let victims = &candidates[..count.min(candidates.len())];
        let chosen = victims.iter().map(|victim| Chosen {
            id: victim.id,
            reason: Reason::new(Rule::AllGo, "all active pods are deleted"),
        });
        let order: Vec<_> = (0..victims.len()).collect();
        return Choice {
            chosen: chosen.collect(),
            near_cut: near_cut::compare((&order, &[]), victims, victims.len(), (now, name)),
        };
    }
    let compared = near_cut::STAY_MAX.saturating_add(count);
    let head = Head::of(candidates, compared.min(candidates.len()), now);
    let order = (&head.order[..], &head.holders[..]);
    Choice {
        chosen: head.choose(candidates, count, now),
        near_cut: near_cut::compare(order, candidates, count, (now, name)),
    }
}

/// Returns the candidates among which the deletion cost may decide when `count` are chosen, at most [`ASKED_MAX`], in the order of deletion
/// without the second step: those that are equal to the pods on both sides of the cut by all rules before the cost. There are none if these
/// two differ by one of those rules. A preference to spread pods does not count, as the cost decides in each domain; if others follow it, no
/// preference counts.
pub(crate) fn comparable<I>(
    candidates: &[Candidate<'_, I>],
    count: usize,
    now: Timestamp,
) -> Vec<usize> {
    if count == 0 || count >= candidates.len() {
        return Vec::new();
    }
    let mut keys = keys(candidates, now);
    keys.sort_unstable_by(SortKey::cmp);
    // Without their heights, all pods tie by the rule that spreads them.
    let mut not_last = candidates[0].scale_in().iter().rev().skip(1);
    let place = PLACE_BITS * u32::from(not_last.any(|it| it.spread().is_some()));
    let before_cost = |key: &SortKey<'_>| key.class >> (PREFERENCE_BIT + BUCKET_BITS + place);
    let [last, next] = [&keys[count - 1], &keys[count]].map(before_cost);
    let comparable = keys
        .iter()
        .filter(|key| last == next && before_cost(key) == last);
    comparable
        .take(ASKED_MAX)
        .map(|key| key.candidate)
        .collect()
}

/// Returns the first candidates in the order of deletion without the second step, at most [`ASKED_MAX`], to ask them for advice.
pub(crate) fn first<I>(candidates: &[Candidate<'_, I>], now: Timestamp) -> Vec<usize> {
    let mut keys = keys(candidates, now);
    keys.sort_unstable_by(SortKey::cmp);
    let first = keys.into_iter().take(ASKED_MAX);
    first.map(|key| key.candidate).collect()
}

impl Head {
    /// Returns the first `count` candidates of the order, at least 1 and at most all.
    fn of<I>(candidates: &[Candidate<'_, I>], count: usize, now: Timestamp) -> Self {
        let mut keys = keys(candidates, now);
        keys.select_nth_unstable_by(count - 1, SortKey::cmp);
        keys[..count].sort_unstable_by(SortKey::cmp);
        let indices = |keys: &[SortKey<'_>]| keys.iter().map(|key| key.candidate).collect();
        let holders = indices(&keys[..count]);
        share_out(&mut keys, count);
        Self {
            order: indices(&keys[..count]),
            holders,
        }
    }

    /// Returns the first `count` pods, fewer than this head has, and why each comes before the first remaining pod.
    fn choose<I: Copy>(
        &self,
        candidates: &[Candidate<'_, I>],
        count: usize,
        now: Timestamp,
    ) -> Vec<Chosen<I>> {
        let survivor = &candidates[self.order[count]];
        let victims = self.order[..count].iter().zip(&self.holders);
        let chosen = victims.map(|(victim, holder)| {
            let (victim, holder) = (&candidates[*victim], &candidates[*holder]);
            Chosen {
                id: victim.id,
                reason: explain(victim, survivor, holder, now),
            }
        });
        chosen.collect()
    }
}

impl<'a> SortKey<'a> {
    fn new<I>((candidate, of): (usize, &Candidate<'a, I>), now: Timestamp) -> Self {
        let (class, tail) = of.class_and_tail(now);
        Self {
            class,
            tail,
            since: of.ready_since().unwrap_or_default(),
            uid: of.uid,
            candidate,
        }
    }

    const fn has_time(&self) -> bool {
        self.class & ((1 << BUCKET_BITS) - 1) != 0
    }

    /// Compares by the first step of the order.
    fn cmp(&self, other: &Self) -> Ordering {
        self.class.cmp(&other.class).then_with(|| {
            if self.has_time() {
                self.uid.cmp(other.uid)
            } else {
                self.cmp_tail(other)
            }
        })
    }

    /// Compares pods that are not ready, or that are ready since the same instant.
    fn cmp_tail(&self, other: &Self) -> Ordering {
        self.tail
            .cmp(&other.tail)
            .then_with(|| self.uid.cmp(other.uid))
    }

    /// Compares so that pods of one class that are ready since the same instant are adjacent.
    fn cmp_instant(&self, other: &Self) -> Ordering {
        (self.class, self.since).cmp(&(other.class, other.since))
    }
}

fn keys<'a, I>(candidates: &[Candidate<'a, I>], now: Timestamp) -> Vec<SortKey<'a>> {
    let numbered = candidates.iter().enumerate();
    let mut keys: Vec<_> = numbered.map(|of| SortKey::new(of, now)).collect();
    preference::place(&mut keys, candidates);
    keys
}

/// Applies the second step of the order to the first `count` keys, which are in the order of the first step.
///
/// A set of one instant may extend beyond that border, so pods beyond it take part. Only pods of the class at the border do, as the first
/// step keeps classes together.
fn share_out(keys: &mut [SortKey<'_>], count: usize) {
    let (head, rest) = keys.split_at_mut(count);
    let held = head.iter().copied().enumerate();
    let mut held: Vec<_> = held.filter(|(_, key)| key.has_time()).collect();
    held.sort_unstable_by(|(left_at, left), (right_at, right)| {
        left.cmp_instant(right).then_with(|| left_at.cmp(right_at))
    });
    let beyond = beyond_border(&held, head.last().map(|key| key.class), rest);
    for held in held.chunk_by(|(_, left), (_, right)| left.cmp_instant(right).is_eq()) {
        let (_, instant) = held[0];
        let start = beyond.partition_point(|key| key.cmp_instant(&instant).is_lt());
        let end = beyond.partition_point(|key| key.cmp_instant(&instant).is_le());
        let mut members = first_by_tail(&beyond[start..end], held.len());
        members.extend(held.iter().map(|(_, key)| *key));
        members.sort_unstable_by(SortKey::cmp_tail);
        for ((at, _), member) in held.iter().zip(members) {
            head[*at] = member;
        }
    }
}

/// Returns the keys of `rest` with the class at the border and the instant of a held key. Keys of one instant are adjacent.
fn beyond_border<'a>(
    held: &[(usize, SortKey<'a>)],
    border: Option<u128>,
    rest: &[SortKey<'a>],
) -> Vec<SortKey<'a>> {
    let shares_instant = |key: &&SortKey<'a>| {
        let held = || held.binary_search_by(|(_, held)| held.cmp_instant(key));
        Some(key.class) == border && held().is_ok()
    };
    let mut beyond: Vec<_> = rest.iter().filter(shares_instant).copied().collect();
    beyond.sort_unstable_by(SortKey::cmp_instant);
    beyond
}

fn first_by_tail<'a>(keys: &[SortKey<'a>], count: usize) -> Vec<SortKey<'a>> {
    let mut keys = keys.to_vec();
    if count < keys.len() {
        keys.select_nth_unstable_by(count, SortKey::cmp_tail);
        keys.truncate(count);
    }
    keys
}

#[cfg(test)]
mod tests;
