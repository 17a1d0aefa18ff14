//! Changes of objects, in JSON: owner references and statuses.

use agent_core::api::WriteStatus;
use decree::v1;
use prost_types::Timestamp;
use serde_json::{Map, Value, json};

/// The numbers of a status. A merge leaves unnamed fields alone, so zeros must be named.
const STATUS_NUMBERS: [&str; 5] = [
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
];
/// The optional fields of a status. A write without one removes it.
const STATUS_OPTIONAL: [&str; 2] = ["terminatingReplicas", "conditions"];

/// Returns the strategic merge patch that makes a ReplicaSet the controller of a pod (spec 5.3).
#[must_use]
pub fn adoption(pod: &v1::ObjectRef, controller: &v1::OwnerReference) -> Value {
    json!({"metadata": {"uid": pod.uid, "ownerReferences": owner_references(controller)}})
}

/// Returns the strategic merge patch that removes a ReplicaSet from the owners of a pod (spec 5.3).
#[must_use]
pub fn release(pod: &v1::ObjectRef, owner_uid: &str) -> Value {
    json!({"metadata": {"uid": pod.uid, "ownerReferences": [{"$patch": "delete", "uid": owner_uid}]}})
}

/// The only owner of a created pod, and the owner that an adoption adds.
pub(crate) fn owner_references(controller: &v1::OwnerReference) -> Value {
    let v1::OwnerReference {
        api_version,
        kind,
        name,
        uid,
        block_owner_deletion,
    } = controller;
    json!([{
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": block_owner_deletion,
    }])
}

/// The merge patch that writes the whole status to the ReplicaSet with this UID and version only. The subresource also writes labels and
/// annotations, so a PUT from the agent's projection would remove them.
pub(crate) fn status_patch(write: &WriteStatus) -> Value {
    let WriteStatus {
        replica_set,
        resource_version,
        status,
        selector: _,
    } = write;
    let mut fields = Map::new();
    fields.extend(STATUS_NUMBERS.map(|name| (name.to_owned(), 0.into())));
    fields.extend(STATUS_OPTIONAL.map(|name| (name.to_owned(), Value::Null)));
    fields.extend(status_fields(status));
    json!({
        "metadata": {"uid": replica_set.uid, "resourceVersion": resource_version},
        "status": fields,
    })
}

/// Returns the ReplicaSet that replaces the status of the one with this name, UID and version.
#[must_use]
pub fn status_update(write: &WriteStatus) -> Value {
    let WriteStatus {
        replica_set,
        resource_version,
        status,
        selector: _,
    } = write;
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "namespace": replica_set.namespace,
            "name": replica_set.name,
            "uid": replica_set.uid,
            "resourceVersion": resource_version,
        },
        "status": status_to_json(status),
    })
}

/// Writes a status as Kubernetes does: `replicas` always, the other numbers only if they are not 0, and `terminatingReplicas` if it is
/// known (spec 1.2).
#[must_use]
pub fn status_to_json(status: &v1::ReplicaSetStatus) -> Value {
    Value::Object(status_fields(status))
}

fn status_fields(status: &v1::ReplicaSetStatus) -> Map<String, Value> {
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
    fields
}

/// Kubernetes writes an absent time as `null`, and leaves empty texts out.
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

/// A time in RFC 3339 to the second; a time outside the years of that format is absent.
fn time_to_text(time: &Timestamp) -> Option<String> {
    jiff::Timestamp::from_second(time.seconds)
        .ok()
        .map(|time| time.to_string())
}
