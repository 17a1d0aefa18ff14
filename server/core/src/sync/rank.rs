//! Which pods go first.
//!
//! Upstream's comparison has cycles (spec 7.5), so its result depends on the order of the input. Here the order is total: a sort by
//! keys, then for pods of one class with exactly the same ready time their tails decide who takes which of the places that they hold.

use std::{cmp::Reverse, collections::BTreeMap};

use crate::{
    object::{Phase, Ready, Timestamp},
    report::{Reason, Rule},
};

/// What the order of deletion reads of one active pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// Whatever the caller finds the pod by.
    pub(crate) id: u32,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) node: Option<&'a str>,
    pub(crate) phase: Phase,
    pub(crate) ready: Ready,
    pub(crate) deletion_cost: i32,
    /// How many active related pods are on the pod's node (spec 7.3).
    pub(crate) rank: u32,
    pub(crate) restarts: i32,
    pub(crate) sidecar_restarts: i32,
    pub(crate) created: Option<Timestamp>,
}

/// A pod that goes, and why it goes before those that stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) id: u32,
    pub(crate) reason: Reason,
}

/// Assigned, phase, ready, cost, rank: the rules 1 to 5 of spec 7.2.
type Class = (bool, u8, bool, i32, Reverse<u32>);

/// Restarts, sidecar restarts, bucket of the creation time, uid, name: the rules 7 and 8, and the last word.
type Tail<'a> = (Reverse<i32>, Reverse<i32>, i16, &'a str, &'a str);

/// The place within a class: pods without a ready time by tail, before the others by bucket and uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place<'a> {
    Untimed(Tail<'a>),
    Timed(i16, &'a str, &'a str),
}

type Keyed<'a> = (Class, Place<'a>, u32);

/// Chooses `count` pods in the order of their going.
pub(crate) fn choose(candidates: &[Candidate<'_>], count: usize, now: Timestamp) -> Vec<Chosen> {
    if count >= candidates.len() {
        return all_go(candidates);
    }
    let mut order = keyed(candidates, now);
    // One place more than asked for: who holds it is the first to stay, and tells why the others go.
    let places = count + 1;
    if places < order.len() {
        order.select_nth_unstable(places - 1);
    }
    let (head, rest) = order.split_at_mut(places);
    head.sort_unstable();
    settle_equal_ready_times(candidates, head, rest, now);
    let survivor = &candidates[head[count].2 as usize];
    let chosen = head[..count].iter().map(|(_, _, at)| &candidates[*at as usize]);
    chosen.map(|one| Chosen { id: one.id, reason: why(one, survivor, now) }).collect()
}

fn all_go(candidates: &[Candidate<'_>]) -> Vec<Chosen> {
    let mut all: Vec<_> = candidates.iter().collect();
    all.sort_unstable_by_key(|one| (one.name, one.uid));
    let reason = Reason { rule: Rule::AllGo, detail: "every active pod goes".to_owned() };
    all.iter().map(|one| Chosen { id: one.id, reason: reason.clone() }).collect()
}

fn keyed<'a>(candidates: &[Candidate<'a>], now: Timestamp) -> Vec<Keyed<'a>> {
    let key = |(at, one): (usize, &Candidate<'a>)| {
        let place = match one.timed() {
            Some(since) => Place::Timed(bucket(now, since), one.uid, one.name),
            None => Place::Untimed(one.tail(now)),
        };
        (one.class(), place, u32::try_from(at).unwrap_or(u32::MAX))
    };
    candidates.iter().enumerate().map(key).collect()
}

/// Puts the members of each set of equal ready times, ordered by tail, into the places that the set holds. Only the places of `head`
/// matter, but members in `rest` compete for them.
fn settle_equal_ready_times(candidates: &[Candidate<'_>], head: &mut [Keyed<'_>], rest: &[Keyed<'_>], now: Timestamp) {
    let set = |(class, place, at): &Keyed<'_>| match place {
        Place::Timed(..) => candidates[*at as usize].timed().map(|since| (*class, since)),
        Place::Untimed(_) => None,
    };
    let mut sets: BTreeMap<(Class, Timestamp), (Vec<usize>, Vec<u32>)> = BTreeMap::new();
    for (place, keyed) in head.iter().enumerate() {
        if let Some(id) = set(keyed) {
            let (places, members) = sets.entry(id).or_default();
            places.push(place);
            members.push(keyed.2);
        }
    }
    for keyed in rest {
        if let Some((_, members)) = set(keyed).and_then(|id| sets.get_mut(&id)) {
            members.push(keyed.2);
        }
    }
    for (places, mut members) in sets.into_values() {
        if members.len() > 1 {
            members.sort_unstable_by_key(|at| candidates[*at as usize].tail(now));
            places.into_iter().zip(members).for_each(|(place, at)| head[place].2 = at);
        }
    }
}

