//! The initial objects of an embedded cluster unless files contain others: two ReplicaSets of one Deployment, and seven pods that
//! are hours old.
//!
//! Names, uids, nodes and ages are constants here and not random, so the victims are the same every time.

use agent_fake::{ApiError, Cluster};
use jiff::SignedDuration;
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "default";
/// The ReplicaSets of one Deployment: siblings, whose pods count as neighbors in the choice of victims.
pub(crate) const OLD: &str = "web-old";
pub(crate) const NEW: &str = "web-new";

const OLD_UID: &str = "6c0d5f7e-3a51-4c7b-9d18-0f4f1b2a7c01";
const NEW_UID: &str = "6c0d5f7e-3a51-4c7b-9d18-0f4f1b2a7c02";
/// The annotation with the deletion cost of a pod.
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The suffix of a pod, its node, whether it is ready, its deletion cost, the minutes since it was ready, and its restarts.
type Row = (
    &'static str,
    &'static str,
    bool,
    Option<&'static str>,
    i64,
    i32,
);

/// The pods of the older ReplicaSet: one for each of five rules, and two that no rule prefers.
const PODS: [Row; 7] = [
    ("2xk7d", "node-a", false, None, 180, 0),
    ("5vqrn", "node-a", true, Some("-10"), 180, 0),
    ("8bwzc", "node-a", true, None, 180, 0),
    ("4lmtp", "node-b", true, None, 5, 0),
    ("7ghjx", "node-b", true, None, 180, 0),
    ("6dfkq", "node-c", true, None, 180, 4),
    ("9nstz", "node-c", true, None, 180, 0),
];

/// Adds the objects to a cluster. Without `all_ready`, one pod is not ready.
pub(crate) fn install(cluster: &mut Cluster, all_ready: bool) -> Result<(), ApiError> {
    let now = cluster.now();
    let (replicas, ready) = (
        PODS.len(),
        PODS.iter().filter(|it| all_ready || it.2).count(),
    );
    // Both statuses are right, so there is nothing to do, also where no controller acts.
    let mut old = replica_set(OLD, OLD_UID, replicas);
    old["status"] = json!({
        "replicas": replicas, "fullyLabeledReplicas": replicas, "readyReplicas": ready,
        "availableReplicas": ready, "observedGeneration": 1, "terminatingReplicas": 0,
    });
    cluster.restore(old)?;
    let mut new = replica_set(NEW, NEW_UID, 0);
    new["status"] = json!({"replicas": 0, "observedGeneration": 1, "terminatingReplicas": 0});
    cluster.restore(new)?;
    for (index, (suffix, node, ready, cost, minutes, restarts)) in PODS.into_iter().enumerate() {
        let ago = |minutes| {
            let then = now - SignedDuration::from_mins(minutes);
            then.strftime("%FT%TZ").to_string()
        };
        let (created, since) = (ago(181), ago(minutes));
        let mut pod = new_pod(suffix);
        let metadata = &mut pod["metadata"];
        metadata["uid"] = format!("6c0d5f7e-3a51-4c7b-9d18-0f4f1b2a7d0{index}").into();
        metadata["creationTimestamp"] = created.as_str().into();
        if let Some(cost) = cost {
            metadata["annotations"] = json!({COST: cost});
        }
        pod["spec"]["nodeName"] = node.into();
        pod["status"] = json!({
            "phase": "Running",
            "startTime": created,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
            "containerStatuses": [{"name": "web", "ready": true, "restartCount": restarts}],
        });
        cluster.restore(pod)?;
        if !ready && !all_ready {
            let status = json!({"conditions": [{"type": "Ready", "status": "False"}]});
            cluster.set_pod_status(NAMESPACE, &format!("{OLD}-{suffix}"), &status)?;
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

fn replica_set(name: &str, uid: &str, replicas: usize) -> Value {
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
