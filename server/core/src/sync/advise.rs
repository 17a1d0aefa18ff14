//! Advice for another controller: deletion costs that make its order of deletion the one that the ReplicaSet prefers, as far as costs decide.
//!
//! Costs keep their values as far as possible, since each change is a write. An absent cost is 0, as in Kubernetes. **Invariant:** once
//! written, the same costs are decided again.

use std::collections::{BTreeMap, BTreeSet};

use super::{Next, Plan, SyncResult, SyncStep, asking, manage::candidates, rank};
use crate::{
    batch::{Action, Advice},
    config::Config,
    held::Held,
    index::{Index, Set, SetId},
    object::{Span, Timestamp, Uid},
    reason::{Reason, Rule},
    wording,
};

/// The maximum number of operations in flight: what an agent writes in a second, so that no advice is old when it is written.
pub(crate) const IN_FLIGHT_MAX: usize = 20;
/// The maximum number of operations of a batch: others have room beside it.
pub(super) const ADVICES_MAX: usize = IN_FLIGHT_MAX / 2;
/// How long the cost of a pod stays once it is written, and when to look again at what changes without an event: nodes.
const STAYS: Span = Span::seconds(60);
/// The difference of neighboring costs, with room for others between them.
const STEP: i64 = 1_000;
/// The memory of a pod that was advised in bytes, with the longest UID.
const ADVISED: usize = 256;

/// The pods that take part, from the first to delete to the last; pods that tie are in one group. A group has the cost that most of its pods
/// have, and their number.
type Groups = [(i32, usize)];

/// Decides the next costs of the pods of a ReplicaSet.
pub(super) fn advise(index: &mut Index, config: &Config, id: SetId) -> Next {
    let asks_at = match asking::ask_for_advice(index, config, id) {
        Ok(asks_at) => asks_at,
        Err(until) => {
            return Next::Finished(SyncResult {
                requeue_at: Some(until),
                ..SyncResult::default()
            });
        }
    };
    let Some(set) = index.set(id).filter(|set| !set.object.deleting) else {
        return Next::Finished(SyncResult::default());
    };
    let wanted = wanted(index, id);
    let looks_at = (!wanted.is_empty()).then(|| index.now.plus(STAYS));
    let mut requeue_at = asks_at.into_iter().chain(looks_at).min();
    let owned = set.owned.iter().filter_map(|pod| index.pod(*pod));
    let mut changed = Vec::new();
    for pod in owned.filter(|pod| !pod.state.deleting) {
        let cost = wanted.get(&pod.uid).copied().unwrap_or(0);
        let until = index.advised.until.get(&pod.uid).copied();
        if pod.state.advised_cost().is_none_or(|known| known == cost) {
            continue;
        }
        if let Some(until) = until.filter(|until| index.now < *until) {
            requeue_at = Some(requeue_at.map_or(until, |at| at.min(until)));
        } else {
            let pod = pod.pod_ref();
            changed.push(Advice { pod, cost });
        }
    }
    if changed.is_empty() {
        return Next::Finished(SyncResult {
            requeue_at,
            ..SyncResult::default()
        });
    }
    let detail = format!(
        "{} to change",
        wording::count(changed.len(), "deletion cost")
    );
    changed.truncate(ADVICES_MAX);
    let reasons = vec![Reason::new(Rule::Advice, detail)];
    Next::Send(
        Plan::new(Action::Advise(changed), reasons),
        SyncStep::Advise,
    )
}

