//! The ReplicaSets as the cluster writes them, and the pods made from their templates.
//!
//! **Invariant:** a template is copied, never read: a field that this version does not know reaches the new pod.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use decree::v1;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::api::parse_version;

/// How many generations of one ReplicaSet are kept. A batch rests on the newest generation that the server had seen; one
/// that is older than this by the time it arrives is refused and decided afresh.
const GENERATIONS_MAX: usize = 4;

/// The group and version of Kubernetes' own ReplicaSets.
pub const APPS_V1: &str = "apps/v1";

/// What a pod in the making copies from the metadata of its template (spec 6.3).
const COPIED_METADATA: [&str; 3] = ["labels", "annotations", "finalizers"];

/// The ReplicaSets by uid. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Debug)]
pub struct Templates {
    api_version: String,
    by_uid: HashMap<String, Entry>,
}

/// A ReplicaSet in its newest state.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The object as the cluster wrote it.
    pub object: Arc<Value>,
    /// Its version; empty where the cluster gives none.
    pub version: String,
    /// Whether it was asked to go.
    pub deleting: bool,
}

/// No pod can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// The template has no labels, so that the pod would be an orphan to its own ReplicaSet.
    #[error("unable to create pods, no labels")]
    NoLabels,
    /// The ReplicaSet has no template.
    #[error("unable to create pods, no template")]
    NoTemplate,
}

#[derive(Debug)]
struct Entry {
    newest: Known,
    /// The generations and the objects that show their template, oldest first.
    generations: VecDeque<(i64, Arc<Value>)>,
}

// === impl Templates ===

impl Templates {
    /// Returns none yet, of ReplicaSets of this group and version.
    #[must_use]
    pub fn new(api_version: impl Into<String>) -> Self {
        Self {
            api_version: api_version.into(),
            by_uid: HashMap::new(),
        }
    }

    /// Returns the group and version of the ReplicaSets, which the pods' references to their owners name.
    #[must_use]
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Takes a ReplicaSet's state; an older one changes nothing.
    pub fn apply(&mut self, projected: &v1::ReplicaSet, object: Arc<Value>) {
        let version = projected.resource_version.clone();
        let known = Known {
            namespace: projected.namespace.clone(),
            name: projected.name.clone(),
            object,
            version,
            deleting: projected.deleted.is_some(),
        };
        match self.by_uid.get_mut(&projected.uid) {
            Some(entry) => entry.apply(projected.generation, known),
            None => {
                let generations = [(projected.generation, Arc::clone(&known.object))].into();
                self.by_uid.insert(
                    projected.uid.clone(),
                    Entry {
                        newest: known,
                        generations,
                    },
                );
            }
        }
    }

    /// Forgets a ReplicaSet.
    pub fn delete(&mut self, uid: &str) {
        self.by_uid.remove(uid);
    }

    /// Forgets all ReplicaSets but those for which `keep` holds.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.by_uid.retain(|uid, _| keep(uid));
    }

    /// Returns a ReplicaSet in its newest state.
    #[must_use]
    pub fn newest(&self, uid: &str) -> Option<&Known> {
        self.by_uid.get(uid).map(|entry| &entry.newest)
    }

    /// Returns the ReplicaSet as it was at a generation.
    #[must_use]
    pub fn at_generation(&self, uid: &str, generation: i64) -> Option<&Arc<Value>> {
        let generations = &self.by_uid.get(uid)?.generations;
        generations
            .iter()
            .rev()
            .find(|(known, _)| *known == generation)
            .map(|(_, object)| object)
    }
}

impl Default for Templates {
    fn default() -> Self {
        Self::new(APPS_V1)
    }
}

// === impl Entry ===

impl Entry {
    fn apply(&mut self, generation: i64, known: Known) {
        let (old, new) = (
            parse_version(&self.newest.version),
            parse_version(&known.version),
        );
        if old.is_some() && new.is_some() && new < old {
            return;
        }
        if self.generations.iter().all(|(seen, _)| *seen != generation) {
            self.generations
                .push_back((generation, Arc::clone(&known.object)));
            if self.generations.len() > GENERATIONS_MAX {
                self.generations.pop_front();
            }
        }
        self.newest = known;
    }
}

/// Makes a pod from the template of a ReplicaSet (spec 6.3), with its name chosen and `generateName` beside it for looks.
///
/// # Errors
/// Says what the template lacks.
pub fn pod_from_template(
    replica_set: &Value,
    api_version: &str,
    owner: &v1::ObjectRef,
    name: &str,
    generate_name: &str,
) -> Result<Value, TemplateError> {
    let template = replica_set
        .pointer("/spec/template")
        .and_then(Value::as_object);
    let template = template.ok_or(TemplateError::NoTemplate)?;
    let mut metadata = Map::new();
    metadata.insert("name".into(), name.into());
    if !generate_name.is_empty() {
        metadata.insert("generateName".into(), generate_name.into());
    }
    metadata.insert("namespace".into(), owner.namespace.as_str().into());
    copy_metadata(template, &mut metadata)?;
    metadata.insert(
        "ownerReferences".into(),
        json!([controller_reference(api_version, owner)]),
    );
    let mut pod = Map::new();
    pod.insert("apiVersion".into(), "v1".into());
    pod.insert("kind".into(), "Pod".into());
    pod.insert("metadata".into(), Value::Object(metadata));
    for (field, value) in template {
        if field != "metadata" {
            pod.insert(field.clone(), value.clone());
        }
    }
    Ok(Value::Object(pod))
}

/// Returns the strategic merge patch that makes a ReplicaSet the controller of a pod (spec 5.3).
#[must_use]
pub fn adopt_patch(api_version: &str, owner: &v1::ObjectRef, pod_uid: &str) -> Value {
    let reference = controller_reference(api_version, owner);
    json!({"metadata": {"uid": pod_uid, "ownerReferences": [reference]}})
}

/// Returns the strategic merge patch that takes a ReplicaSet off the owners of a pod (spec 5.3).
#[must_use]
pub fn release_patch(owner: &v1::ObjectRef, pod_uid: &str) -> Value {
    json!({"metadata": {"uid": pod_uid, "ownerReferences": [{"$patch": "delete", "uid": owner.uid}]}})
}

fn copy_metadata(
    template: &Map<String, Value>,
    metadata: &mut Map<String, Value>,
) -> Result<(), TemplateError> {
    let source = template.get("metadata").and_then(Value::as_object);
    let source = source.ok_or(TemplateError::NoLabels)?;
    let labels = source.get("labels").and_then(Value::as_object);
    if labels.is_none_or(Map::is_empty) {
        return Err(TemplateError::NoLabels);
    }
    for field in COPIED_METADATA {
        if let Some(value) = source.get(field).filter(|value| !value.is_null()) {
            metadata.insert(field.into(), value.clone());
        }
    }
    Ok(())
}

fn controller_reference(api_version: &str, owner: &v1::ObjectRef) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": "ReplicaSet",
        "name": owner.name,
        "uid": owner.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

#[cfg(test)]
mod tests;
