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
/// The annotation with the deletion cost of a pod.
pub(super) const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

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
const fn ordinary(suffix: &'static str, node: &'static str) -> Pod {
    Pod {
        suffix,
        node,
        ready: true,
        cost: None,
        ready_minutes: 180,
        restarts: 0,
    }
}

/// One pod for each of five rules, and two pods that no rule prefers.
const PODS: [Pod; 7] = [
    Pod {
        ready: false,
        ..ordinary("2xk7d", "node-a")
    },
    Pod {
        cost: Some("-10"),
        ..ordinary("5vqrn", "node-a")
    },
    ordinary("8bwzc", "node-a"),
    Pod {
        ready_minutes: 5,
        ..ordinary("4lmtp", "node-b")
    },
    ordinary("7ghjx", "node-b"),
    Pod {
        restarts: 4,
        ..ordinary("6dfkq", "node-c")
    },
    ordinary("9nstz", "node-c"),
];

/// Adds the objects to a cluster. Without `all_ready`, one pod is not ready.
pub(crate) fn install(cluster: &mut Cluster, all_ready: bool) -> Result<(), ApiError> {
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
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": OLD, "uid": OLD_UID,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {"containers": [{"name": "web", "image": format!("registry.example/{OLD}")}]},
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
            let then = now - SignedDuration::from_mins(minutes);
            then.strftime("%FT%TZ").to_string()
        };
        let (created, since) = (ago(181), ago(self.ready_minutes));
        let mut object = new_pod(self.suffix);
        let metadata = &mut object["metadata"];
        metadata["uid"] = format!("6c0d5f7e-3a51-4c7b-9d18-0f4f1b2a7d0{index}").into();
        metadata["creationTimestamp"] = created.as_str().into();
        if let Some(cost) = self.cost {
            metadata["annotations"] = json!({COST: cost});
        }
        object["spec"]["nodeName"] = self.node.into();
        object["status"] = json!({
            "phase": "Running",
            "startTime": created,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
            "containerStatuses": [{
                "name": "web", "ready": true, "restartCount": self.restarts,
                "image": format!("registry.example/{OLD}"), "imageID": "",
                "state": {"running": {"startedAt": since}},
            }],
        });
        object
    }
}
