//! The changes that would keep a pod in a scale-down: the smallest change of each of its values, tested by a decision.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use decree_core::{Decision, Interrupted, Phase, Pod, Ready, Rule, Surroundings, Timestamp};
use serde_json::{Value, json};

/// The maximum number of nodes that are tested: the nodes with the fewest pods of the ReplicaSet.
const NODES_MAX: usize = 3;

/// Whether a change of the pod keeps it.
type Keeps<'a> = dyn Fn(&dyn Fn(&mut Pod)) -> Result<bool, Interrupted> + 'a;

/// Whether the pod would be deleted with this number of replicas and these costs that pods would answer, and the changes of which each alone
/// keeps the pod. No changes if more pods are surplus than one decision deletes, because the next decision may delete the spared pod. `None`
/// if the ReplicaSet is not known.
pub(crate) fn rescue(
    mut around: Surroundings,
    (replicas, costs): (i32, HashMap<String, i32>),
    pod: &str,
    now: Timestamp,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Value>, Interrupted> {
    if around.replica_sets().is_empty() {
        return Ok(None);
    }
    // A cost that a pod would answer takes the place of its annotation.
    for pod in around.pods_mut() {
        if let Some(cost) = costs.get(&*pod.name) {
            pod.state.deletion_cost = *cost;
        }
    }
    let decide = |change: &dyn Fn(&mut Pod)| {
        let mut around = around.clone();
        if let Some(pod) = around.pods_mut().find(|it| &*it.name == pod) {
            change(pod);
        }
        around.decide(Some(replicas), go_on)
    };
    let is_among = |decision: &Decision| {
        let mut deletes = decision.deletes.iter();
        deletes.any(|victim| &*victim.pod.name == pod)
    };
    let own = around.owned().find(|owned| &*owned.name == pod);
    let (Some(own), Some(decision)) = (own, decide(&|_| {})?) else {
        let stays = json!({"deleted": false, "limited": false, "changes": []});
        return Ok(Some(stays));
    };
    let mut reasons = decision.reasons.iter();
    let is_limited = reasons.any(|reason| reason.rule == Rule::BurstLimited);
    let is_deleted = is_among(&decision);
    let mut changes = Vec::new();
    if is_deleted && !is_limited {
        let keeps = |change: &dyn Fn(&mut Pod)| -> Result<bool, Interrupted> {
            let decision = decide(change)?;
            Ok(decision.is_some_and(|decision| !is_among(&decision)))
        };
        changes = self::changes(&around, own, now, &keeps)?;
    }
    let answer = json!({"deleted": is_deleted, "limited": is_limited, "changes": changes});
    Ok(Some(answer))
}

fn changes(
    around: &Surroundings,
    own: &Pod,
    now: Timestamp,
    keeps: &Keeps<'_>,
) -> Result<Vec<Value>, Interrupted> {
    let mut changes = Vec::new();
    let may_be_ready = own.state.phase == Phase::Running && !own.state.ready.ready;
    if may_be_ready && keeps(&|pod| become_ready(pod, now))? {
        changes.push(json!({"change": "ready"}));
    }
    if let Some(cost) = least_cost(around, own.state.deletion_cost, keeps)? {
        changes.push(json!({"change": "deletionCost", "value": cost}));
    }
    if own.node.is_some()
        && let Some(node) = node(around, own, keeps)?
    {
        changes.push(json!({"change": "node", "value": node}));
    }
    Ok(changes)
}

/// The least deletion cost that keeps the pod. A higher cost means a later deletion, so every cost above one that keeps the pod also keeps
/// it. Only the costs of other pods, and these costs plus 1, make a difference.
fn least_cost(
    around: &Surroundings,
    own: i32,
    keeps: &Keeps<'_>,
) -> Result<Option<i32>, Interrupted> {
    let costs = around.owned().map(|pod| pod.state.deletion_cost);
    let costs: BTreeSet<_> = costs
        .flat_map(|cost| [cost, cost.saturating_add(1)])
        .filter(|cost| *cost > own)
        .collect();
    let costs: Vec<_> = costs.into_iter().collect();
    let (mut low, mut high) = (0, costs.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        if keeps(&|pod| pod.state.deletion_cost = costs[middle])? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(costs.get(low).copied())
}

/// A node on which the pod stays.
fn node(
    around: &Surroundings,
    own: &Pod,
    keeps: &Keeps<'_>,
) -> Result<Option<String>, Interrupted> {
    let mut nodes = BTreeMap::new();
    for pod in around.owned().filter(|pod| pod.state.is_active()) {
        if pod.node.is_some() && pod.node != own.node {
            *nodes.entry(pod.node.clone()).or_insert(0_usize) += 1;
        }
    }
    let mut nodes: Vec<_> = nodes.into_iter().collect();
    nodes.sort_by_key(|(_, pods)| *pods);
    for (node, _) in nodes.into_iter().take(NODES_MAX) {
        if keeps(&|pod| pod.node.clone_from(&node))? {
            return Ok(node.map(|node| node.to_string()));
        }
    }
    Ok(None)
}

fn become_ready(pod: &mut Pod, now: Timestamp) {
    pod.state.ready = Ready {
        ready: true,
        since: Some(now),
    };
}
