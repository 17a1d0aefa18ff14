//! The objects that the API server refuses as invalid (422), by the rules that a ReplicaSet controller can meet (spec 1.4, 14.2).

use serde_json::Value;

use crate::{
    error::ApiError,
    kind::Kind,
    names::{is_dns_label, is_label_key, is_subdomain},
    object,
    selector::{self, label_fault},
};

const IMMUTABLE: &str = "field is immutable";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

#[derive(Debug, Default)]
struct Faults(Vec<String>);

pub(crate) fn object(kind: Kind, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let mut faults = Faults::default();
    faults.metadata(kind, object, old);
    match kind {
        Kind::Pod => faults.pod(object, old),
        Kind::ReplicaSet => faults.replica_set(object, old),
        Kind::Namespace | Kind::ResourceQuota | Kind::Node => {}
    }
    faults.into_result(kind, object)
}

/// Checks the types of the fields that the rules read.
pub(crate) fn shape(kind: Kind, object: &Value) -> Result<(), ApiError> {
    let metadata = &object["metadata"];
    let maps = ["metadata", "spec", "status"].map(|field| (field, &object[field]));
    let inner = ["labels", "annotations"].map(|field| (field, &metadata[field]));
    let lists = ["ownerReferences", "finalizers"].map(|field| (field, &metadata[field]));
    let wrong_map = |value: &Value| !value.is_null() && !value.is_object();
    let wrong_list = |value: &Value| !value.is_null() && !value.is_array();
    let wrong = maps
        .iter()
        .chain(&inner)
        .find(|(_, value)| wrong_map(value));
    let wrong = wrong.or_else(|| lists.iter().find(|(_, value)| wrong_list(value)));
    // YAML reads names such as `no` as other types.
    let texts = ["name", "namespace"].map(|field| (field, &metadata[field]));
    let wrong_text = |value: &Value| !value.is_null() && !value.is_string();
    let wrong = wrong.or_else(|| texts.iter().find(|(_, value)| wrong_text(value)));
    let Some((field, _)) = wrong else {
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

    fn forbidden(&mut self, path: &str, why: &str) {
        self.0.push(format!("{path}: Forbidden: {why}"));
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

    fn metadata(&mut self, kind: Kind, object: &Value, old: Option<&Value>) {
        let name = object::name(object);
        let valid = match kind {
            Kind::Namespace => is_dns_label(name),
            Kind::Pod | Kind::ReplicaSet | Kind::ResourceQuota | Kind::Node => is_subdomain(name),
        };
        if !valid {
            let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'";
            self.invalid("metadata.name", name, why);
        }
        self.labels("metadata.labels", &object["metadata"]["labels"]);
        let annotations = object["metadata"]["annotations"].as_object();
        for (key, value) in annotations.into_iter().flatten() {
            if !is_label_key(&key.to_lowercase()) || !value.is_string() {
                let why = "not a valid annotation";
                self.invalid("metadata.annotations", key.as_str(), why);
            }
        }
        self.owners(object);
        if let Some(old) = old {
            self.metadata_update(object, old);
        }
    }

    fn labels(&mut self, path: &str, labels: &Value) {
        for (key, value) in labels.as_object().into_iter().flatten() {
            if let Some(fault) = label_fault(key, value) {
                self.0.push(format!("{path}: {fault}"));
            }
        }
    }

    fn owners(&mut self, object: &Value) {
        let path = "metadata.ownerReferences";
        let mut controller: Option<&str> = None;
        for owner in object::owners(object) {
            for (field, value) in [
                ("kind", owner.kind),
                ("name", owner.name),
                ("uid", owner.uid),
            ] {
                if value.is_empty() {
                    self.invalid(&format!("{path}.{field}"), "", "must not be empty");
                }
            }
            if let Some(first) = controller.filter(|_| owner.controller) {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {}",
                    owner.name
                );
                self.invalid(path, object["metadata"]["ownerReferences"].clone(), &why);
            }
            if owner.controller {
                controller = Some(owner.name);
            }
        }
    }

    fn metadata_update(&mut self, object: &Value, old: &Value) {
        for field in [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
        ] {
            let (value, was) = (&object["metadata"][field], &old["metadata"][field]);
            if value != was {
                self.invalid(&format!("metadata.{field}"), value.clone(), IMMUTABLE);
            }
        }
        let fresh = object::finalizers(object).find(|it| !object::has_finalizer(old, it));
        if let Some(fresh) = fresh.filter(|_| object::is_deleting(old)) {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{\"{fresh}\"}}"
            );
            self.forbidden("metadata.finalizers", &why);
        }
    }

    fn pod(&mut self, pod: &Value, old: Option<&Value>) {
        let cost = &pod["metadata"]["annotations"][DELETION_COST];
        let was = old.map(|old| &old["metadata"]["annotations"][DELETION_COST]);
        // A value that exists already is tolerated (spec 7.2).
        if !cost.is_null() && was != Some(cost) && !is_deletion_cost(cost) {
            let path = format!("metadata.annotations[{DELETION_COST}]");
            self.invalid(&path, cost.clone(), "must be a 32bit integer");
        }
        match old {
            None => self.pod_spec("spec", &pod["spec"]),
            Some(old) if fixed_spec(pod) != fixed_spec(old) => {
                let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
                self.forbidden("spec", why);
            }
            Some(_) => {}
        }
    }

    fn pod_spec(&mut self, path: &str, spec: &Value) {
        let containers = spec["containers"].as_array();
        if containers.is_none_or(Vec::is_empty) {
            self.required(&format!("{path}.containers"));
        }
        for (index, container) in containers.into_iter().flatten().enumerate() {
            if container["name"].as_str().is_none_or(str::is_empty) {
                self.required(&format!("{path}.containers[{index}].name"));
            }
        }
        let grace = "terminationGracePeriodSeconds";
        self.not_negative(&format!("{path}.{grace}"), &spec[grace]);
    }

    fn replica_set(&mut self, set: &Value, old: Option<&Value>) {
        let spec = &set["spec"];
        self.not_negative("spec.replicas", &spec["replicas"]);
        self.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
        if !spec["selector"].is_object() {
            self.required("spec.selector");
        } else if selector::is_empty(&spec["selector"]) {
            let why = "empty selector is invalid for deployment";
            self.invalid("spec.selector", spec["selector"].clone(), why);
        } else if let Some((field, fault)) = selector::first_fault(&spec["selector"]) {
            self.0.push(format!("spec.selector{field}: {fault}"));
        }
        self.template(spec);
        if old.is_some_and(|old| old["spec"]["selector"] != spec["selector"]) {
            self.invalid("spec.selector", spec["selector"].clone(), IMMUTABLE);
        }
    }

    fn template(&mut self, spec: &Value) {
        let template = &spec["template"];
        if !template.is_object() {
            self.required("spec.template");
            return;
        }
        let labels = &template["metadata"]["labels"];
        self.labels("spec.template.metadata.labels", labels);
        if spec["selector"].is_object() && !selector::matches(&spec["selector"], labels) {
            let why = "`selector` does not match template `labels`";
            self.invalid("spec.template.metadata.labels", labels.clone(), why);
        }
        self.pod_spec("spec.template.spec", &template["spec"]);
        let policy = &template["spec"]["restartPolicy"];
        if policy != "Always" {
            let path = "spec.template.spec.restartPolicy";
            self.0.push(format!(
                "{path}: Unsupported value: {policy}: supported values: \"Always\""
            ));
        }
        if !template["spec"]["activeDeadlineSeconds"].is_null() {
            let path = "spec.template.spec.activeDeadlineSeconds";
            self.forbidden(path, "activeDeadlineSeconds in ReplicaSet is not Supported");
        }
    }
}

/// The part of a pod's spec that an update must not change.
fn fixed_spec(pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        let containers = containers.into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            container.shift_remove("image");
        }
    }
    if let Some(spec) = spec.as_object_mut() {
        spec.shift_remove("activeDeadlineSeconds");
        spec.shift_remove("tolerations");
    }
    spec
}

/// True if upstream accepts this value as a deletion cost (spec 7.2).
fn is_deletion_cost(cost: &Value) -> bool {
    let Some(text) = cost.as_str() else {
        return false;
    };
    let starts_well = text == "0" || text.starts_with(|it| matches!(it, '-' | '1'..='9'));
    starts_well && text.parse::<i32>().is_ok()
}
