//! The objects that the API server refuses as invalid (422), by the rules that a ReplicaSet controller can break, and the mistakes in
//! ReplicaSets that change what it does (spec 1.4, 14.2).

use serde_json::Value;

use crate::{
    error::ApiError,
    kind::Kind,
    names::{is_label, is_subdomain},
    object, selector,
};

const IMMUTABLE: &str = "field is immutable";

#[derive(Debug, Default)]
struct Faults(Vec<String>);

pub(crate) fn object(kind: Kind, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let mut faults = Faults::default();
    faults.metadata(object, old);
    match kind {
        Kind::Pod => faults.containers("spec", &object["spec"]),
        Kind::ReplicaSet => faults.replica_set(object, old),
        Kind::Namespace => faults.label(object::name(object)),
        Kind::ResourceQuota | Kind::Node => {}
    }
    faults.into_result(kind, object)
}

/// Checks the types of the fields that the rules read. YAML reads names such as `no` as other types.
pub(crate) fn shape(kind: Kind, object: &Value) -> Result<(), ApiError> {
    let metadata = &object["metadata"];
    let is_right = |parent: &Value, field: &str, is_type: fn(&Value) -> bool| {
        parent[field].is_null() || is_type(&parent[field])
    };
    let objects = ["metadata", "spec", "status"].map(|it| (object, it, Value::is_object as _));
    let maps = ["labels", "annotations"].map(|it| (metadata, it, Value::is_object as _));
    let lists = ["ownerReferences", "finalizers"].map(|it| (metadata, it, Value::is_array as _));
    let texts = ["name", "namespace"].map(|it| (metadata, it, Value::is_string as _));
    let mut fields = objects.into_iter().chain(maps).chain(lists).chain(texts);
    let Some((_, field, _)) = fields.find(|(parent, field, it)| !is_right(parent, field, *it))
    else {
        return Ok(());
    };
    let (name, version) = (kind.name(), kind.api_version());
    Err(ApiError::bad_request(format!(
        "{name} in version \"{version}\" cannot be handled as a {name}: json: cannot unmarshal field {field}"
    )))
}

/// See spec 1.4.
pub(crate) fn replica_set_status(object: &Value) -> Result<(), ApiError> {
    let mut faults = Faults::default();
    let count = |field: &str| object["status"][field].as_i64().unwrap_or(0);
    for field in [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "terminatingReplicas",
        "observedGeneration",
    ] {
        faults.not_negative(&format!("status.{field}"), &object["status"][field]);
    }
    for (field, bound, name) in [
        ("fullyLabeledReplicas", "replicas", "status.replicas"),
        ("readyReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "readyReplicas"),
    ] {
        if count(field) > count(bound) {
            let why = format!("cannot be greater than {name}");
            faults.invalid(&format!("status.{field}"), count(field), &why);
        }
    }
    faults.into_result(Kind::ReplicaSet, object)
}

impl Faults {
    fn into_result(self, kind: Kind, object: &Value) -> Result<(), ApiError> {
        let list = match self.0.as_slice() {
            [] => return Ok(()),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let name = object::name(object);
        let message = format!("{} \"{name}\" is invalid: {list}", kind.qualified());
        Err(ApiError::new(422, "Invalid", message))
    }

    fn required(&mut self, path: &str) {
        self.0.push(format!("{path}: Required value"));
    }

    fn invalid(&mut self, path: &str, value: impl Into<Value>, why: &str) {
        let value = value.into();
        self.0
            .push(format!("{path}: Invalid value: {value}: {why}"));
    }

    fn not_negative(&mut self, path: &str, value: &Value) {
        // Only the generation is a 64-bit number.
        let bits = if path.ends_with("Generation") { 64 } else { 32 };
        let whole = value.as_i64();
        if value.is_null() || whole.is_some_and(|it| it >= 0 && it >> (bits - 1) == 0) {
            return;
        }
        let number = format!("must be a whole number of {bits} bits, without quotes");
        let why = match whole {
            Some(..0) => "must be greater than or equal to 0",
            Some(_) | None => &number,
        };
        self.invalid(path, value.clone(), why);
    }

    fn metadata(&mut self, object: &Value, old: Option<&Value>) {
        let name = object::name(object);
        if !is_subdomain(name) {
            let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'";
            self.invalid("metadata.name", name, why);
        }
        let mut controllers = object::owners(object).filter(|owner| owner.controller);
        if let (Some(first), Some(second)) = (controllers.next(), controllers.next()) {
            let why = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                first.name, second.name
            );
            let owners = object["metadata"]["ownerReferences"].clone();
            self.invalid("metadata.ownerReferences", owners, &why);
        }
        let fixed = [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
        ];
        for field in fixed {
            let value = &object["metadata"][field];
            if old.is_some_and(|old| old["metadata"][field] != *value) {
                self.invalid(&format!("metadata.{field}"), value.clone(), IMMUTABLE);
            }
        }
    }

    fn label(&mut self, name: &str) {
        if is_subdomain(name) && !is_label(name) {
            let why = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must be no more than 63 characters";
            self.invalid("metadata.name", name, why);
        }
    }

    fn containers(&mut self, path: &str, spec: &Value) {
        if spec["containers"].as_array().is_none_or(Vec::is_empty) {
            self.required(&format!("{path}.containers"));
        }
    }

    fn replica_set(&mut self, set: &Value, old: Option<&Value>) {
        let spec = &set["spec"];
        self.not_negative("spec.replicas", &spec["replicas"]);
        self.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
        let selector = &spec["selector"];
        if !selector.is_object() {
            self.required("spec.selector");
        } else if selector::is_empty(selector) {
            let why = "empty selector is invalid for deployment";
            self.invalid("spec.selector", selector.clone(), why);
        }
        if old.is_some_and(|old| old["spec"]["selector"] != *selector) {
            self.invalid("spec.selector", selector.clone(), IMMUTABLE);
        }
        let template = &spec["template"];
        if !template.is_object() {
            self.required("spec.template");
            return;
        }
        let labels = &template["metadata"]["labels"];
        if selector.is_object() && !selector::matches(selector, labels) {
            let why = "`selector` does not match template `labels`";
            self.invalid("spec.template.metadata.labels", labels.clone(), why);
        }
        self.containers("spec.template.spec", &template["spec"]);
    }
}
