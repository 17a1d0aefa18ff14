//! Pods as a page shows them: what the order of deletion reads of each.

use serde_json::{Value, json};
use server_core::{Phase, Pod, Timestamp};

/// How many pods of a ReplicaSet are shown.
const SHOWN_MAX: usize = 2_000;

/// Returns the pods by name, the first [`SHOWN_MAX`] of them, and how many there are.
pub(super) fn pods<'a>(pods: impl Iterator<Item = &'a Pod>) -> Value {
    let mut pods: Vec<_> = pods.collect();
    pods.sort_by(|left, right| left.name.cmp(&right.name));
    let shown: Vec<_> = pods.iter().take(SHOWN_MAX).map(|one| pod(one)).collect();
    json!({"count": pods.len(), "pods": shown})
}

fn pod(pod: &Pod) -> Value {
    let state = &pod.state;
    json!({
        "name": &*pod.name,
        "node": pod.node.as_deref(),
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

const fn seconds(time: Timestamp) -> i64 {
    time.0.div_euclid(1_000_000_000)
}
