//! Requests of people to a cluster, with their own credentials: the preflight, the resumption of an agent's holds, and the search for the
//! probe and for the pods of Decree.

use agent_core::api::{ApiError, Kind};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    cluster::KubeCluster,
    codec,
    objects::FIELD_MANAGER,
    probe::{PROBE, text},
    requests,
};

/// How long after its last write another controller counts as acting.
const ACTING: SignedDuration = SignedDuration::from_mins(10);
/// How many objects of a kind are searched for writers, in pages.
const PAGE: usize = 500;
const PAGES_MAX: usize = 100;

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

/// A write of another controller than Decree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherWrite {
    /// The time of the write.
    pub at: Timestamp,
    /// Who wrote what, such as `k3s created pod default/web-7qz9m`.
    pub what: String,
}

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
        let request = requests::post(requests::ACCESS_REVIEWS, &review)?;
        let answer = self.read(request).await?;
        Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
    }

    /// Returns the name of the user of these credentials.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn user(&self) -> Result<String, ApiError> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "SelfSubjectReview",
        });
        let request = requests::post(requests::USER_REVIEWS, &review)?;
        let answer = self.read(request).await?;
        Ok(text(&answer, "/status/userInfo/username").to_owned())
    }

    /// Finds the namespaces with a probe.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn probe_namespaces(&self) -> Result<Vec<String>, ApiError> {
        let path = format!("/apis/apps/v1/replicasets?fieldSelector=metadata.name%3D{PROBE}");
        let list = self.read(requests::read(&path, codec::JSON)?).await?;
        let probes = list.pointer("/items").and_then(Value::as_array);
        let namespace = |object: &Value| text(object, "/metadata/namespace").to_owned();
        Ok(probes.into_iter().flatten().map(namespace).collect())
    }

    /// Finds the latest write of another controller within the last 10 minutes, whatever its name: a pod of a ReplicaSet that it
    /// created, or the status of a ReplicaSet. Returns also whether all objects were searched: 50,000 of a kind are the most.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn other_write(
        &self,
        now: Timestamp,
    ) -> Result<(Option<OtherWrite>, bool), ApiError> {
        let (mut latest, mut is_complete) = (None::<OtherWrite>, true);
        for kind in Kind::ALL {
            let mut next = None;
            for _ in 0..PAGES_MAX {
                let path = self.scope.page(kind, PAGE, next.as_deref())?;
                let list = self.read(requests::read(&path, codec::METADATA)?).await?;
                let objects = list.pointer("/items").and_then(Value::as_array);
                let writes = objects.into_iter().flatten();
                let writes = writes.filter_map(|object| written_by_other(kind, object));
                let writes = writes.filter(|write| now.duration_since(write.at) < ACTING);
                latest = latest
                    .into_iter()
                    .chain(writes)
                    .max_by_key(|write| write.at);
                next = Some(text(&list, "/metadata/continue").to_owned());
                next = next.filter(|token| !token.is_empty());
                if next.is_none() {
                    break;
                }
            }
            is_complete &= next.is_none();
        }
        Ok((latest, is_complete))
    }

    /// Reads an object of the group `apps` by its resource, such as `deployments`, and by its namespace and name.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn app(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, ApiError> {
        self.read(requests::app(resource, namespace, name)?).await
    }

    /// Lists the pods of a label selector, in a namespace or in all, as JSON: the first 500.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn pods(
        &self,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let mut list = self.read(requests::pods(namespace, selector)?).await?;
        let pods = list["items"].as_array_mut().map(std::mem::take);
        Ok(pods.unwrap_or_default())
    }

    /// Returns the namespace and the name of any ReplicaSet that this handle reads, other than a [`PROBE`]; `None` if there is none.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn some_replica_set(&self) -> Result<Option<(String, String)>, ApiError> {
        let path = self.scope.page(Kind::ReplicaSet, 1, None)?;
        let path = format!("{path}&fieldSelector=metadata.name%21%3D{PROBE}");
        let page = self.read(requests::read(&path, codec::JSON)?).await?;
        let text = |path| page.pointer(path)?.as_str().map(str::to_owned);
        let namespace = text("/items/0/metadata/namespace");
        Ok(namespace.zip(text("/items/0/metadata/name")))
    }

    /// Sets the [annotation](agent_core::budget::resume::RESUME_ANNOTATION) of a ReplicaSet.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn resume(&self, namespace: &str, name: &str, value: &str) -> Result<(), ApiError> {
        let request = requests::resume(&self.scope.resource, namespace, name, value)?;
        self.read(request).await.map(drop)
    }
}

/// The last write of another controller to an object: the creation of a pod of a ReplicaSet, or the status of a ReplicaSet.
fn written_by_other(kind: Kind, object: &Value) -> Option<OtherWrite> {
    let array = |path| object.pointer(path).and_then(Value::as_array);
    let managed = array("/metadata/managedFields")?.iter();
    let (namespace, name) = (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    );
    let write = |entry, time: &str, act| {
        let writer = text(entry, "/manager");
        Some(OtherWrite {
            at: time.parse().ok().filter(|_| writer != FIELD_MANAGER)?,
            what: format!("{writer} {act} {namespace}/{name}"),
        })
    };
    match kind {
        Kind::Pod => {
            let mut owners = array("/metadata/ownerReferences")?.iter();
            owners.find(|it| it["controller"] == true && it["kind"] == "ReplicaSet")?;
            let writers = managed.filter(|entry| text(entry, "/subresource").is_empty());
            // The API server lists who applied first, whenever that was.
            let creator = writers.min_by_key(|entry| {
                let at: Option<Timestamp> = text(entry, "/time").parse().ok();
                (at, text(entry, "/manager") != FIELD_MANAGER)
            });
            let created = text(object, "/metadata/creationTimestamp");
            write(creator?, created, "created pod")
        }
        Kind::ReplicaSet => {
            let statuses = managed.filter(|entry| text(entry, "/subresource") == "status");
            let act = "wrote the status of";
            let writes = statuses.filter_map(|entry| write(entry, text(entry, "/time"), act));
            writes.max_by_key(|write| write.at)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creator_of_a_pod_is_its_oldest_writer_and_decree_among_several() {
        let entry = |manager: &str, operation: &str, minute: u8| {
            let time = format!("2026-05-01T12:{minute:02}:00Z");
            json!({"manager": manager, "operation": operation, "time": time})
        };
        let decree = |minute| entry(FIELD_MANAGER, "Update", minute);
        let by_other = Some("k3s created pod default/web-a");
        for (managed, expected) in [
            ([entry("mesh", "Apply", 7), decree(0)], None),
            ([entry("mesh", "Update", 0), decree(0)], None),
            ([decree(0), entry("mesh", "Update", 7)], None),
            ([decree(7), entry("k3s", "Update", 0)], by_other),
            (
                [entry("mesh", "Apply", 7), entry("k3s", "Update", 0)],
                by_other,
            ),
        ] {
            let pod = json!({"metadata": {
                "namespace": "default", "name": "web-a", "creationTimestamp": "2026-05-01T12:00:00Z",
                "ownerReferences": [{"kind": "ReplicaSet", "controller": true}],
                "managedFields": managed,
            }});
            let write = written_by_other(Kind::Pod, &pod);
            let what = write.as_ref().map(|write| write.what.as_str());
            assert_eq!(what, expected, "{managed:?}");
        }
    }
}
