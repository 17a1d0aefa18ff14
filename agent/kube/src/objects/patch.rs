//! Changes of objects, in JSON: owner references and statuses.

use agent_core::api::WriteStatus;
use decree_api::v1;
use prost_types::Timestamp;
use serde_json::{Value, json};

use super::{
    metadata::OwnerReference,
    pod::{ADVISED_COST, DELETION_COST},
};

/// Returns the strategic merge patch that makes a ReplicaSet the controller of a pod (spec 5.3).
pub fn adoption(pod: &v1::ObjectRef, controller: &v1::OwnerReference) -> Value {
    json!({"metadata": {"uid": pod.uid, "ownerReferences": owner_references(controller)}})
}

/// Returns the strategic merge patch that removes a ReplicaSet from the owners of a pod (spec 5.3).
pub fn release(pod: &v1::ObjectRef, owner_uid: &str) -> Value {
    json!({"metadata": {"uid": pod.uid, "ownerReferences": [{"$patch": "delete", "uid": owner_uid}]}})
}

/// Returns the strategic merge patch that writes the deletion cost of a pod, marked as ours, or takes both away: of this version only, so that
/// nobody else's cost is lost.
pub fn advice(pod: &v1::ObjectRef, resource_version: &str, cost: i32) -> Value {
    let cost = (cost != 0).then(|| cost.to_string());
    json!({"metadata": {
        "uid": pod.uid, "resourceVersion": resource_version,
        "annotations": {DELETION_COST: cost, ADVISED_COST: cost},
    }})
}

/// The only owner of a created pod, and the owner that an adoption adds.
pub(super) fn owner_references(controller: &v1::OwnerReference) -> Value {
    json!([OwnerReference::from(controller)])
}

/// The merge patch that writes the whole status to the ReplicaSet with this UID and version only. The subresource also writes labels and
/// annotations, so a PUT from the agent's projection would remove them.
pub(crate) fn status_patch(write: &WriteStatus) -> Value {
    json!({
        "metadata": {"uid": write.replica_set.uid, "resourceVersion": write.resource_version},
        "status": status_fields(&write.status),
    })
}

/// Returns that patch as a ReplicaSet, whose status replaces that of the one with its name.
pub fn status_update(write: &WriteStatus) -> Value {
    let mut update = status_patch(write);
    update["kind"] = "ReplicaSet".into();
    update["metadata"]["namespace"] = write.replica_set.namespace.as_str().into();
    update["metadata"]["name"] = write.replica_set.name.as_str().into();
    update
}

/// Writes a status as Kubernetes does: `replicas` always, the other numbers only if they are not 0, and `terminatingReplicas` if it is
/// known (spec 1.2).
pub fn status_to_json(status: &v1::ReplicaSetStatus) -> Value {
    let keeps_zero = |name: &str| ["replicas", "terminatingReplicas"].contains(&name);
    let mut status = status_fields(status);
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|name, value| !value.is_null() && (*value != 0 || keeps_zero(name)));
    }
    status
}

/// All fields of a status. A merge leaves unnamed fields alone, so zeros are named; `null` removes an optional field.
fn status_fields(status: &v1::ReplicaSetStatus) -> Value {
    let v1::ReplicaSetStatus {
        replicas,
        fully_labeled_replicas,
        ready_replicas,
        available_replicas,
        terminating_replicas,
        observed_generation,
        conditions,
    } = status;
    let conditions: Vec<_> = conditions.iter().map(condition_to_json).collect();
    let conditions = (!conditions.is_empty()).then_some(conditions);
    json!({
        "replicas": replicas,
        "fullyLabeledReplicas": fully_labeled_replicas,
        "readyReplicas": ready_replicas,
        "availableReplicas": available_replicas,
        "terminatingReplicas": terminating_replicas,
        "observedGeneration": observed_generation,
        "conditions": conditions,
    })
}

/// Kubernetes writes an absent time as `null`, and leaves empty texts out.
fn condition_to_json(condition: &v1::ReplicaSetCondition) -> Value {
    let v1::ReplicaSetCondition { r#type, status, .. } = condition;
    let time = condition.last_transition_time.as_ref();
    let time = time.and_then(time_to_text);
    let mut fields = json!({"type": r#type, "status": status, "lastTransitionTime": time});
    for (name, text) in [
        ("reason", &condition.reason),
        ("message", &condition.message),
    ] {
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
