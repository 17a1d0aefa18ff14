//! A view of a cluster from objects of files, projected and converted exactly as an agent and a server would.

mod scope;

use std::collections::{BTreeMap, btree_map::Entry};

use agent_core::api::InvalidObject;
use agent_kube::objects;
use decree_server::wire::{Violation, decode};
use manifest::{Document, Location};
use serde_json::Value;
use server_core::{Pod, ReplicaSet};
use thiserror::Error;

pub(crate) use self::scope::Scopes;
use crate::exit::{Exit, Failure};

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
    #[error("{place}: kind: {detail}")]
    Kind {
        place: Location,
        detail: &'static str,
    },
    #[error("{place}: {error}")]
    Invalid {
        place: Location,
        error: InvalidObject,
    },
    #[error("{place}: {object}: {field}: {description}")]
    Field {
        place: Location,
        object: String,
        field: String,
        description: String,
    },
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
            let (namespace, name) = match kind {
                Kind::ReplicaSet => snapshot.add_replica_set(&document)?,
                Kind::Pod => snapshot.add_pod(&document)?,
            };
            match seen.entry((kind, namespace, name)) {
                Entry::Vacant(entry) => {
                    entry.insert(document);
                }
                Entry::Occupied(first) if first.get().object == document.object => {
                    snapshot.remove_last(kind);
                }
                Entry::Occupied(first) => {
                    let (kind, namespace, name) = first.key();
                    return Err(SnapshotError::Twice {
                        object: format!("{} {namespace}/{name}", kind.noun()),
                        place: document.place,
                        first: first.get().place.clone(),
                    });
                }
            }
        }
        Ok(snapshot)
    }

    fn add_replica_set(&mut self, document: &Document) -> Result<(String, String), SnapshotError> {
        let Document { place, object } = document;
        let projected = objects::replica_set(object)
            .map_err(invalid(place))?
            .projected;
        let name = (projected.namespace.clone(), projected.name.clone());
        let set = decode::replica_set(&projected)
            .map_err(|violations| bad_field(Kind::ReplicaSet, place, &name, &violations))?;
        self.replica_sets.push(set);
        Ok(name)
    }

    fn add_pod(&mut self, document: &Document) -> Result<(String, String), SnapshotError> {
        let Document { place, object } = document;
        let projected = objects::pod(object).map_err(invalid(place))?;
        let name = (projected.namespace.clone(), projected.name.clone());
        let pod = decode::pod(&projected)
            .map_err(|violations| bad_field(Kind::Pod, place, &name, &violations))?;
        self.pods.push(pod);
        Ok(name)
    }

    fn remove_last(&mut self, kind: Kind) {
        match kind {
            Kind::ReplicaSet => drop(self.replica_sets.pop()),
            Kind::Pod => drop(self.pods.pop()),
        }
    }
}

// === impl Kind ===

impl Kind {
    /// The kind, or the word for another kind. Objects of API lists do not state their kind, so the fields tell.
    fn of(document: &Document) -> Result<Result<Self, String>, SnapshotError> {
        let Document { place, object } = document;
        let wrong = |detail| SnapshotError::Kind {
            place: place.clone(),
            detail,
        };
        match object.get("kind") {
            Some(Value::String(kind)) if kind == "ReplicaSet" => Ok(Ok(Self::ReplicaSet)),
            Some(Value::String(kind)) if kind == "Pod" => Ok(Ok(Self::Pod)),
            Some(Value::String(kind)) => Ok(Err(kind.clone())),
            None if object.pointer("/spec/template").is_some() => Ok(Ok(Self::ReplicaSet)),
            None if object.pointer("/spec/containers").is_some() => Ok(Ok(Self::Pod)),
            None => Err(wrong("is required")),
            Some(_) => Err(wrong("expected a string")),
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::ReplicaSet => "replica set",
            Self::Pod => "pod",
        }
    }
}

fn invalid(place: &Location) -> impl FnOnce(InvalidObject) -> SnapshotError {
    |error| SnapshotError::Invalid {
        place: place.clone(),
        error,
    }
}

fn bad_field(
    kind: Kind,
    place: &Location,
    (namespace, name): &(String, String),
    violations: &[Violation],
) -> SnapshotError {
    let first = violations.first();
    SnapshotError::Field {
        place: place.clone(),
        object: format!("{} {namespace}/{name}", kind.noun()),
        field: first
            .map(|violation| kubernetes_path(&violation.field))
            .unwrap_or_default(),
        description: first
            .map(|violation| violation.description.clone())
            .unwrap_or_default(),
    }
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
            SnapshotError::Kind { .. }
            | SnapshotError::Invalid { .. }
            | SnapshotError::Field { .. } => "use the output of: kubectl get rs,pods -o json",
            SnapshotError::Twice { .. } => {
                "the input must be one state of the cluster, with each object once"
            }
        };
        Self::new(Exit::Usage, error.to_string()).hint(hint)
    }
}
