//! The fields that the API server fills in before it validates: defaults, and a fresh status.

use serde_json::{Map, Value, json};

use crate::{
    kind::Kind,
    object::{fields, has_ended, metadata},
};

/// Fills in the absent fields of a new object of this kind.
pub(crate) fn apply(kind: Kind, object: &mut Value) {
    match kind {
        Kind::Pod => pod(fields(object, "spec")),
        Kind::ReplicaSet => replica_set(object),
        Kind::Namespace => namespace(object),
        Kind::ResourceQuota => fill(fields(object, "spec"), "hard", || json!({})),
        Kind::Node => fill(fields(object, "spec"), "taints", || json!([])),
    }
}

/// The first status of a new object, in place of any status in the request.
pub(crate) fn first_status(kind: Kind, object: &Value) -> Value {
    match kind {
        Kind::Pod => json!({"phase": "Pending", "qosClass": "BestEffort"}),
        Kind::ReplicaSet => json!({"replicas": 0}),
        Kind::Namespace => json!({"phase": "Active"}),
        Kind::ResourceQuota => json!({"hard": object["spec"]["hard"], "used": {}}),
        Kind::Node => json!({}),
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

fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    let labels = metadata(object)
        .entry("labels")
        .or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name);
    }
    fill(fields(object, "spec"), "finalizers", || {
        json!(["kubernetes"])
    });
}

/// A pod gets more defaults than a template.
fn pod(spec: &mut Map<String, Value>) {
    pod_spec(spec);
    fill(spec, "serviceAccountName", || json!("default"));
    fill(spec, "tolerations", tolerations);
    fill(spec, "priority", || json!(0));
    fill(spec, "enableServiceLinks", || json!(true));
    fill(spec, "preemptionPolicy", || json!("PreemptLowerPriority"));
}

fn pod_spec(spec: &mut Map<String, Value>) {
    for list in ["initContainers", "containers"] {
        if let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) {
            let containers = containers.iter_mut().filter_map(Value::as_object_mut);
            containers.for_each(container);
        }
    }
    fill(spec, "restartPolicy", || json!("Always"));
    fill(spec, "terminationGracePeriodSeconds", || json!(30));
    fill(spec, "dnsPolicy", || json!("ClusterFirst"));
    fill(spec, "securityContext", || json!({}));
    fill(spec, "schedulerName", || json!("default-scheduler"));
}

fn container(container: &mut Map<String, Value>) {
    fill(container, "resources", || json!({}));
    fill(container, "terminationMessagePath", || {
        json!("/dev/termination-log")
    });
    fill(container, "terminationMessagePolicy", || json!("File"));
    let image = container.get("image").and_then(Value::as_str);
    let image = image.unwrap_or_default();
    let last = image.rsplit('/').next();
    let tag = last.and_then(|last| last.split_once(':'));
    let floats = tag.is_none_or(|(_, tag)| tag == "latest") && !image.contains('@');
    let policy = if floats { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", || json!(policy));
}

/// Every pod tolerates the loss of its node for five minutes.
fn tolerations() -> Value {
    let toleration = |key| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    json!([
        toleration("node.kubernetes.io/not-ready"),
        toleration("node.kubernetes.io/unreachable"),
    ])
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
