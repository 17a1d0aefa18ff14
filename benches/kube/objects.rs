//! The objects that the benchmarks create.

use serde_json::{Value, json};

pub(crate) fn replica_set(name: &str, replicas: usize) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
        },
    })
}

pub(crate) fn pod_spec() -> Value {
    json!({"containers": [{
        "name": "web",
        "image": "registry.invalid/web:1",
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "LEVEL", "value": "info"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }]})
}
