//! Projection: from an object as the Kubernetes API writes it to the few hundred bytes that a decision reads (spec 1.1, 1.2).

use std::{collections::HashSet, sync::Arc};

use decree::v1;
use prost_types::Timestamp;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{
    api::{Object, text},
    field::{Field, FieldError},
};

/// The one annotation that a decision reads.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The type of the one condition of a pod that a decision reads.
pub const READY: &str = "Ready";
/// 0001-01-01T00:00:00Z in seconds since the epoch: Go's zero time.
const ZERO_TIME_SECONDS: i64 = -62_135_596_800;

/// An object that cannot be projected, and why: one field holds what the Kubernetes API never writes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{object}: {field}: {detail}")]
pub struct ProjectError {
    /// The object for people, such as `pod default/web-1`.
    pub object: String,
    /// The path of the field, such as `metadata.labels["app"]`.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}

/// Projects a pod.
///
/// # Errors
/// Names the first field that has another type than Kubernetes gives it, or that is required and absent.
pub fn project_pod(object: &Value) -> Result<v1::Pod, ProjectError> {
    pod(&Field::root(object)).map_err(|error| ProjectError::of("pod", object, error))
}

/// Projects a ReplicaSet.
///
/// # Errors
/// Names the first field that has another type than Kubernetes gives it, or that is required and absent.
pub fn project_replica_set(object: &Value) -> Result<v1::ReplicaSet, ProjectError> {
    replica_set(&Field::root(object))
        .map_err(|error| ProjectError::of("replica set", object, error))
}

/// Writes a status as Kubernetes writes it: `replicas` always, the other numbers only where they are not 0, and
/// `terminatingReplicas` wherever it is known (spec 1.2).
#[must_use]
pub fn status_to_kubernetes_json(status: &v1::ReplicaSetStatus) -> Value {
    let v1::ReplicaSetStatus {
        replicas,
        fully_labeled_replicas,
        ready_replicas,
        available_replicas,
        terminating_replicas,
        observed_generation,
        conditions,
    } = status;
    let mut fields = Map::new();
    fields.insert("replicas".into(), (*replicas).into());
    let mut number = |name: &str, value: Option<i64>| {
        if let Some(value) = value {
            fields.insert(name.into(), value.into());
        }
    };
    let unless_zero = |value: i32| (value != 0).then_some(i64::from(value));
    number("fullyLabeledReplicas", unless_zero(*fully_labeled_replicas));
    number("readyReplicas", unless_zero(*ready_replicas));
    number("availableReplicas", unless_zero(*available_replicas));
    number("terminatingReplicas", terminating_replicas.map(i64::from));
    number(
        "observedGeneration",
        (*observed_generation != 0).then_some(*observed_generation),
    );
    if !conditions.is_empty() {
        let conditions = conditions.iter().map(condition_to_json).collect();
        fields.insert("conditions".into(), Value::Array(conditions));
    }
    Value::Object(fields)
}

// === impl Object ===

impl Object {
    /// Returns the pod that this object is.
    ///
    /// # Errors
    /// As [`project_pod`].
    pub fn into_pod(self) -> Result<v1::Pod, ProjectError> {
        let pod = match self {
            Self::Written(object) => return project_pod(&object),
            Self::Pod(pod) => *pod,
        };
        let required = [
            ("metadata.namespace", &pod.namespace),
            ("metadata.name", &pod.name),
            ("metadata.uid", &pod.uid),
        ];
        let absent = required.into_iter().find(|(_, text)| text.is_empty());
        match absent {
            None => Ok(pod),
            Some((field, _)) => Err(ProjectError::in_pod(&pod, field, "is required")),
        }
    }

    /// Returns the ReplicaSet that this object is, and the object as it was written.
    ///
    /// # Errors
    /// As [`project_replica_set`].
    pub(crate) fn into_replica_set(self) -> Result<(v1::ReplicaSet, Arc<Value>), ProjectError> {
        match self {
            Self::Written(object) => project_replica_set(&object).map(|set| (set, object)),
            Self::Pod(pod) => Err(ProjectError::in_pod(&pod, "kind", "expected a replica set")),
        }
    }
}

// === impl ProjectError ===

impl ProjectError {
    fn of(kind: &str, object: &Value, error: FieldError) -> Self {
        let name = ["/metadata/namespace", "/metadata/name"].map(|it| text(object, it));
        Self::new(kind, name.into(), error.path, error.detail)
    }

