//! The scheduler and the kubelets of a namespace: pods are bound, run, and stop.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tests::real::{Namespace, Patch};
use tokio::time;

use crate::{acts, objects};

/// The nodes to which pods are bound.
pub(crate) const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];

/// Acts as scheduler and kubelets, without end.
pub(crate) async fn act(namespace: Namespace) {
    let since = Timestamp::now() - SignedDuration::from_hours(1);
    let since = since.strftime("%FT%TZ").to_string();
    let status = json!({"status": objects::ready_since(&since, 0)});
    let mut looks = time::interval(Duration::from_millis(200));
    loop {
        looks.tick().await;
        let pods = namespace.pods().await.unwrap_or_default();
        for (pod, node) in pods.iter().zip(NODES.iter().cycle()) {
            attend(&namespace, pod, node, &status).await;
        }
    }
}

/// Moves a pod one step forward. The pod may be gone by then.
async fn attend(namespace: &Namespace, pod: &Value, node: &str, status: &Value) {
    let name = acts::name(pod);
    let (api, path) = (namespace.api(), namespace.pod(name));
    if pod["metadata"].get("deletionTimestamp").is_some() {
        let _gone = api.delete(&path, &json!({"gracePeriodSeconds": 0})).await;
    } else if pod["spec"].get("nodeName").is_none() {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let _gone = api.create(&format!("{path}/binding"), &binding).await;
    } else if pod["status"]["phase"] != "Running" {
        let path = format!("{path}/status");
        let _gone = api.patch(&path, Patch::Strategic, status).await;
    }
}
