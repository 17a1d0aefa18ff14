//! The probe: a ReplicaSet without desired pods, by which an agent finds out whether the built-in controller is on.

use agent_core::{api::ApiError, standby::SeenBy};
use http::Request;
use serde_json::{Value, json};

use crate::{
    body::RequestBody,
    cluster::KubeCluster,
    operator::{BUILT_IN, text},
    requests,
};

/// The name of the probe.
pub const PROBE: &str = "decree-probe";
/// The annotation of the probe after an agent has found the built-in controller off.
const FOUND_OFF: &str = "decree.dev/built-in-controller";
const OFF: &str = "off";

/// The probe of a namespace.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The cluster.
    pub cluster: KubeCluster,
    /// The namespace.
    pub namespace: String,
}

/// The state of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeState {
    /// Who has reported the last change of the probe.
    pub seen_by: SeenBy,
    /// Whether an agent has found the built-in controller off.
    pub found_off: bool,
    min_ready_seconds: i64,
}

// === impl Probe ===

impl Probe {
    /// Reads the probe.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn read(&self) -> Result<ProbeState, ApiError> {
        self.send(requests::probe(&self.namespace, PROBE)?).await
    }

    /// Changes the probe so that a running controller reports it in the status. Creates the probe if absent.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn change(&self) -> Result<ProbeState, ApiError> {
        let seconds = match self.read().await {
            Ok(probe) => 1 - probe.min_ready_seconds.clamp(0, 1),
            Err(error) if error.code == Some(404) => {
                let created = requests::create_probe(&self.namespace, &manifest())?;
                return self.send(created).await;
            }
            Err(error) => return Err(error),
        };
        self.patch(&json!({"spec": {"minReadySeconds": seconds}}))
            .await
    }

    /// Notes in the probe whether the built-in controller is off.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn mark(&self, is_off: bool) -> Result<(), ApiError> {
        let mark = is_off.then_some(OFF);
        let patch = json!({"metadata": {"annotations": {FOUND_OFF: mark}}});
        self.patch(&patch).await.map(drop)
    }

    async fn patch(&self, patch: &Value) -> Result<ProbeState, ApiError> {
        self.send(requests::patch_probe(&self.namespace, PROBE, patch)?)
            .await
    }

    async fn send(&self, request: Request<RequestBody>) -> Result<ProbeState, ApiError> {
        let probe = self.cluster.read(request).await?;
        Ok(ProbeState::of(&probe))
    }
}

/// The probe as created. Its container never runs.
fn manifest() -> Value {
    let labels = json!({"app.kubernetes.io/name": PROBE});
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": PROBE,
            "labels": labels,
            "annotations": {
                "decree.dev/what": "decree-agent finds out by it whether the built-in ReplicaSet controller is on",
            },
        },
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{
                        "name": "none",
                        "image": "none",
                        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                    }],
                },
            },
        },
    })
}

// === impl ProbeState ===

impl ProbeState {
    fn of(object: &Value) -> Self {
        let number = |path: &str| object.pointer(path).and_then(Value::as_i64);
        let generation = number("/metadata/generation").unwrap_or(0);
        let observed = number("/status/observedGeneration").unwrap_or(0);
        Self {
            seen_by: if observed < generation {
                SeenBy::Nobody
            } else {
                observer(object)
            },
            found_off: object["metadata"]["annotations"][FOUND_OFF] == OFF,
            min_ready_seconds: number("/spec/minReadySeconds").unwrap_or(0),
        }
    }
}

/// The writer of the observed generation.
fn observer(object: &Value) -> SeenBy {
    let managed = object["metadata"]["managedFields"].as_array();
    let observes =
        |entry: &&Value| entry["fieldsV1"]["f:status"]["f:observedGeneration"].is_object();
    let mut observers = managed.into_iter().flatten().filter(observes);
    if observers.any(|entry| text(entry, "/manager") == BUILT_IN) {
        SeenBy::BuiltIn
    } else {
        SeenBy::Another
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::FIELD_MANAGER;

    fn seen(generation: i64, observed: Option<i64>, writer: &str) -> SeenBy {
        let probe = json!({
            "metadata": {"generation": generation, "managedFields": [
                {"manager": FIELD_MANAGER, "fieldsV1": {"f:spec": {}}},
                {"manager": BUILT_IN, "subresource": "status", "fieldsV1": {"f:status": {"f:replicas": {}}}},
                {"manager": writer, "subresource": "status", "fieldsV1": {"f:status": {"f:observedGeneration": {}}}},
            ]},
            "status": {"observedGeneration": observed},
        });
        ProbeState::of(&probe).seen_by
    }

    #[test]
    fn probe_tells_who_saw_its_last_change() {
        assert_eq!(seen(1, None, BUILT_IN), SeenBy::Nobody);
        assert_eq!(seen(3, Some(2), BUILT_IN), SeenBy::Nobody);
        assert_eq!(seen(3, Some(3), BUILT_IN), SeenBy::BuiltIn);
        assert_eq!(seen(3, Some(3), FIELD_MANAGER), SeenBy::Another);
    }
}
