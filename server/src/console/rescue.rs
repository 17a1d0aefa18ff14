//! The changes that would keep a pod in a scale-down: the smallest change of each of its values, tested by a decision.

use std::collections::{BTreeMap, BTreeSet};

use decree_core::{Decision, Interrupted, Phase, Pod, Ready, Rule, Surroundings, Timestamp};
use serde_json::{Value, json};

/// The maximum number of nodes that are tested: the nodes with the fewest pods of the ReplicaSet.
const NODES_MAX: usize = 3;

/// A pod in a hypothetical scale-down.
struct RescueQuestion<'a> {
    around: &'a Surroundings,
    replicas: i32,
    pod: &'a str,
    now: Timestamp,
    go_on: &'a dyn Fn() -> bool,
}

/// Whether the pod would be deleted, and the changes of which each alone keeps the pod. No changes if more pods are surplus than one
/// decision deletes, because the next decision may delete the spared pod. `None` if the ReplicaSet is not known.
pub(crate) fn rescue(
    around: &Surroundings,
    replicas: i32,
    pod: &str,
    now: Timestamp,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Value>, Interrupted> {
    if around.replica_sets().is_empty() {
        return Ok(None);
    }
    let question = RescueQuestion {
        around,
        replicas,
        pod,
        now,
        go_on,
    };
    let own = around.owned().find(|owned| &*owned.name == pod);
    let decision = question.decide(|_| {})?;
    let (Some(own), Some(decision)) = (own, decision) else {
        let stays = json!({"deleted": false, "limited": false, "changes": []});
        return Ok(Some(stays));
    };
    let is_limited = decision
        .reasons
        .iter()
        .any(|reason| reason.rule == Rule::BurstLimited);
    let is_deleted = question.is_among(&decision);
    let changes = if is_deleted && !is_limited {
        question.changes(own)?
    } else {
        Vec::new()
    };
    let answer = json!({"deleted": is_deleted, "limited": is_limited, "changes": changes});
    Ok(Some(answer))
}

impl RescueQuestion<'_> {
    fn changes(&self, own: &Pod) -> Result<Vec<Value>, Interrupted> {
        let mut changes = Vec::new();
        let may_be_ready = own.state.phase == Phase::Running && !own.state.ready.ready;
        if may_be_ready && self.keeps(|pod| become_ready(pod, self.now))? {
            changes.push(json!({"change": "ready"}));
        }
        if let Some(cost) = self.least_cost(own.state.deletion_cost)? {
            changes.push(json!({"change": "deletionCost", "value": cost}));
        }
        if own.node.is_some()
            && let Some(node) = self.node(own)?
        {
            changes.push(json!({"change": "node", "value": node}));
        }
        Ok(changes)
    }

    /// The least deletion cost that keeps the pod. A higher cost means a later deletion, so every cost above one that keeps the pod also keeps
    /// it. Only the costs of other pods, and these costs plus 1, make a difference.
    fn least_cost(&self, own: i32) -> Result<Option<i32>, Interrupted> {
        let costs = self.around.owned().map(|pod| pod.state.deletion_cost);
        let costs: BTreeSet<_> = costs
            .flat_map(|cost| [cost, cost.saturating_add(1)])
            .filter(|cost| *cost > own)
            .collect();
        let costs: Vec<_> = costs.into_iter().collect();
        let (mut low, mut high) = (0, costs.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.keeps(|pod| pod.state.deletion_cost = costs[middle])? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(costs.get(low).copied())
    }

    /// A node on which the pod stays.
    fn node(&self, own: &Pod) -> Result<Option<String>, Interrupted> {
        let mut nodes = BTreeMap::new();
        for pod in self.around.owned().filter(|pod| pod.state.is_active()) {
            if pod.node.is_some() && pod.node != own.node {
                *nodes.entry(pod.node.clone()).or_insert(0_usize) += 1;
            }
        }
        let mut nodes: Vec<_> = nodes.into_iter().collect();
        nodes.sort_by_key(|(_, pods)| *pods);
        for (node, _) in nodes.into_iter().take(NODES_MAX) {
            if self.keeps(|pod| pod.node.clone_from(&node))? {
                return Ok(node.map(|node| node.to_string()));
            }
        }
        Ok(None)
    }

    fn keeps(&self, change: impl FnOnce(&mut Pod)) -> Result<bool, Interrupted> {
        let decision = self.decide(change)?;
        Ok(decision.is_some_and(|decision| !self.is_among(&decision)))
    }

    fn decide(&self, change: impl FnOnce(&mut Pod)) -> Result<Option<Decision>, Interrupted> {
        let mut around = self.around.clone();
        if let Some(pod) = around.pod_mut(self.pod) {
            change(pod);
        }
        around.decide(Some(self.replicas), self.go_on)
    }

    fn is_among(&self, decision: &Decision) -> bool {
        let mut deletes = decision.deletes.iter();
        deletes.any(|victim| &*victim.pod.name == self.pod)
    }
}

fn become_ready(pod: &mut Pod, now: Timestamp) {
    pod.state.ready = Ready {
        ready: true,
        since: Some(now),
    };
}
