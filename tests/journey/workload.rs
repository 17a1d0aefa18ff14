//! The workload of a journey: a Deployment, and the expected entries of the audit log for its pods.

use std::time::Instant;

use serde_json::{Value, json};
use tokio::time;

use super::{
    cluster::{Cluster, LOOK_EVERY, PATIENCE},
    ledger::Counts,
};

pub(crate) const NAMESPACE: &str = "shop";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
const PODS: &str = "/api/v1/namespaces/shop/pods";
const QUOTA: &str = "/api/v1/namespaces/shop/resourcequotas";

/// The Deployment `web`: its desired replicas, and the numbers of created and deleted pods so far.
#[derive(Debug, Default)]
pub(crate) struct Workload {
    replicas: usize,
    releases: usize,
    counts: Counts,
}

/// The controller that must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Decree,
    BuiltIn,
}

impl Workload {
    /// Creates the Deployment without pods.
    pub(crate) async fn open(cluster: &Cluster) -> Self {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let labels = json!({"app": "web"});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "strategy": {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "registry.k8s.io/pause:3.10"}]},
                },
            },
        });
        for (path, object) in [
            ("/api/v1/namespaces", &namespace),
            ("/apis/apps/v1/namespaces/shop/deployments", &deployment),
        ] {
            cluster.api.create(path, object).await.expect("it is valid");
        }
        Self::default()
    }

    /// Scales the Deployment without a wait; the counts are due from this controller.
    pub(crate) async fn asks(&mut self, cluster: &Cluster, replicas: usize, by: By) {
        let (more, fewer) = (
            replicas.saturating_sub(self.replicas),
            self.replicas.saturating_sub(replicas),
        );
        self.replicas = replicas;
        self.owes(by, more, fewer);
        let patch = json!({"spec": {"replicas": replicas}});
        cluster.api.change(DEPLOYMENT, &patch).await;
    }

    /// Scales the Deployment, and waits until it has settled.
    pub(crate) async fn scales(&mut self, cluster: &Cluster, replicas: usize, by: By) {
        self.asks(cluster, replicas, by).await;
        self.settles(cluster, &format!("{replicas} pods by {by:?}"))
            .await;
    }

    /// Rolls out a new template, and waits until the Deployment has settled.
    pub(crate) async fn rolls_out(&mut self, cluster: &Cluster, by: By) {
        self.releases += 1;
        self.owes(by, self.replicas, self.replicas);
        let release = json!({"release": self.releases.to_string()});
        let patch = json!({"spec": {"template": {"metadata": {"annotations": release}}}});
        cluster.api.change(DEPLOYMENT, &patch).await;
        self.settles(cluster, "rolled out").await;
    }

    /// Notes pods that somebody else removed, whose replacements are due.
    pub(crate) fn lost(&mut self, pods: usize) {
        self.owes(By::Decree, pods, 0);
    }

    /// Limits the number of pods in the namespace; `None` removes the limit.
    pub(crate) async fn allows(&self, cluster: &Cluster, pods: Option<usize>) {
        let name = format!("{QUOTA}/few");
        let Some(pods) = pods else {
            cluster.api.remove(&name, &json!({})).await;
            return;
        };
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
            "spec": {"hard": {"pods": pods.to_string()}},
        });
        cluster.api.make(QUOTA, &quota).await;
        let counted = |quota: &Value| quota["status"]["used"]["pods"].as_str().map(drop);
        cluster.wait_for("counted", &name, counted).await;
    }

    /// Waits until a ReplicaSet reports that its pods are refused, with `there` existing pods or more: the API server counts the use of a
    /// quota again after each recount of kube-controller-manager, which may be late, and then admits a pod too many.
    pub(crate) async fn is_refused(&self, cluster: &Cluster, there: u64) {
        let refused = |sets: &Value| {
            let mut sets = sets["items"].as_array()?.iter();
            let conditions = |set: &Value| set["status"]["conditions"].to_string();
            sets.find(|set| conditions(set).contains("ReplicaFailure"))
                .filter(|set| set["status"]["replicas"].as_u64() >= Some(there))
                .map(drop)
        };
        let sets = "/apis/apps/v1/namespaces/shop/replicasets";
        cluster.wait_for("refused", sets, refused).await;
    }

    /// The nodes of its pods, without terminating ones.
    pub(crate) async fn nodes(&self, cluster: &Cluster) -> Vec<String> {
        let mut pods = cluster.api.list(PODS).await.expect("they can be listed");
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let nodes = pods.iter().map(|pod| pod["spec"]["nodeName"].as_str());
        nodes.flatten().map(str::to_owned).collect()
    }

    /// Waits until exactly the desired pods exist and are ready, besides terminating ones. The audit log must then have the
    /// expected numbers of created and deleted pods of each controller.
    ///
    /// # Panics
    /// If the log has more, and with the current state, if the wait takes too long.
    pub(crate) async fn settles(&self, cluster: &Cluster, step: &str) {
        let until = Instant::now() + PATIENCE;
        let mut looks = time::interval(LOOK_EVERY);
        let mut seen = Vec::new();
        loop {
            looks.tick().await;
            let late = Instant::now() >= until;
            let Ok(pods) = cluster.api.list(PODS).await else {
                assert!(!late, "{step}: pods cannot be listed\n{}", cluster.told());
                continue;
            };
            let counts = Counts::of(&cluster.audit.lines(0), NAMESPACE, &pods);
            let told = || {
                format!(
                    "{step}: {counts:?} of {:?}\n{}",
                    self.counts,
                    cluster.told()
                )
            };
            assert!(counts.is_within(&self.counts), "too much: {}", told());
            if counts == self.counts && self.is_settled(cluster, &pods, &mut seen).await {
                return;
            }
            assert!(!late, "not settled: {seen:#?} {}", told());
        }
    }

    async fn is_settled(&self, cluster: &Cluster, pods: &[Value], seen: &mut Vec<Value>) -> bool {
        let Ok(deployment) = cluster.api.get(DEPLOYMENT).await else {
            return false;
        };
        let status = &deployment["status"];
        let lasting = pods
            .iter()
            .filter(|it| it["metadata"]["deletionTimestamp"].is_null());
        let counts = ["replicas", "updatedReplicas", "availableReplicas"];
        let is_settled = lasting.count() == self.replicas
            && status["observedGeneration"] == deployment["metadata"]["generation"]
            && (self.replicas == 0 || counts.iter().all(|it| status[it] == self.replicas));
        *seen = vec![status.clone(), json!(pods.len())];
        is_settled
    }

    fn owes(&mut self, by: By, made: usize, deleted: usize) {
        match by {
            By::Decree => {
                self.counts.made += made;
                self.counts.deleted += deleted;
            }
            By::BuiltIn => {
                self.counts.made_by_built_in += made;
                self.counts.deleted_by_built_in += deleted;
            }
        }
    }
}