/// Returns the costs of the active pods, without those that others have set; none if the ReplicaSet prefers no order, or has one pod.
fn wanted(index: &Index, id: SetId) -> BTreeMap<&Uid, i32> {
    let answers = index.questions.costs(id);
    let has_no_order = |set: &Set| set.object.scale_in().is_empty();
    if answers.is_none() && index.set(id).is_none_or(has_no_order) {
        return BTreeMap::new();
    }
    let pods = candidates(index, id);
    if pods.len() < 2 {
        return BTreeMap::new();
    }
    // What was advised before must not decide.
    let states: Vec<_> = pods.iter().map(|pod| pod.state.without_advice()).collect();
    let bare = pods.iter().zip(&states);
    let bare = bare.map(|(pod, state)| {
        let mut pod = rank::Candidate {
            state,
            ..pod.clone()
        };
        let own = pod.state.advised_cost().and(answers);
        pod.preferred.get_or_insert_default().asked = own.and_then(|it| it.get(pod.uid)).copied();
        pod
    });
    let places = rank::preferred_places(&bare.collect::<Vec<_>>(), index.now);
    let mut groups: BTreeMap<u64, Vec<(&Uid, i32)>> = BTreeMap::new();
    for (place, pod) in places.into_iter().zip(&pods) {
        if let Some(cost) = pod.state.advised_cost() {
            groups.entry(place).or_default().push((pod.uid, cost));
        }
    }
    let held: Vec<_> = groups.values().map(|pods| most_frequent(pods)).collect();
    let costs = costs(&held).into_iter().zip(groups.values());
    let costs = costs.flat_map(|(cost, pods)| pods.iter().map(move |(pod, _)| (*pod, cost)));
    costs.collect()
}

fn most_frequent(pods: &[(&Uid, i32)]) -> (i32, usize) {
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for (_, cost) in pods {
        *counts.entry(*cost).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.unwrap_or_default()
}

/// Returns the cost of each group, growing, so that as many pods as possible keep what they have.
fn costs(groups: &Groups) -> Vec<i32> {
    let kept = kept(groups);
    filled(groups, &kept).unwrap_or_else(|| {
        let count = i64::try_from(groups.len()).unwrap_or(i64::MAX);
        let step = STEP.min(i64::from(u32::MAX) / (count + 1));
        let costs = (0..count).map(|at| (at - count / 2) * step);
        costs.filter_map(|cost| i32::try_from(cost).ok()).collect()
    })
}

/// Returns the groups that keep their cost: growing ones, with the most pods.
fn kept(groups: &Groups) -> BTreeSet<usize> {
    // By last cost, the number of pods of the best choice and its last group. Both grow.
    let mut best: BTreeMap<i32, (usize, usize)> = BTreeMap::new();
    let mut before = Vec::new();
    for (at, (cost, pods)) in groups.iter().enumerate() {
        let last = best.range(..cost).next_back().map(|(_, last)| *last);
        before.push(last.map(|(_, at)| at));
        let all = pods + last.map_or(0, |(all, _)| all);
        if best.get(cost).is_some_and(|(known, _)| *known > all) {
            continue;
        }
        while let Some((worse, (known, _))) = best.range(cost..).next()
            && *known <= all
        {
            let worse = *worse;
            best.remove(&worse);
        }
        best.insert(*cost, (all, at));
    }
    let last = best.last_key_value().map(|(_, (_, at))| *at);
    std::iter::successors(last, |at| before[*at]).collect()
}

/// Returns the costs with new ones between those that are kept; `None` if there is no room.
fn filled(groups: &Groups, kept: &BTreeSet<usize>) -> Option<Vec<i32>> {
    let mut costs: Vec<i64> = Vec::new();
    while let Some((cost, _)) = groups.get(costs.len()) {
        let at = costs.len();
        let next = kept.range(at..).next();
        if next == Some(&at) {
            costs.push(i64::from(*cost));
            continue;
        }
        let count = i64::try_from(next.map_or(groups.len(), |next| *next) - at).ok()?;
        let high = next.map(|next| i64::from(groups[*next].0));
        let (low, step) = match (costs.last().copied(), high) {
            (Some(low), Some(high)) => (low, (high - low) / (count + 1)),
            (None, Some(high)) => (high - STEP * (count + 1), STEP),
            (low, None) => (low.unwrap_or(0), STEP),
        };
        if step == 0 {
            return None;
        }
        costs.extend((1..=count).map(|more| low + step * more));
    }
    costs
        .into_iter()
        .map(|cost| i32::try_from(cost).ok())
        .collect()
}

/// The pods whose cost was written of late, each with the time until which it stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Advised {
    until: BTreeMap<Uid, Timestamp>,
}

impl Advised {
    /// Notes a write.
    pub(crate) fn note(&mut self, now: Timestamp, pod: Uid) {
        self.until.retain(|_, until| now < *until);
        self.until.insert(pod, now.plus(STAYS));
    }
}

impl Held for Advised {
    fn bytes(&self) -> usize {
        self.until.len() * ADVISED
    }
}

#[cfg(test)]
mod tests;
