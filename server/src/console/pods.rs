//! The pods of a page, with the values that the order of deletion reads.

use decree_core::{Phase, Pod, Surroundings};
use serde_json::{Value, json};

use super::reader::seconds;

/// The maximum number of pods that a page shows.
const SHOWN_MAX: usize = 2_000;
/// The maximum number of sibling ReplicaSets that a page shows.
const SIBLINGS_MAX: usize = 100;

/// The first [`SHOWN_MAX`] pods by name, the number of pods, the owner of their ReplicaSet, and the names of the first [`SIBLINGS_MAX`] other
/// ReplicaSets in its namespace, by name. With the source of the costs if the pods are asked for them. `None` if the ReplicaSet is not known.
pub(crate) fn pods(around: &Surroundings, is_kubernetes: bool) -> Option<Value> {
    let (own, others) = around.replica_sets().split_first()?;
    let mut pods: Vec<_> = around.owned().collect();
    pods.sort_by(|left, right| left.name.cmp(&right.name));
    let shown: Vec<_> = pods.iter().take(SHOWN_MAX).map(|one| pod(one)).collect();
    let owner = own.controller.as_ref();
    let owner = owner.map(|owner| json!({"kind": &*owner.kind, "name": &*owner.name}));
    let others = others.iter().map(|set| &set.key);
    let others = others.filter(|key| key.namespace == own.key.namespace);
    let mut siblings: Vec<_> = others.map(|key| &*key.name).collect();
    siblings.sort_unstable();
    siblings.truncate(SIBLINGS_MAX);
    let preferences = own.preferences.as_deref();
    let asked = preferences.and_then(|it| it.scale_in_cost.as_ref());
    Some(json!({
        "costs": asked.map(|it| &*it.source),
        "kubernetes": is_kubernetes,
        "count": pods.len(),
        "pods": shown,
        "owner": owner,
        "siblings": siblings,
    }))
}

fn pod(pod: &Pod) -> Value {
    let state = &pod.state;
    json!({
        "name": &*pod.name,
        "node": pod.node.as_deref(),
        "waiting": pod.waiting.as_deref(),
        "phase": phase(state.phase),
        "active": state.is_active(),
        "terminating": state.is_terminating(),
        "ready": state.ready.ready,
        "readySince": state.ready.since.map(seconds),
        "created": state.created.map(seconds),
        "deletionCost": state.deletion_cost,
        "restarts": state.restarts.max(state.sidecar_restarts),
    })
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Other => "Other",
        Phase::Unknown => "Unknown",
        Phase::Running => "Running",
        Phase::Succeeded => "Succeeded",
        Phase::Failed => "Failed",
    }
}