/// Returns the power of two of the time since, in nanoseconds; −1 for now or later (spec 7.4).
fn bucket(now: Timestamp, time: Timestamp) -> i16 {
    match u64::try_from(now.since(time).0) {
        Ok(nanoseconds) if nanoseconds > 0 => nanoseconds.ilog2() as i16,
        _ => -1,
    }
}

/// Returns the first rule that puts `one` before `other`.
fn why(one: &Candidate<'_>, other: &Candidate<'_>, now: Timestamp) -> Reason {
    let (rule, detail) = one.class_rule(other).unwrap_or_else(|| one.time_rule(other, now));
    Reason { rule, detail }
}

// === impl Candidate ===

impl Candidate<'_> {
    fn class(&self) -> Class {
        (self.node.is_some(), self.phase.ordinal(), self.ready.ready, self.deletion_cost, Reverse(self.rank))
    }

    /// Returns the time since when the pod is ready, if it is and the time is known.
    fn timed(&self) -> Option<Timestamp> {
        self.ready.since.filter(|_| self.ready.ready)
    }

    fn class_rule(&self, other: &Self) -> Option<(Rule, String)> {
        let (mine, theirs) = (self.class(), other.class());
        if mine.0 != theirs.0 {
            return Some((Rule::Unassigned, "not assigned to a node".to_owned()));
        }
        if mine.1 != theirs.1 {
            return Some((Rule::Phase, format!("phase {:?} goes before {:?}", self.phase, other.phase)));
        }
        if mine.2 != theirs.2 {
            return Some((Rule::NotReady, "not ready".to_owned()));
        }
        if mine.3 != theirs.3 {
            return Some((Rule::DeletionCost, format!("deletion cost {} goes before {}", mine.3, theirs.3)));
        }
        (mine.4 != theirs.4).then(|| {
            let node = self.node.unwrap_or("no node");
            (Rule::CrowdedNode, format!("{} pods of this owner on {node}, {} where the next is", self.rank, other.rank))
        })
    }

    fn time_rule(&self, other: &Self, now: Timestamp) -> (Rule, String) {
        match (self.timed(), other.timed()) {
            (None, Some(_)) => return (Rule::ReadyRecently, "ready, but since when is unknown".to_owned()),
            (Some(mine), Some(theirs)) if mine != theirs => {
                if bucket(now, mine) == bucket(now, theirs) {
                    return (Rule::Uid, "ready about as long as the next; the smaller uid goes".to_owned());
                }
                let seconds = now.since(mine).0 / 1_000_000_000;
                return (Rule::ReadyRecently, format!("ready for {seconds} s only"));
            }
            _ => {}
        }
        self.tail_rule(other, now)
    }

    fn tail_rule(&self, other: &Self, now: Timestamp) -> (Rule, String) {
        let (mine, theirs) = (self.tail(now), other.tail(now));
        if (mine.0, mine.1) != (theirs.0, theirs.1) {
            let detail = format!("{} restarts ({} of sidecars)", self.restarts, self.sidecar_restarts);
            return (Rule::Restarts, detail);
        }
        if mine.2 != theirs.2 {
            return (Rule::CreatedRecently, "created more recently than the next".to_owned());
        }
        (Rule::Uid, "equal to the next in all else; the smaller uid goes".to_owned())
    }
}

impl<'a> Candidate<'a> {
    fn tail(&self, now: Timestamp) -> Tail<'a> {
        // Absent sorts as most recent, before the bucket −1 of now and the future.
        let created = self.created.map_or(-2, |created| bucket(now, created));
        (Reverse(self.restarts), Reverse(self.sidecar_restarts), created, self.uid, self.name)
    }
}