    fn in_pod(pod: &v1::Pod, field: &str, detail: &str) -> Self {
        let name = (pod.namespace.as_str(), pod.name.as_str());
        Self::new("pod", name, field.to_owned(), detail.to_owned())
    }

    fn new(kind: &str, (namespace, name): (&str, &str), field: String, detail: String) -> Self {
        let known = |text| if str::is_empty(text) { "?" } else { text };
        Self {
            object: format!("{kind} {}/{}", known(namespace), known(name)),
            field,
            detail,
        }
    }
}

fn pod(object: &Field<'_, '_>) -> Result<v1::Pod, FieldError> {
    let metadata = object.at("metadata")?;
    let spec = object.at("spec")?;
    let status = object.at("status")?;
    Ok(v1::Pod {
        namespace: metadata.at("namespace")?.required_text()?.to_owned(),
        name: metadata.at("name")?.required_text()?.to_owned(),
        uid: metadata.at("uid")?.required_text()?.to_owned(),
        resource_version: metadata.at("resourceVersion")?.text()?.to_owned(),
        labels: metadata.at("labels")?.texts()?,
        controller: metadata.at("ownerReferences")?.controller()?,
        created: metadata.at("creationTimestamp")?.time()?,
        deleted: metadata.at("deletionTimestamp")?.time()?,
        node_name: spec.at("nodeName")?.text()?.to_owned(),
        phase: pod_phase(status.at("phase")?.text()?).into(),
        ready: ready(&status.at("conditions")?)?,
        deletion_cost: metadata
            .at("annotations")?
            .entry(DELETION_COST)?
            .map(str::to_owned),
        max_regular_restarts: restarts(&status.at("containerStatuses")?, |_| true)?,
        max_sidecar_restarts: sidecar_restarts(&spec, &status)?,
    })
}

/// Returns the contract's word for a phase; a phase that no Kubernetes knows is unspecified.
#[must_use]
pub fn pod_phase(text: &str) -> v1::PodPhase {
    match text {
        "Pending" => v1::PodPhase::Pending,
        "Unknown" => v1::PodPhase::Unknown,
        "Running" => v1::PodPhase::Running,
        "Succeeded" => v1::PodPhase::Succeeded,
        "Failed" => v1::PodPhase::Failed,
        _ => v1::PodPhase::Unspecified,
    }
}

fn ready(conditions: &Field<'_, '_>) -> Result<Option<v1::ReadyCondition>, FieldError> {
    let mut entries = Vec::new();
    for condition in conditions.items()? {
        if condition.at("type")?.text()? == READY {
            let is_true = condition.at("status")?.text()? == "True";
            entries.push((is_true, condition.at("lastTransitionTime")?.time()?));
        }
    }
    Ok(ready_condition(entries))
}

/// Makes one of the conditions of type [`READY`]: whether each is true, and since when. "Is ready" looks at the first, "ready since"
/// at the first that is true: they differ only where the condition is there twice (spec 1.1).
pub fn ready_condition(
    entries: impl IntoIterator<Item = (bool, Option<Timestamp>)>,
) -> Option<v1::ReadyCondition> {
    let mut entries = entries.into_iter().peekable();
    let (ready, _) = *entries.peek()?;
    let first_true = entries.find(|(is_true, _)| *is_true);
    let since = first_true.and_then(|(_, since)| since);
    Some(v1::ReadyCondition { ready, since })
}

/// Returns a time as the contract has it: Go's zero time counts as absent (spec 1.1).
#[must_use]
pub fn present_time(seconds: i64) -> Option<Timestamp> {
    (seconds != ZERO_TIME_SECONDS).then_some(Timestamp { seconds, nanos: 0 })
}

/// Returns the highest restart count among the chosen containers, at least 0.
fn restarts(statuses: &Field<'_, '_>, chosen: impl Fn(&str) -> bool) -> Result<i32, FieldError> {
    let mut highest = 0;
    for status in statuses.items()? {
        if chosen(status.at("name")?.text()?) {
            highest = highest.max(status.at("restartCount")?.int32()?);
        }
    }
    Ok(highest)
}

fn sidecar_restarts(spec: &Field<'_, '_>, status: &Field<'_, '_>) -> Result<i32, FieldError> {
    let statuses = status.at("initContainerStatuses")?;
    if !statuses.is_present() {
        return Ok(0);
    }
    let mut sidecars = HashSet::new();
    for container in spec.at("initContainers")?.items()? {
        if container.at("restartPolicy")?.text()? == "Always" {
            sidecars.insert(container.at("name")?.text()?);
        }
    }
    restarts(&statuses, |name| sidecars.contains(name))
}

fn replica_set(object: &Field<'_, '_>) -> Result<v1::ReplicaSet, FieldError> {
    let metadata = object.at("metadata")?;
    let spec = object.at("spec")?;
    Ok(v1::ReplicaSet {
        namespace: metadata.at("namespace")?.required_text()?.to_owned(),
        name: metadata.at("name")?.required_text()?.to_owned(),
        uid: metadata.at("uid")?.required_text()?.to_owned(),
        resource_version: metadata.at("resourceVersion")?.text()?.to_owned(),
        generation: metadata.at("generation")?.int64()?,
        deleted: metadata.at("deletionTimestamp")?.time()?,
        controller: metadata.at("ownerReferences")?.controller()?,
        replicas: spec.at("replicas")?.optional_int32()?,
        min_ready_seconds: spec.at("minReadySeconds")?.int32()?,
        selector: selector(&spec.at("selector")?)?,
        template_labels: spec.at("template")?.at("metadata")?.at("labels")?.texts()?,
        status: Some(status(&object.at("status")?)?),
    })
}

/// Reads a selector as it is written: whether it is valid is for the server to say. Absent and empty differ (spec 2).
fn selector(selector: &Field<'_, '_>) -> Result<Option<v1::LabelSelector>, FieldError> {
    if !selector.is_present() {
        return Ok(None);
    }
    let expressions = selector.at("matchExpressions")?;
    let match_expressions = expressions
        .items()?
        .map(|expression| requirement(&expression));
    Ok(Some(v1::LabelSelector {
        match_labels: selector.at("matchLabels")?.texts()?,
        match_expressions: match_expressions.collect::<Result<_, _>>()?,
    }))
}

fn requirement(field: &Field<'_, '_>) -> Result<v1::LabelSelectorRequirement, FieldError> {
    let values = field.at("values")?;
    let values = values.items()?.map(|value| value.text().map(str::to_owned));
    Ok(v1::LabelSelectorRequirement {
        key: field.at("key")?.text()?.to_owned(),
        operator: field.at("operator")?.text()?.to_owned(),
        values: values.collect::<Result<_, _>>()?,
    })
}

fn status(field: &Field<'_, '_>) -> Result<v1::ReplicaSetStatus, FieldError> {
    let conditions = field.at("conditions")?;
    let conditions = conditions.items()?.map(|entry| condition(&entry));
    Ok(v1::ReplicaSetStatus {
        replicas: field.at("replicas")?.int32()?,
        fully_labeled_replicas: field.at("fullyLabeledReplicas")?.int32()?,
        ready_replicas: field.at("readyReplicas")?.int32()?,
        available_replicas: field.at("availableReplicas")?.int32()?,
        terminating_replicas: field.at("terminatingReplicas")?.optional_int32()?,
        observed_generation: field.at("observedGeneration")?.int64()?,
        conditions: conditions.collect::<Result<_, _>>()?,
    })
}

fn condition(field: &Field<'_, '_>) -> Result<v1::ReplicaSetCondition, FieldError> {
    Ok(v1::ReplicaSetCondition {
        r#type: field.at("type")?.text()?.to_owned(),
        status: field.at("status")?.text()?.to_owned(),
        last_transition_time: field.at("lastTransitionTime")?.time()?,
        reason: field.at("reason")?.text()?.to_owned(),
        message: field.at("message")?.text()?.to_owned(),
    })
}

/// Writes a condition; Kubernetes writes an absent time as `null`, and leaves empty texts out.
fn condition_to_json(condition: &v1::ReplicaSetCondition) -> Value {
    let v1::ReplicaSetCondition {
        r#type,
        status,
        last_transition_time,
        reason,
        message,
    } = condition;
    let time = last_transition_time.as_ref().and_then(time_to_text);
    let mut fields = json!({"type": r#type, "status": status, "lastTransitionTime": time});
    for (name, text) in [("reason", reason), ("message", message)] {
        if !text.is_empty() {
            fields[name] = text.as_str().into();
        }
    }
    fields
}

/// Writes a time in RFC 3339 to the second; one outside the years that can be written is absent.
fn time_to_text(time: &Timestamp) -> Option<String> {
    jiff::Timestamp::from_second(time.seconds)
        .ok()
        .map(|time| time.to_string())
}

#[cfg(test)]
mod tests;
