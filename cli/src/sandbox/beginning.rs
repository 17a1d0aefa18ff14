//! The initial objects of an embedded cluster unless files contain others: two ReplicaSets of one Deployment, and seven pods that
//! are hours old.
//!
//! Names, uids, nodes and ages are constants here and not random, so the victims are the same every time.

use agent_fake::{ApiError, Cluster};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "default";
/// The ReplicaSets of one Deployment: siblings, whose pods count as neighbors in the choice of victims.
pub(crate) const OLD: &str = "web-old";
pub(crate) const NEW: &str = "web-new";

const OLD_UID: &str = "6c0d5f7e-3a51-4c7b-9d18-0f4f1b2a7c01";
const NEW_UID: &str = "6c0d5f7e-3a51-4c7b-9d18-0f4f1b2a7c02";
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// A pod of the older ReplicaSet, with its differences from the other pods.
struct Pod {
    suffix: &'static str,
    node: &'static str,
    ready: bool,
    cost: Option<&'static str>,
    ready_minutes: i64,
    restarts: i32,
}

/// An ordinary pod: ready for three hours.
const ORDINARY: Pod = Pod {
    suffix: "",
    node: "node-a",
    ready: true,
    cost: None,
    ready_minutes: 180,
    restarts: 0,
};

/// One pod for each of five rules, and two pods that no rule prefers.
const PODS: [Pod; 7] = [
    Pod {
        suffix: "2xk7d",
        ready: false,
        ..ORDINARY
    },
    Pod {
        suffix: "5vqrn",
        cost: Some("-10"),
        ..ORDINARY
    },
    Pod {
        suffix: "8bwzc",
        ..ORDINARY
    },
    Pod {
        suffix: "4lmtp",
        node: "node-b",
        ready_minutes: 5,
        ..ORDINARY
    },
    Pod {
        suffix: "7ghjx",
        node: "node-b",
        ..ORDINARY
    },
    Pod {
        suffix: "6dfkq",
        node: "node-c",
        restarts: 4,
        ..ORDINARY
    },
    Pod {
        suffix: "9nstz",
        node: "node-c",
        ..ORDINARY
    },
];

/// Adds the objects to a cluster; one pod is not ready.
pub(crate) fn install(cluster: &mut Cluster) -> Result<(), ApiError> {
    put(cluster, false)
}

/// Adds the objects to a cluster; every pod is ready.
pub(crate) fn install_converged(cluster: &mut Cluster) -> Result<(), ApiError> {
    put(cluster, true)
}

fn put(cluster: &mut Cluster, all_ready: bool) -> Result<(), ApiError> {
    let now = cluster.now();
    cluster.restore(replica_set(OLD, OLD_UID, 7))?;
    cluster.restore(replica_set(NEW, NEW_UID, 0))?;
    for (index, pod) in PODS.iter().enumerate() {
        cluster.restore(pod.object(index, now))?;
        if !pod.ready && !all_ready {
            let status = json!({"conditions": [{"type": "Ready", "status": "False"}]});
            cluster.set_pod_status(NAMESPACE, &pod.name(), &status)?;
        }
    }
    Ok(())
}

/// A further pod of the older ReplicaSet, as its controller creates it.
pub(crate) fn new_pod(suffix: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE,
            "name": format!("{OLD}-{suffix}"),
            "labels": labels(OLD),
            "ownerReferences": [owner()],
        },
        "spec": {"containers": [{"name": "web", "image": format!("registry.example/{OLD}")}]},
    })
}

/// The reference from a pod to the older ReplicaSet.
fn owner() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": OLD, "uid": OLD_UID,
        "controller": true, "blockOwnerDeletion": true,
    })
}

fn labels(set: &str) -> Value {
    json!({"app": "web", "pod-template-hash": set})
}

fn replica_set(name: &str, uid: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": uid,
            "labels": labels(name),
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                "uid": "4a6e91de-5f0c-4a3f-9a53-6ab0ffd3a1c2",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels(name)},
            "template": {
                "metadata": {"labels": labels(name)},
                "spec": {"containers": [{"name": "web", "image": format!("registry.example/{name}")}]},
            },
        },
    })
}

// === impl Pod ===

impl Pod {
    fn name(&self) -> String {
        format!("{OLD}-{}", self.suffix)
    }

    fn object(&self, index: usize, now: Timestamp) -> Value {
        let ago = |minutes| {
            (now - SignedDuration::from_mins(minutes))
                .strftime("%FT%TZ")
                .to_string()
        };
        let (created, since) = (ago(181), ago(self.ready_minutes));
        let annotations: serde_json::Map<_, _> = self
            .cost
            .iter()
            .map(|cost| (COST.to_owned(), json!(cost)))
            .collect();
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "namespace": NAMESPACE,
                "name": self.name(),
                "uid": format!("6c0d5f7e-3a51-4c7b-9d18-0f4f1b2a7d0{index}"),
                "creationTimestamp": created,
                "labels": labels(OLD),
                "annotations": annotations,
                "ownerReferences": [owner()],
            },
            "spec": {
                "nodeName": self.node,
                "containers": [{"name": "web", "image": format!("registry.example/{OLD}")}],
            },
            "status": {
                "phase": "Running",
                "startTime": created,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
                "containerStatuses": [{
                    "name": "web", "ready": true, "restartCount": self.restarts,
                    "image": format!("registry.example/{OLD}"), "imageID": "",
                    "state": {"running": {"startedAt": since}},
                }],
            },
        })
    }
}
