//! The texts of causes that a person may meet in several places. The server writes them into `Cause.text`, the agent into Kubernetes
//! events, and the summaries of the alerts in `deploy/` begin with them.

/// A budget of the agent holds the operations of a ReplicaSet.
pub const HELD_BY_BUDGET: &str = "Held by a budget";
/// A budget of the agent holds all operations of the cluster.
pub const HELD_BY_BUDGET_OF_CLUSTER: &str = "Held by a budget of the cluster";
/// Another controller creates pods of a ReplicaSet.
pub const OTHER_CONTROLLER: &str = "Another controller is at work";
/// Pods of a ReplicaSet end soon after their creation.
pub const PODS_DO_NOT_LAST: &str = "Pods do not last";
/// Many pods of a ReplicaSet have no node, so that few further ones are created a second.
pub const CREATES_ARE_SLOW: &str = "Creates are slow";
/// A ReplicaSet is invalid, and not reconciled.
pub const QUARANTINED: &str = "Quarantined";

/// The first sentence of the detail of a reason why creates wait: what happened. The second one says how they continue.
pub fn what_happened(detail: &str) -> &str {
    detail.split_once(". ").map_or(detail, |(what, _)| what)
}
