//! The acts of a person on an embedded cluster.

use agent_fake::{ApiError, Cluster, DeleteOptions, Kind};
use manifest::{self, Document};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use server_core::wording::count;

use super::beginning::COST;

const QUOTA: &str = "pods";

/// One act, as the admin port takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Act {
    /// Scale a ReplicaSet.
    Scale {
        namespace: String,
        name: String,
        replicas: i32,
    },
    /// Delete a pod.
    Delete { namespace: String, name: String },
    /// The node stops responding.
    Fail { node: String },
    /// The node responds again.
    Restore { node: String },
    /// Limit the number of pods.
    Quota { namespace: String, pods: u32 },
    /// Set the deletion cost of a pod.
    Cost {
        namespace: String,
        name: String,
        cost: i32,
    },
    /// Create or change objects.
    Apply { objects: Vec<Document> },
}

// === impl Act ===

impl Act {
    /// Executes the act, and returns a line for each object.
    pub(crate) fn perform(&self, cluster: &mut Cluster) -> Result<String, String> {
        let done = match self {
            Self::Scale {
                namespace,
                name,
                replicas,
            } => cluster
                .scale(namespace, name, *replicas)
                .map(|_| format!("replicaset.apps/{name} scaled to {replicas}")),
            Self::Delete { namespace, name } => cluster
                .delete(Kind::Pod, namespace, name, &DeleteOptions::default())
                .map(|_| format!("pod/{name} deleted")),
            Self::Fail { node } => {
                let pods = cluster.objects(Kind::Pod);
                let pods = pods.filter(|it| it["spec"]["nodeName"] == **node && is_active(it));
                let pods = count(pods.count(), "pod");
                cluster
                    .fail_node(node)
                    .map(|()| format!("node/{node} does not answer, with {pods} on it"))
            }
            Self::Restore { node } => cluster
                .recover_node(node)
                .map(|()| format!("node/{node} answers")),
            Self::Quota { namespace, pods } => quota(cluster, namespace, *pods),
            Self::Cost {
                namespace,
                name,
                cost,
            } => {
                let patch = json!({"metadata": {"annotations": {COST: cost.to_string()}}});
                cluster
                    .patch(Kind::Pod, namespace, name, &patch)
                    .map(|_| format!("pod/{name} has deletion cost {cost}"))
            }
            Self::Apply { objects } => return apply(cluster, objects.clone()),
        };
        done.map_err(|error| error.message)
    }
}

/// Whether a pod has neither ended nor a deletion request.
pub(crate) fn is_active(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    pod.pointer("/metadata/deletionTimestamp").is_none()
        && !matches!(phase, Some("Succeeded" | "Failed"))
}

fn quota(cluster: &mut Cluster, namespace: &str, pods: u32) -> Result<String, ApiError> {
    let spec = json!({"hard": {"pods": pods.to_string()}});
    let known = cluster.peek(Kind::ResourceQuota, namespace, QUOTA);
    if known.is_some() {
        let patch = json!({"spec": spec});
        cluster.patch(Kind::ResourceQuota, namespace, QUOTA, &patch)?;
    } else {
        cluster.create(json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"namespace": namespace, "name": QUOTA}, "spec": spec,
        }))?;
    }
    let pods = count(pods, "pod");
    Ok(format!(
        "resourcequota/{QUOTA} of {namespace} allows {pods}"
    ))
}

/// Creates missing objects, and changes existing ones. Does nothing if the cluster cannot hold the kind of an object, and stops
/// at the first object that the cluster refuses.
fn apply(cluster: &mut Cluster, documents: Vec<Document>) -> Result<String, String> {
    manifest::check_all(&documents).map_err(|error| error.to_string())?;
    let (known, new): (Vec<_>, Vec<_>) = documents
        .into_iter()
        .partition(|document| find(cluster, &document.object).is_some());
    let mut said = Vec::new();
    for document in &known {
        let changed = change(cluster, &document.object);
        said.push(changed.map_err(|error| format!("{}: {error}", document.place))?);
    }
    let created = new.iter().map(|document| word(&document.object));
    said.extend(created.map(|word| format!("{word} created")));
    manifest::install(cluster, new).map_err(|error| error.to_string())?;
    Ok(said.join("\n"))
}

fn change(cluster: &mut Cluster, object: &Value) -> Result<String, String> {
    let (kind, namespace, name) = place(object).unwrap_or((Kind::Pod, "", ""));
    let mut patch = json!({"metadata": {}});
    for field in ["labels", "annotations"] {
        if let Some(value) = object["metadata"].get(field) {
            patch["metadata"][field] = value.clone();
        }
    }
    // The spec of a pod is immutable, and a node keeps its spec.
    if matches!(kind, Kind::ReplicaSet | Kind::ResourceQuota)
        && let Some(spec) = object.get("spec")
    {
        patch["spec"] = spec.clone();
    }
    let changed = cluster.patch(kind, namespace, name, &patch);
    changed.map_err(|error| error.message)?;
    Ok(format!("{} configured", word(object)))
}

fn find<'a>(cluster: &'a Cluster, object: &Value) -> Option<&'a agent_fake::Object> {
    let (kind, namespace, name) = place(object)?;
    let namespace = if kind.is_namespaced() { namespace } else { "" };
    cluster.peek(kind, namespace, name)
}

fn place(object: &Value) -> Option<(Kind, &str, &str)> {
    let kind = Kind::parse(object["kind"].as_str()?)?;
    let namespace = object.pointer("/metadata/namespace");
    let namespace = namespace.and_then(Value::as_str).unwrap_or("default");
    Some((kind, namespace, object["metadata"]["name"].as_str()?))
}

/// The name of an object as kubectl prints it.
fn word(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let kind = match text("/kind").unwrap_or_default() {
        "ReplicaSet" => "replicaset.apps".to_owned(),
        kind => kind.to_lowercase(),
    };
    format!("{kind}/{}", text("/metadata/name").unwrap_or_default())
}
