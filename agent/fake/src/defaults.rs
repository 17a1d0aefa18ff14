//! The fields that the API server fills in before it validates: defaults, and a fresh status.

use serde_json::{Map, Value, json};

use crate::{
    kind::Kind,
    object::{fields, has_ended, metadata},
};

/// Fills in the absent fields of a new object of this kind.
pub(crate) fn apply(kind: Kind, object: &mut Value) {
    match kind {
        Kind::Pod => pod_spec(fields(object, "spec")),
        Kind::ReplicaSet => replica_set(object),
        Kind::Namespace | Kind::ResourceQuota | Kind::Node => {}
    }
}

/// The first status of a new object, in place of any status in the request.
pub(crate) fn first_status(kind: Kind) -> Value {
    match kind {
        Kind::Pod => json!({"phase": "Pending"}),
        Kind::ReplicaSet => json!({"replicas": 0}),
        Kind::Namespace => json!({"phase": "Active"}),
        Kind::ResourceQuota | Kind::Node => json!({}),
    }
}

/// Encodes a ReplicaSet's status as the API server does: `replicas` always, other numbers only if not zero (spec 1.2).
pub(crate) fn encode_replica_set_status(status: &Value) -> Value {
    let mut encoded = status.as_object().cloned().unwrap_or_else(Map::new);
    encoded.retain(|field, value| match (field.as_str(), &*value) {
        (_, Value::Null) => false,
        ("conditions", Value::Array(conditions)) => !conditions.is_empty(),
        ("replicas" | "terminatingReplicas", _) => true,
        (_, value) => *value != json!(0),
    });
    fill(&mut encoded, "replicas", || json!(0));
    Value::Object(encoded)
}

fn replica_set(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let spec = fields(object, "spec");
    fill(spec, "replicas", || json!(1));
    if let Some(template) = spec.get_mut("template").filter(|it| it.is_object()) {
        pod_spec(fields(template, "spec"));
    }
    if labels.is_object() {
        fill(metadata(object), "labels", || labels);
    }
}

fn pod_spec(spec: &mut Map<String, Value>) {
    fill(spec, "restartPolicy", || json!("Always"));
    fill(spec, "terminationGracePeriodSeconds", || json!(30));
}

fn fill(fields: &mut Map<String, Value>, field: &str, value: impl FnOnce() -> Value) {
    let known = fields.get(field);
    if known.is_none_or(Value::is_null) {
        fields.insert(field.to_owned(), value());
    }
}

/// The grace period of a pod's deletion, in seconds; zero for a pod that does not run (spec 14.2).
pub(crate) fn grace_seconds(pod: &Value) -> u32 {
    if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) || has_ended(pod) {
        return 0;
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_u64();
    own.and_then(|own| u32::try_from(own).ok()).unwrap_or(30)
}
