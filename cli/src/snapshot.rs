//! A view of a cluster from objects of files, projected and converted exactly as an agent and a server would.

mod scope;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::Display,
};

use agent_kube::objects;
use decree_server::wire::{Violation, decode};
use manifest::{Document, Location};
use serde_json::Value;
use server_core::{Pod, ReplicaSet};
use thiserror::Error;

pub(crate) use self::scope::Scopes;
use crate::{
    args::Named,
    exit::{Exit, Failure},
};

/// The ReplicaSets and pods of the input, and the ignored kinds.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) replica_sets: Vec<ReplicaSet>,
    pub(crate) pods: Vec<Pod>,
    /// The number of ignored objects by kind.
    pub(crate) ignored: BTreeMap<String, usize>,
}

/// Why an object cannot be part of a snapshot.
#[derive(Debug, Error)]
pub(crate) enum SnapshotError {
    #[error("{place}: {detail}")]
    Invalid { place: Location, detail: String },
    #[error("{place}: {object} is in the input twice, and differs from the one at {first}")]
    Twice {
        place: Location,
        object: String,
        first: Location,
    },
}

/// The kinds that decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    ReplicaSet,
    Pod,
}

// === impl Snapshot ===

impl Snapshot {
    /// Builds the view. Identical duplicates count once.
    pub(crate) fn build(documents: Vec<Document>) -> Result<Self, SnapshotError> {
        let mut snapshot = Self::default();
        let mut seen = BTreeMap::new();
        for document in documents {
            let kind = match Kind::of(&document)? {
                Ok(kind) => kind,
                Err(other) => {
                    *snapshot.ignored.entry(other).or_insert(0) += 1;
                    continue;
                }
            };
            let Document { place, object } = &document;
            match kind {
                Kind::ReplicaSet => {
                    let set = objects::replica_set(object).map_err(|it| invalid(place, it))?;
                    let set = set.projected;
                    let name = Named::new(&set.namespace, &set.name);
                    let set = decode::replica_set(&set);
                    let set = set.map_err(|it| bad_field(kind, place, &name, &it))?;
                    if is_new(&mut seen, (kind, name), document)? {
                        snapshot.replica_sets.push(set);
                    }
                }
                Kind::Pod => {
                    let pod = objects::pod(object).map_err(|it| invalid(place, it))?;
                    let name = Named::new(&pod.namespace, &pod.name);
                    let pod = decode::pod(&pod);
                    let pod = pod.map_err(|it| bad_field(kind, place, &name, &it))?;
                    if is_new(&mut seen, (kind, name), document)? {
                        snapshot.pods.push(pod);
                    }
                }
            }
        }
        Ok(snapshot)
    }
}

/// Adds an object to those that were seen; `false` for an identical duplicate.
fn is_new(
    seen: &mut BTreeMap<(Kind, Named), Document>,
    key: (Kind, Named),
    document: Document,
) -> Result<bool, SnapshotError> {
    match seen.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(document);
            Ok(true)
        }
        Entry::Occupied(first) if first.get().object == document.object => Ok(false),
        Entry::Occupied(first) => {
            let (kind, name) = first.key();
            Err(SnapshotError::Twice {
                object: format!("{} {}", kind.noun(), name.path()),
                place: document.place,
                first: first.get().place.clone(),
            })
        }
    }
}

// === impl Kind ===

impl Kind {
    /// The kind, or the word for another kind. Objects of API lists do not state their kind, so the fields tell.
    fn of(document: &Document) -> Result<Result<Self, String>, SnapshotError> {
        let Document { place, object } = document;
        match object.get("kind") {
            Some(Value::String(kind)) if kind == "ReplicaSet" => Ok(Ok(Self::ReplicaSet)),
            Some(Value::String(kind)) if kind == "Pod" => Ok(Ok(Self::Pod)),
            Some(Value::String(kind)) => Ok(Err(kind.clone())),
            None if object.pointer("/spec/template").is_some() => Ok(Ok(Self::ReplicaSet)),
            None if object.pointer("/spec/containers").is_some() => Ok(Ok(Self::Pod)),
            None => Err(invalid(place, "kind: is required")),
            Some(_) => Err(invalid(place, "kind: expected a string")),
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::ReplicaSet => "replica set",
            Self::Pod => "pod",
        }
    }
}

fn invalid(place: &Location, detail: impl Display) -> SnapshotError {
    SnapshotError::Invalid {
        place: place.clone(),
        detail: detail.to_string(),
    }
}

fn bad_field(
    kind: Kind,
    place: &Location,
    name: &Named,
    violations: &[Violation],
) -> SnapshotError {
    let first = violations.first();
    let field = first.map(|violation| kubernetes_path(&violation.field));
    let description = first.map_or("", |violation| &violation.description);
    let (noun, path, field) = (kind.noun(), name.path(), field.unwrap_or_default());
    invalid(place, format!("{noun} {path}: {field}: {description}"))
}

/// The path in Kubernetes for a field of a projected object of the contract.
fn kubernetes_path(field: &str) -> String {
    let head_ends = field.find(['.', '[']).unwrap_or(field.len());
    let (head, rest) = field.split_at(head_ends);
    let path = match head {
        "namespace" | "name" | "uid" | "labels" | "generation" => format!("metadata.{head}"),
        "resource_version" => "metadata.resourceVersion".to_owned(),
        "created" => "metadata.creationTimestamp".to_owned(),
        "deleted" => "metadata.deletionTimestamp".to_owned(),
        "controller" => "metadata.ownerReferences".to_owned(),
        "ready" | "disruption_target" => "status.conditions".to_owned(),
        "max_regular_restarts" => "status.containerStatuses".to_owned(),
        "max_sidecar_restarts" => "status.initContainerStatuses".to_owned(),
        other => other.to_owned(),
    };
    path + rest
}

// === impl SnapshotError ===

impl From<SnapshotError> for Failure {
    fn from(error: SnapshotError) -> Self {
        let hint = match &error {
            SnapshotError::Invalid { .. } => "use the output of: kubectl get rs,pods -o json",
            SnapshotError::Twice { .. } => {
                "the input must be one state of the cluster, with each object once"
            }
        };
        Self::new(Exit::Usage, error.to_string()).hint(hint)
    }
}
