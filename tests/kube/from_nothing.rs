//! The pods of Decree start without a ReplicaSet controller: before the first, and after the loss of all.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::real::{Api, ApiServer, ControllerManager};

use crate::{manifests::FOLDERS, rendered::Rendered};

/// The minimum replicas of the autoscaler.
const AUTOSCALED: u64 = 2;
/// The name of the only node, which is a control plane.
const NODE: &str = "control-plane-0";

#[tokio::test]
async fn pods_of_each_overlay_come_and_come_again_without_replica_sets() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let admin = cluster.admin().await;
    create_node(&admin).await;
    let _others = ControllerManager::start_others(&cluster);
    for folder in FOLDERS {
        let rendered = tests::or_skip!(Rendered::of(folder));
        rendered.apply(&admin).await;
        let first = pods_come(&admin, &rendered, &BTreeSet::new()).await;
        for pod in &first {
            delete_pod(&admin, pod).await;
        }
        let uids = first.iter().map(|pod| uid(pod).to_owned()).collect();
        let second = pods_come(&admin, &rendered, &uids).await;
        assert_eq!(second.len(), first.len(), "{folder}");
        rendered.delete(&admin).await;
        for pod in &second {
            delete_pod(&admin, pod).await;
        }
    }
    let sets = admin.get("/apis/apps/v1/replicasets").await;
    let sets = sets.expect("they can be listed");
    assert_eq!(sets["items"], json!([]), "something is a Deployment");
}

/// Creates a node as kubeadm makes the first one: no other pod is scheduled there.
pub(crate) async fn create_node(admin: &Api) {
    let taint = json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"});
    let labels =
        json!({"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": NODE});
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": labels},
        "spec": {"taints": [taint]},
    });
    let created = admin.create("/api/v1/nodes", &node).await;
    created.expect("it is valid");
}

/// Waits until the desired pods of a kustomization exist, without pods of `past`, and returns them.
pub(crate) async fn pods_come(
    admin: &Api,
    rendered: &Rendered,
    past: &BTreeSet<String>,
) -> Vec<Value> {
    let mut pods = Vec::new();
    for workload in rendered.workloads() {
        // One node takes one pod of a DaemonSet. The autoscaler sets the replicas of a StatefulSet without a number.
        let wanted = match workload["spec"]["replicas"].as_u64() {
            Some(replicas) => replicas,
            None if workload["kind"] == "DaemonSet" => 1,
            None => AUTOSCALED,
        };
        let namespace = &workload["metadata"]["namespace"];
        let namespace = namespace.as_str().expect("it is in a namespace");
        let list = format!("/api/v1/namespaces/{namespace}/pods");
        let of_it = admin.wait_for("made", &list, |list| {
            let all = list["items"].as_array()?.iter();
            let ours = all.filter(|pod| {
                let owner = &pod["metadata"]["ownerReferences"][0];
                owner["kind"] == workload["kind"]
                    && owner["name"] == workload["metadata"]["name"]
                    && !past.contains(uid(pod))
            });
            let ours: Vec<_> = ours.cloned().collect();
            (ours.len() as u64 >= wanted).then_some(ours)
        });
        pods.extend(of_it.await);
    }
    pods
}

/// Deletes a pod without a grace period, as a kubelet does at once. The pod may be gone already, with its owner.
async fn delete_pod(admin: &Api, pod: &Value) {
    let text = |field: &str| pod["metadata"][field].as_str().expect("it is text");
    let (namespace, name) = (text("namespace"), text("name"));
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let now = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid(pod)}});
    if let Err(refusal) = admin.delete(&path, &now).await {
        assert!([404, 409].contains(&refusal.code), "{refusal:?}");
    }
}

pub(crate) fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().expect("each has one")
}
