//! ReplicaSets whose templates and annotations contain what no recording may.

use serde_json::{Value, json};
use tests::recordings::{CANARY, ON_THE_WIRE};

/// Those of the same `owner` are siblings.
pub(super) fn replica_set(name: &str, replicas: u32, owner: Option<&str>) -> Value {
    let controller = |owner| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": "6f1c0f1e-3b0d-4a57-9d5e-0b7f4f4d2a11",
            "controller": true,
        })
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "annotations": {"example.com/token": secret("annotation")},
            "ownerReferences": owner.into_iter().map(controller).collect::<Vec<_>>(),
        },
        "spec": {
            "replicas": replicas,
            "selector": {
                "matchLabels": {"app": name},
                "matchExpressions": [{"key": "track", "operator": "Exists"}],
            },
            "template": {
                "metadata": {
                    "labels": labels(name),
                    "annotations": {"example.com/token": secret("template-annotation")},
                },
                "spec": pod_spec(),
            },
        },
    })
}

pub(super) fn orphan(name: &str, set: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels(set),
            "annotations": {"example.com/token": secret("pod-annotation")},
        },
        "spec": pod_spec(),
    })
}

/// The status of a pod that has been ready since `time`, with restarts of its container and of its sidecar.
pub(super) fn ready_since(time: &str, restarts: u32, sidecar_restarts: u32) -> Value {
    let container = |name: &str, restarts: u32| {
        json!({
            "name": name, "image": image(), "imageID": image(), "ready": true, "restartCount": restarts,
        })
    };
    json!({
        "phase": "Running",
        "message": secret("status-message"),
        "conditions": [{
            "type": "Ready", "status": "True", "lastTransitionTime": time, "message": secret("condition"),
        }],
        "containerStatuses": [container("app", restarts)],
        "initContainerStatuses": [container("proxy", sidecar_restarts)],
    })
}

fn labels(name: &str) -> Value {
    json!({"app": name, "track": ON_THE_WIRE})
}

fn pod_spec() -> Value {
    json!({
        "initContainers": [{"name": "proxy", "image": image(), "restartPolicy": "Always"}],
        "containers": [{
            "name": "app",
            "image": image(),
            "command": [secret("command")],
            "args": [secret("argument")],
            "env": [
                {"name": "PASSWORD", "value": secret("env")},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": secret("reference"), "key": secret("key")}}},
            ],
        }],
        "imagePullSecrets": [{"name": secret("pull-secret")}],
        "volumes": [{"name": "secrets", "secret": {"secretName": secret("volume")}}],
    })
}

fn secret(place: &str) -> String {
    format!("{CANARY}-{place}")
}

fn image() -> String {
    format!("registry.invalid/{CANARY}:1")
}
