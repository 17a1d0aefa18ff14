//! From messages to values as JSON would have given them, empty fields left out.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    LabelSelector, ObjectMeta, OwnerReference, PodTemplateSpec, ReplicaSet, ReplicaSetCondition,
    ReplicaSetSpec, ReplicaSetStatus, Status, Time, sealed,
};

/// Fields that are left out where they are empty.
#[derive(Default)]
struct Fields(Map<String, Value>);

pub(super) fn replica_set(set: ReplicaSet) -> Value {
    let ReplicaSet {
        metadata,
        spec,
        status,
    } = set;
    let ReplicaSetSpec {
        replicas,
        selector,
        template,
        min_ready_seconds,
    } = spec.unwrap_or_default();
    let mut fields = Fields::default();
    fields.put("replicas", replicas);
    fields.put("selector", selector.map(label_selector));
    fields.put("template", template.map(pod_template_spec));
    fields.number("minReadySeconds", min_ready_seconds.into());
    json!({
        "metadata": object_meta(metadata.unwrap_or_default()),
        "spec": fields.take(),
        "status": replica_set_status(status.unwrap_or_default()),
    })
}

pub(super) fn status(status: Status) -> Value {
    let Status {
        message,
        reason,
        code,
        details: _,
    } = status;
    json!({"kind": "Status", "message": message, "reason": reason, "code": code})
}

fn object_meta(metadata: ObjectMeta) -> Value {
    let ObjectMeta {
        name,
        generate_name: _,
        namespace,
        uid,
        resource_version,
        generation,
        deletion_timestamp,
        owner_references,
        // Those of a ReplicaSet are nobody's concern here, and can be long.
        labels: _,
        annotations: _,
        finalizers: _,
    } = metadata;
    let mut fields = Fields::default();
    fields.text("name", name);
    fields.text("namespace", namespace);
    fields.text("uid", uid);
    fields.text("resourceVersion", resource_version);
    fields.number("generation", generation);
    fields.put("deletionTimestamp", time(deletion_timestamp));
    fields.list("ownerReferences", owner_references, owner_reference);
    fields.take()
}

fn owner_reference(reference: OwnerReference) -> Value {
    let OwnerReference {
        kind,
        name,
        uid,
        api_version,
        controller,
        block_owner_deletion,
    } = reference;
    let mut fields = Fields::default();
    fields.text("apiVersion", api_version);
    fields.text("kind", kind);
    fields.text("name", name);
    fields.text("uid", uid);
    fields.put("controller", controller);
    fields.put("blockOwnerDeletion", block_owner_deletion);
    fields.take()
}

fn label_selector(selector: LabelSelector) -> Value {
    let mut fields = Fields::default();
    fields.texts("matchLabels", selector.match_labels);
    fields.list(
        "matchExpressions",
        selector.match_expressions,
        |it| json!({"key": it.key, "operator": it.operator, "values": it.values}),
    );
    fields.take()
}

fn pod_template_spec(template: PodTemplateSpec) -> Value {
    let PodTemplateSpec { metadata, spec } = template;
    let ObjectMeta {
        labels,
        annotations,
        finalizers,
        ..
    } = metadata.unwrap_or_default();
    let mut fields = Fields::default();
    fields.texts("labels", labels);
    fields.texts("annotations", annotations);
    fields.list("finalizers", finalizers, Value::String);
    json!({"metadata": fields.take(), "spec": sealed(&spec.unwrap_or_default())})
}

fn replica_set_status(status: ReplicaSetStatus) -> Value {
    let ReplicaSetStatus {
        replicas,
        fully_labeled_replicas,
        observed_generation,
        ready_replicas,
        available_replicas,
        conditions,
        terminating_replicas,
    } = status;
    let mut fields = Fields::default();
    fields.put("replicas", Some(replicas));
    fields.number("fullyLabeledReplicas", fully_labeled_replicas.into());
    fields.number("readyReplicas", ready_replicas.into());
    fields.number("availableReplicas", available_replicas.into());
    fields.put("terminatingReplicas", terminating_replicas);
    fields.number("observedGeneration", observed_generation);
    fields.list("conditions", conditions, replica_set_condition);
    fields.take()
}

fn replica_set_condition(condition: ReplicaSetCondition) -> Value {
    let ReplicaSetCondition {
        r#type,
        status,
        last_transition_time,
        reason,
        message,
    } = condition;
    let mut fields = Fields::default();
    fields.text("type", r#type);
    fields.text("status", status);
    fields.put("lastTransitionTime", time(last_transition_time));
    fields.text("reason", reason);
    fields.text("message", message);
    fields.take()
}

/// Writes a time to the second; an empty one is absent, as it is `null` in JSON.
fn time(time: Option<Time>) -> Option<String> {
    let time = jiff::Timestamp::from_second(time?.seconds?).ok()?;
    Some(time.to_string())
}

// === impl Fields ===

impl Fields {
    fn put<T: Into<Value>>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
    }

    fn text(&mut self, name: &str, text: String) {
        self.put(name, Some(text).filter(|text| !text.is_empty()));
    }

    fn number(&mut self, name: &str, number: i64) {
        self.put(name, Some(number).filter(|number| *number != 0));
    }

    fn texts(&mut self, name: &str, texts: BTreeMap<String, String>) {
        let texts: Map<_, _> = texts
            .into_iter()
            .map(|(key, text)| (key, text.into()))
            .collect();
        self.put(name, Some(texts).filter(|texts| !texts.is_empty()));
    }

    fn list<T>(&mut self, name: &str, items: Vec<T>, to_value: impl Fn(T) -> Value) {
        let items: Vec<_> = items.into_iter().map(to_value).collect();
        self.put(name, Some(items).filter(|items| !items.is_empty()));
    }

    fn take(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.0))
    }
}
