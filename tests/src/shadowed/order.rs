//! Upstream's order of deletion, after its comparison function, with its ties and cycles.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use server_core::{Pod, Timestamp};

use super::fault::Fault;
use crate::rng::Rng;

/// A pod, and the number of active related pods on its node.
pub(super) struct Ranked<'a> {
    pub(super) pod: &'a Pod,
    pub(super) rank: u32,
}

/// Counts active pods by node.
pub(super) fn by_node<'a>(pods: impl Iterator<Item = &'a Pod>) -> BTreeMap<Option<Arc<str>>, u32> {
    let mut counts = BTreeMap::new();
    for pod in pods.filter(|pod| pod.state.is_active()) {
        *counts.entry(pod.node.clone()).or_default() += 1;
    }
    counts
}

/// Sorts in place as Go sorts few elements, from a random order: pods that are equal, or in a cycle, have either order.
pub(super) fn sort(pods: &mut [Ranked<'_>], now: Timestamp, fault: Option<Fault>, rng: &mut Rng) {
    for at in (1..pods.len()).rev() {
        let other = usize::try_from(rng.between(0, at as u64)).unwrap_or(0);
        pods.swap(at, other);
    }
    for end in 1..pods.len() {
        let mut at = end;
        while at > 0 && goes_before(&pods[at], &pods[at - 1], now, fault) {
            pods.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// Whether one pod precedes another, by the first rule that distinguishes them.
fn goes_before(one: &Ranked<'_>, other: &Ranked<'_>, now: Timestamp, fault: Option<Fault>) -> bool {
    let (left, right) = (&one.pod.state, &other.pod.state);
    let has = |it: Fault| fault == Some(it);
    let turned = |order: Ordering, it: Fault| if has(it) { order.reverse() } else { order };
    let assigned = one.pod.node.is_some().cmp(&other.pod.node.is_some());
    let ready = left.ready.ready.cmp(&right.ready.ready);
    let ready = if has(Fault::ReadinessIgnored) {
        Ordering::Equal
    } else {
        ready
    };
    let rules = turned(assigned, Fault::AssignmentReversed)
        .then_with(|| left.phase.ordinal().cmp(&right.phase.ordinal()))
        .then(ready)
        .then_with(|| {
            turned(
                left.deletion_cost.cmp(&right.deletion_cost),
                Fault::CostReversed,
            )
        })
        .then_with(|| turned(other.rank.cmp(&one.rank), Fault::CrowdingReversed));
    if rules != Ordering::Equal {
        return rules.is_lt();
    }
    let by_uid = || one.pod.uid < other.pod.uid;
    if left.ready.ready && right.ready.ready && left.ready.since != right.ready.since {
        let by_time = by_time(left.ready.since, right.ready.since, now);
        let by_time = by_time.map(|order| turned(order, Fault::ReadyTimeReversed));
        return by_time.map_or_else(by_uid, Ordering::is_lt);
    }
    let restarts = right.restarts.cmp(&left.restarts);
    let restarts = restarts.then(right.sidecar_restarts.cmp(&left.sidecar_restarts));
    if restarts != Ordering::Equal {
        return restarts.is_lt();
    }
    if left.created != right.created {
        return by_time(left.created, right.created, now).map_or_else(by_uid, Ordering::is_lt);
    }
    false
}

/// Compares two times that differ: the unknown one first, then the later one by powers of two; `None` within one power.
fn by_time(left: Option<Timestamp>, right: Option<Timestamp>, now: Timestamp) -> Option<Ordering> {
    let (Some(left), Some(right)) = (left, right) else {
        return Some(left.is_some().cmp(&right.is_some()));
    };
    let power = |time: Timestamp| match now.since(time).0 {
        ago @ 1.. => i64::from(ago.ilog2()),
        ..=0 => -1,
    };
    let order = power(left).cmp(&power(right));
    (order != Ordering::Equal).then_some(order)
}
