//! A roll-out of Decree whose pods never become ready keeps the working pods, and can be corrected.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use tests::real::{Api, ApiServer, ControllerManager, Patch};
use tokio::time;

use crate::{
    from_nothing::{create_node, pods_come, uid},
    objects,
    rendered::{Rendered, path},
};

/// Times of creation have a resolution of a second, and the controller of DaemonSets keeps the oldest pod of an older release.
const AGE: Duration = Duration::from_millis(1100);

/// Older than any minReadySeconds.
const LONG_AGO: &str = "2026-01-01T00:00:00Z";

#[tokio::test]
async fn roll_outs_that_fail_leave_what_works_and_are_corrected() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let admin = cluster.admin().await;
    create_node(&admin).await;
    let _others = ControllerManager::start_others(&cluster);
    for folder in ["overlays/all-in-one", "overlays/high-availability"] {
        let rendered = tests::or_skip!(Rendered::of(folder));
        rendered.apply(&admin).await;
        for pod in pods_come(&admin, &rendered, &BTreeSet::new()).await {
            becomes_ready(&admin, &pod).await;
        }
        for workload in rendered.workloads() {
            let rolled = RollOut {
                admin: &admin,
                workload,
            };
            rolled.fails_and_is_corrected().await;
        }
        rendered.delete(&admin).await;
    }
}

/// A workload, and its pods.
struct RollOut<'a> {
    admin: &'a Api,
    workload: &'a Value,
}

// === impl RollOut ===

impl RollOut<'_> {
    async fn fails_and_is_corrected(&self) {
        let all = self.admin.get(&path(self.workload)).await;
        let all = all.expect("it was applied")["spec"]["replicas"].as_u64();
        let all = usize::try_from(all.unwrap_or(1)).expect("they are few");
        let first = self.pods(|pods| pods.len() == all).await;
        time::sleep(AGE).await;
        self.begins("bad").await;
        self.pods(|pods| of_release(pods, "bad").len() == 1).await;
        self.is_observed().await;
        let during = self.pods(|_| true).await;
        let left: Vec<_> = first.iter().filter(|pod| is_among(&during, pod)).collect();
        // If a pod is added first, the pod to replace is among them.
        let least = usize::max(1, all - 1);
        assert!(left.len() >= least, "{left:#?} of {during:#?}");

        self.begins("good").await;
        // Only the bad pod has ended when the first good one comes.
        let good = self.pods(|pods| !of_release(pods, "good").is_empty()).await;
        let kept: Vec<_> = left.iter().filter(|pod| is_among(&good, pod)).collect();
        assert_eq!(kept.len(), left.len(), "{good:#?}");
        loop {
            let now = self.pods(|_| true).await;
            for pod in of_release(&now, "good") {
                becomes_ready(self.admin, pod).await;
            }
            if now.len() == all && of_release(&now, "good").len() == all {
                return;
            }
        }
    }

    /// Rolls out a release of this name.
    async fn begins(&self, release: &str) {
        let annotations = json!({"annotations": {"release": release}});
        let patch = json!({"spec": {"template": {"metadata": annotations}}});
        let path = path(self.workload);
        let patched = self.admin.patch(&path, Patch::Merge, &patch).await;
        patched.expect("it is there");
    }

    /// Waits until the controller has seen the last change.
    async fn is_observed(&self) {
        let observed = |it: &Value| {
            let seen = it["status"]["observedGeneration"] == it["metadata"]["generation"];
            seen.then_some(())
        };
        let path = path(self.workload);
        self.admin.wait_for("observed", &path, observed).await;
    }

    /// Waits until `is_so` holds for its pods, and returns them.
    async fn pods(&self, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let namespace = &self.workload["metadata"]["namespace"];
        let namespace = namespace.as_str().expect("it is in a namespace");
        let list = format!("/api/v1/namespaces/{namespace}/pods");
        let ours = |pod: &&Value| {
            let owner = &pod["metadata"]["ownerReferences"][0];
            owner["name"] == self.workload["metadata"]["name"]
                && pod["metadata"]["deletionTimestamp"].is_null()
        };
        let find = |list: &Value| {
            let all = list["items"].as_array()?.iter();
            let ours: Vec<_> = all.filter(ours).cloned().collect();
            is_so(&ours).then_some(ours)
        };
        self.admin.wait_for("so", &list, find).await
    }
}

fn of_release<'a>(pods: &'a [Value], release: &str) -> Vec<&'a Value> {
    let is_of = |pod: &&Value| pod["metadata"]["annotations"]["release"] == release;
    pods.iter().filter(is_of).collect()
}

fn is_among(pods: &[Value], pod: &Value) -> bool {
    pods.iter().any(|it| uid(it) == uid(pod))
}

/// Acts once as the kubelet of a working pod.
async fn becomes_ready(admin: &Api, pod: &Value) {
    if pod["status"]["phase"] == "Running" {
        return;
    }
    let status = json!({"status": objects::ready_since(LONG_AGO, 0)});
    let path = format!("{}/status", path(&pod_of(pod)));
    // A pod that is deleted at this moment needs no kubelet.
    let _ = admin.patch(&path, Patch::Merge, &status).await;
}

/// Adds the kind to a pod of a list, because lists leave it out.
fn pod_of(pod: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]})
}
