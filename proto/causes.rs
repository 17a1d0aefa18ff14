//! The words of the causes that a person may meet in more than one place: the server writes them into `Cause.text`, the agent into Kubernetes
//! events, and the summaries of the alerts in `deploy/` begin with them.

/// A budget of the agent holds operations of a ReplicaSet.
pub const HELD_BY_BUDGET: &str = "Held by a budget";
/// The same, where it holds all operations of the namespace.
pub const HELD_BY_BUDGET_OF_NAMESPACE: &str = "Held by a budget of the namespace";
/// The same, where it holds all operations of the cluster.
pub const HELD_BY_BUDGET_OF_CLUSTER: &str = "Held by a budget of the cluster";
/// Another controller creates pods of a ReplicaSet.
pub const OTHER_CONTROLLER: &str = "Another controller is at work";
/// Pods of a ReplicaSet end soon after they are created.
pub const PODS_DO_NOT_LAST: &str = "Pods do not last";
/// A ReplicaSet is invalid, and not reconciled.
pub const QUARANTINED: &str = "Quarantined";

/// Returns what is said of a reason `PODS_DO_NOT_LAST` without the time of the next attempt, which changes with each.
#[must_use]
pub fn without_next_try(detail: &str) -> &str {
    detail
        .split_once("; next try in ")
        .map_or(detail, |(what, _)| what)
}
