//! Objects as a person writes them.

use serde_json::{Value, json};

/// The annotation of the deletion cost of a pod.
pub(crate) const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

const IMAGE: &str = "registry.invalid/web:1";

/// The selector labels of the ReplicaSets of these tests.
pub(crate) fn labels() -> Value {
    json!({"app": "web"})
}

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

/// A pod that such a ReplicaSet selects.
pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels()},
        "spec": pod_spec(),
    })
}

/// The status of a running pod that has been ready since `time`, with `restarts` restarts.
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
