//! Objects for tests, in the form `replica_set("web").replicas(3)`, `pod("a").labelled("app", "web")`.

use std::time::Duration;

use agent_fake::{ClusterConfig, Kubelet};
use serde_json::{Value, json};

/// The image of all test pods; no test pulls it.
const IMAGE: &str = "registry.example/web:1";

/// A builder of a ReplicaSet that selects pods by the label `app`, whose value is the name of the ReplicaSet.
#[derive(Clone, Debug)]
pub struct ReplicaSetBuilder(Value);

/// A builder of a pod.
#[derive(Clone, Debug)]
pub struct PodBuilder(Value);

/// Returns an embedded cluster that starts now, with short delays for tests in real time.
pub fn brisk_cluster() -> ClusterConfig {
    let millis = Duration::from_millis;
    ClusterConfig {
        start: jiff::Timestamp::now(),
        kubelet: Kubelet {
            schedule_after: millis(20),
            start_after: millis(60),
            ready_after: millis(120),
            grace: millis(200),
            jitter: millis(20),
        },
        ..ClusterConfig::default()
    }
}

/// Starts a ReplicaSet of one replica in the namespace `default`.
pub fn replica_set(name: &str) -> ReplicaSetBuilder {
    ReplicaSetBuilder(json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": IMAGE}]},
            },
        },
    }))
}

/// Starts a pod in the namespace `default`, without labels or an owner.
pub fn pod(name: &str) -> PodBuilder {
    PodBuilder(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {}},
        "spec": {"containers": [{"name": "main", "image": IMAGE}]},
    }))
}

/// Adds the preferences that bound creates and deletes: creates after termination, and one ended pod to keep.
pub fn with_preferences(set: ReplicaSetBuilder) -> ReplicaSetBuilder {
    let set = set.annotated("decree.dev/create", "after-termination");
    set.annotated("decree.dev/keep-ended", "1")
}

/// Adds the preference for as many replacements before evictions as there are pods.
pub fn with_surge(set: ReplicaSetBuilder) -> ReplicaSetBuilder {
    set.annotated("decree.dev/surge-on-eviction", "100%")
}

impl ReplicaSetBuilder {
    /// Sets the desired replicas.
    pub fn replicas(mut self, replicas: i32) -> Self {
        self.0["spec"]["replicas"] = replicas.into();
        self
    }

    /// Adds an annotation.
    pub fn annotated(mut self, key: &str, value: &str) -> Self {
        self.0["metadata"]["annotations"][key] = value.into();
        self
    }

    /// Sets the seconds of readiness after which a pod counts as available.
    pub fn min_ready_seconds(mut self, seconds: i32) -> Self {
        self.0["spec"]["minReadySeconds"] = seconds.into();
        self
    }

    /// Selects pods by this label instead, and adds it to the template.
    pub fn selecting(mut self, label: &str, value: &str) -> Self {
        self.0["spec"]["selector"]["matchLabels"] = json!({label: value});
        self.0["spec"]["template"]["metadata"]["labels"] = json!({label: value});
        self
    }

    /// Adds a label to the template.
    pub fn templated(mut self, label: &str, value: &str) -> Self {
        self.0["spec"]["template"]["metadata"]["labels"][label] = value.into();
        self
    }

    /// Returns the object.
    pub fn build(self) -> Value {
        self.0
    }
}

impl PodBuilder {
    /// Gives the pod a label.
    pub fn labelled(mut self, label: &str, value: &str) -> Self {
        self.0["metadata"]["labels"][label] = value.into();
        self
    }

    /// Assigns the pod to a node.
    pub fn on(mut self, node: &str) -> Self {
        self.0["spec"]["nodeName"] = node.into();
        self
    }

    /// Sets an existing object as the owner of the pod.
    pub fn owned_by(mut self, owner: &Value) -> Self {
        self.0["metadata"]["ownerReferences"] = json!([{
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": true,
            "blockOwnerDeletion": true,
        }]);
        self
    }

    /// Returns the object.
    pub fn build(self) -> Value {
        self.0
    }
}
