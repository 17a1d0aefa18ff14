//! Objects as a person writes them.

use serde_json::{Value, json};

/// The annotation that says how much a pod's deletion costs.
pub(crate) const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

const IMAGE: &str = "registry.invalid/web:1";

/// The labels by which the ReplicaSets of these tests select.
pub(crate) fn labels() -> Value {
    json!({"app": "web"})
}

/// Returns a ReplicaSet of this many pods.
pub(crate) fn replica_set(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": labels()},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels()},
            "template": {"metadata": {"labels": labels()}, "spec": pod_spec()},
        },
    })
}

/// Returns a pod that such a ReplicaSet selects.
pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels()},
        "spec": pod_spec(),
    })
}

/// Returns the status of a pod that runs and has been ready since a time, with so many restarts.
pub(crate) fn ready_since(time: &str, restarts: u32) -> Value {
    json!({
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}],
        "containerStatuses": [{
            "name": "web", "image": IMAGE, "imageID": "", "ready": true, "restartCount": restarts,
        }],
    })
}

fn pod_spec() -> Value {
    json!({"containers": [{"name": "web", "image": IMAGE}]})
}
