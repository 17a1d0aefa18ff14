//! A view of a cluster from objects of files, projected and converted exactly as an agent and a server would.

mod scope;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::Display,
    path::PathBuf,
};

use agent_kube::objects;
use decree_server::wire::{Violation, decode};
use manifest::{Document, Location};
use serde_json::Value;
use server_core::{Pod, ReplicaSet};

pub(crate) use self::scope::Scopes;
use crate::{
    args::Named,
    exit::{Exit, Failure},
    input::{self, KUBECTL},
    streams::Io,
    table::one_line,
};

/// The ReplicaSets and pods of the input, and the ignored kinds.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) replica_sets: Vec<ReplicaSet>,
    pub(crate) pods: Vec<Pod>,
    /// The number of ignored objects by kind.
    pub(crate) ignored: BTreeMap<String, usize>,
}

/// The kind of an object, as messages name it, with its namespace and name.
type Key = (&'static str, Named);

// === impl Snapshot ===

impl Snapshot {
    /// Reads the view from files; `-` is standard input. Names the ignored kinds on stderr.
    pub(crate) fn read(files: &[PathBuf], io: &mut Io<'_>) -> Result<Self, Failure> {
        let snapshot = Self::build(input::read(files, io.stdin)?)?;
        for (kind, count) in &snapshot.ignored {
            let kind = one_line(kind);
            writeln!(io.stderr, "notice: {count} of kind {kind} ignored")?;
        }
        Ok(snapshot)
    }

    /// Builds the view. Identical duplicates count once.
    pub(crate) fn build(documents: Vec<Document>) -> Result<Self, Failure> {
        let mut snapshot = Self::default();
        let mut seen = BTreeMap::new();
        for document in documents {
            let Document { place, object } = &document;
            match kind(&document)? {
                "ReplicaSet" => {
                    let set = objects::replica_set(object).map_err(|it| invalid(place, it))?;
                    let set = set.projected;
                    let key = ("replica set", Named::new(&set.namespace, &set.name));
                    let set = decode::replica_set(&set);
                    let set = set.map_err(|it| bad_field(place, &key, &it))?;
                    if is_new(&mut seen, key, document)? {
                        snapshot.replica_sets.push(set);
                    }
                }
                "Pod" => {
                    let pod = objects::pod(object).map_err(|it| invalid(place, it))?;
                    let key = ("pod", Named::new(&pod.namespace, &pod.name));
                    let pod = decode::pod(&pod);
                    let pod = pod.map_err(|it| bad_field(place, &key, &it))?;
                    if is_new(&mut seen, key, document)? {
                        snapshot.pods.push(pod);
                    }
                }
                other => *snapshot.ignored.entry(other.to_owned()).or_insert(0) += 1,
            }
        }
        Ok(snapshot)
    }
}

/// Adds an object to those that were seen; `false` for an identical duplicate.
fn is_new(
    seen: &mut BTreeMap<Key, Document>,
    key: Key,
    document: Document,
) -> Result<bool, Failure> {
    match seen.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(document);
            Ok(true)
        }
        Entry::Occupied(first) if first.get().object == document.object => Ok(false),
        Entry::Occupied(first) => {
            let ((noun, name), place, first) = (first.key(), document.place, &first.get().place);
            let path = name.path();
            let cause = format!(
                "{place}: {noun} {path} is in the input twice, and differs from the one at {first}"
            );
            let hint = "the input must be one state of the cluster, with each object once";
            Err(Failure::new(Exit::Usage, cause).hint(hint))
        }
    }
}

/// The kind of an object. Objects of API lists do not state their kind, so the fields tell.
fn kind(Document { place, object }: &Document) -> Result<&str, Failure> {
    match object.get("kind") {
        Some(Value::String(kind)) => Ok(kind),
        None if object.pointer("/spec/template").is_some() => Ok("ReplicaSet"),
        None if object.pointer("/spec/containers").is_some() => Ok("Pod"),
        None => Err(invalid(place, "kind: is required")),
        Some(_) => Err(invalid(place, "kind: expected a string")),
    }
}

fn invalid(place: &Location, detail: impl Display) -> Failure {
    Failure::new(Exit::Usage, format!("{place}: {detail}")).hint(KUBECTL)
}

fn bad_field(place: &Location, (noun, name): &Key, violations: &[Violation]) -> Failure {
    let first = violations.first();
    let field = first.map(|violation| kubernetes_path(&violation.field));
    let description = first.map_or("", |violation| &violation.description);
    let (path, field) = (name.path(), field.unwrap_or_default());
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
