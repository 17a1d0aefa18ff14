//! Requests of people to a cluster, with their own credentials: the preflight, and the resumption of an agent's holds.

use agent_core::api::{ApiError, Kind};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{cluster::KubeCluster, codec, requests};

/// The name of the built-in controller as a writer.
pub const BUILT_IN: &str = "kube-controller-manager";
/// How long after its last write the built-in controller counts as acting.
const ACTING: SignedDuration = SignedDuration::from_mins(10);
/// How many ReplicaSets are searched for writers.
const SETS_MAX: usize = 500;

/// A permission of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Access<'a> {
    /// The verb, such as `create`.
    pub verb: &'a str,
    /// The API group, empty for the core.
    pub group: &'a str,
    /// The resource, such as `replicasets`.
    pub resource: &'a str,
    /// The subresource, such as `status`; empty for the resource itself.
    pub subresource: &'a str,
    /// The one object; empty for any.
    pub name: &'a str,
}

/// The latest write of a ReplicaSet's status by the built-in controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusWrite {
    /// The namespace and the name, with a slash between them.
    pub replica_set: String,
    /// The time since the write.
    pub ago: SignedDuration,
}

// === impl KubeCluster ===

impl KubeCluster {
    /// Reads the API server's version, such as `v1.36.3`.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn version(&self) -> Result<String, ApiError> {
        let version = self.read(requests::read("/version", codec::JSON)?).await?;
        Ok(text(&version, "/gitVersion").to_owned())
    }

    /// Reads whether these credentials allow an access, in a namespace or in all.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn may(&self, access: Access<'_>, namespace: Option<&str>) -> Result<bool, ApiError> {
        let mut review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": access},
        });
        review["spec"]["resourceAttributes"]["namespace"] = namespace.unwrap_or_default().into();
        let request = requests::access_review(&review)?;
        let answer = self.read(request).await?;
        Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
    }

    /// Finds the latest write of a status by the built-in controller within the last 10 minutes, among the first ReplicaSets of the
    /// cluster.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn built_in_write(&self, now: Timestamp) -> Result<Option<StatusWrite>, ApiError> {
        let path = format!("/apis/apps/v1/replicasets?limit={SETS_MAX}");
        let list = self.read(requests::read(&path, codec::METADATA)?).await?;
        let sets = list.pointer("/items").and_then(Value::as_array);
        let writes = sets.into_iter().flatten().filter_map(|set| {
            let ago = now.duration_since(status_written(set, BUILT_IN)?);
            let namespace = text(set, "/metadata/namespace");
            let name = text(set, "/metadata/name");
            let replica_set = format!("{namespace}/{name}");
            Some(StatusWrite { replica_set, ago })
        });
        let latest = writes.min_by_key(|write| write.ago);
        Ok(latest.filter(|write| write.ago < ACTING))
    }

    /// Returns the namespace and the name of any ReplicaSet that this handle reads; `None` if there is none.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn some_replica_set(&self) -> Result<Option<(String, String)>, ApiError> {
        let path = self.scope.page(Kind::ReplicaSet, 1, None)?;
        let page = self.read(requests::read(&path, codec::JSON)?).await?;
        let text = |path| page.pointer(path)?.as_str().map(str::to_owned);
        let namespace = text("/items/0/metadata/namespace");
        Ok(namespace.zip(text("/items/0/metadata/name")))
    }

    /// Sets the [annotation](agent_core::resume::RESUME_ANNOTATION) of a ReplicaSet.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn resume(&self, namespace: &str, name: &str, value: &str) -> Result<(), ApiError> {
        let request = requests::resume(&self.scope.resource, namespace, name, value)?;
        self.read(request).await.map(drop)
    }
}

/// The last time that a writer wrote the status of an object.
fn status_written(object: &Value, writer: &str) -> Option<Timestamp> {
    let managed = object.pointer("/metadata/managedFields")?.as_array()?;
    let its = managed.iter().filter(|entry| {
        text(entry, "/manager") == writer && text(entry, "/subresource") == "status"
    });
    its.filter_map(|entry| text(entry, "/time").parse().ok())
        .max()
}

pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    let field = object.pointer(path).and_then(Value::as_str);
    field.unwrap_or_default()
}
