//! Pods and ReplicaSets, from the contract to the core.

use decree_api::v1;
use decree_core::{
    Condition, Key, OwnerView, Parts, Phase, Pod, PodState, PodView, Quarantine, Ready, ReplicaSet,
    Selector, Status, Uid,
};
use prost::Message;

use super::{
    Fault, Rejected, Violation,
    field::{self, Faults},
    preferences,
    raw::{self, RawLabels, RawPod},
};

/// The maximum number of requirements of a selector. Kubernetes has no limit, and each requirement is tested for every orphan of the
/// namespace.
const REQUIREMENTS_MAX: usize = 1_000;
/// The number of bytes of a request to resume that are read.
const RESUME_MAX: usize = 256;
/// The number of bytes of a waiting reason that are read.
const WAITING_MAX: usize = 128;
/// The number of bytes of a manager that are read.
const MANAGER_MAX: usize = 128;
/// The maximum number of values of all requirements of a selector; Kubernetes has no limit.
const VALUES_MAX: usize = 10_000;
/// The maximum number of conditions of a status; Kubernetes has no limit.
const CONDITIONS_MAX: usize = 100;
/// The maximum size in bytes of the texts of all conditions; a status travels back in one frame.
const CONDITIONS_BYTES_MAX: usize = 128 * 1024;
/// The longest group and version: a DNS-1123 subdomain, a slash and a DNS-1035 label.
const API_VERSION_MAX: usize = 253 + 1 + 63;
/// The longest kind, a DNS-1035 label.
const KIND_MAX: usize = 63;
/// The longest value of an annotation: all annotations of an object may have 256 KiB.
const ANNOTATION_MAX: usize = 256 * 1024;
/// The longest type of a condition: a qualified name.
const CONDITION_TYPE_MAX: usize = 253 + 1 + 63;
/// The longest status of a condition; Kubernetes writes nothing longer than `Unknown`.
const CONDITION_STATUS_MAX: usize = 63;
/// The longest reason and the longest message of a condition, as Kubernetes limits its own.
const REASON_MAX: usize = 1_024;
const MESSAGE_MAX: usize = 32 * 1024;

/// Reads a pod.
///
/// # Errors
/// Names every field that breaks the contract.
pub fn pod(pod: &v1::Pod) -> Result<Pod, Vec<Violation>> {
    let (bytes, mut labels) = (pod.encode_to_vec(), RawLabels::new());
    let raw = RawPod::read(&bytes, &mut labels);
    let raw = raw.expect("prost writes each field once");
    pod_view(&raw, &labels).map(|pod| pod.to_pod())
}

/// Reads a pod with borrowed texts, and its labels sorted by key.
///
/// # Errors
/// Names every field that breaks the contract.
pub(crate) fn pod_view<'a>(
    pod: &RawPod<'a>,
    labels: &'a [(&'a str, &'a str)],
) -> Result<PodView<'a>, Vec<Violation>> {
    let RawPod {
        namespace,
        name,
        uid,
        resource_version,
        controller,
        created,
        deleted,
        node_name,
        phase,
        ready: condition,
        deletion_cost: annotation,
        max_regular_restarts,
        max_sidecar_restarts,
        disruption_target,
        waiting_reason: waiting,
        leaving,
        advised_cost,
    } = *pod;
    let mut faults = Faults::default();
    let identity = texts(namespace, name, uid, &mut faults);
    let version = faults.keep(field::version("resource_version", resource_version));
    field::check_labels("labels", labels, &mut faults);
    let controller = owner(controller, &mut faults).map(with_kind);
    let created = faults.keep(field::timestamp("creation_timestamp", created.as_ref()));
    let deleted = faults.keep(field::timestamp("deletion_timestamp", deleted.as_ref()));
    let node = faults.keep(field::text("node_name", node_name, field::NAME_MAX));
    let annotation = faults.keep(field::text("deletion_cost", annotation, ANNOTATION_MAX));
    let phase = self::phase(v1::PodPhase::try_from(phase).unwrap_or_default());
    let ready = faults.keep(ready(condition.as_ref()));
    let restarts = faults.not_negative("max_regular_restarts", max_regular_restarts);
    let sidecar_restarts = faults.not_negative("max_sidecar_restarts", max_sidecar_restarts);
    let violations = faults.into_vec();
    let (Some((namespace, name, uid)), true) = (identity, violations.is_empty()) else {
        return Err(violations);
    };
    Ok(PodView {
        namespace,
        name,
        uid,
        version,
        labels,
        controller,
        node: Some(node).filter(|name| !name.is_empty()),
        waiting: Some(&waiting[..waiting.floor_char_boundary(WAITING_MAX)])
            .filter(|it| !it.is_empty()),
        deleted,
        state: PodState {
            created,
            deleting: deleted.is_some(),
            phase,
            ready,
            deletion_cost: deletion_cost(annotation),
            foreign_cost: !annotation.is_empty() && annotation != advised_cost,
            restarts,
            sidecar_restarts,
            disruption_target,
            leaving,
        },
    })
}

/// Reads a ReplicaSet. If it can be named but has a field out of range, or no API server would admit it, it is quarantined.
///
/// # Errors
/// Names the faults of its namespace, name or UID.
pub fn replica_set(set: &v1::ReplicaSet) -> Result<ReplicaSet, Vec<Violation>> {
    let mut read = unverified_replica_set(set)?;
    if let Ok(selector) = &read.selector
        && let Err(quarantine) = selector.verify(&read.template_labels)
    {
        read.selector = Err(quarantine);
    }
    Ok(read)
}

/// Reads a ReplicaSet as [`replica_set`] does, but as upstream's controller would: without a check whether an API server would admit it.
///
/// # Errors
/// Names the faults of its namespace, name or UID.
pub fn unverified_replica_set(set: &v1::ReplicaSet) -> Result<ReplicaSet, Vec<Violation>> {
    let v1::ReplicaSet {
        namespace,
        name,
        uid,
        resource_version,
        generation,
        deletion_timestamp: deleted,
        controller,
        replicas,
        min_ready_seconds,
        selector,
        template_labels,
        status,
        resume,
        preferences,
        ignored_annotations,
        replicas_manager: manager,
    } = set;
    let mut faults = Faults::default();
    let Some(key) = texts(namespace, name, uid, &mut faults).map(key) else {
        return Err(faults.into_vec());
    };
    let version = faults.keep(field::version("resource_version", resource_version));
    let generation = faults.not_negative("generation", *generation);
    let deleted = faults.keep(field::timestamp("deletion_timestamp", deleted.as_ref()));
    let controller = owner(controller.as_ref().map(raw::owner_of), &mut faults);
    let controller = controller.map(OwnerView::to_owner);
    let replicas = faults.not_negative("replicas", replicas.unwrap_or(1));
    let min_ready_seconds = faults.not_negative("min_ready_seconds", *min_ready_seconds);
    let template_labels = field::labels("template_labels", template_labels, &mut faults);
    let status = self::status(status.as_ref(), &mut faults);
    let preferences = preferences::read(preferences.as_ref(), ignored_annotations, &mut faults);
    let selector = match faults.into_vec().into_iter().next() {
        Some(violation) => Err(violation.into()),
        None => self::selector(selector.as_ref()),
    };
    Ok(ReplicaSet {
        key,
        version,
        generation,
        deleting: deleted.is_some(),
        controller,
        replicas,
        min_ready_seconds,
        selector,
        template_labels,
        status,
        resume: resume[..resume.floor_char_boundary(RESUME_MAX)].into(),
        preferences,
        replicas_manager: manager[..manager.floor_char_boundary(MANAGER_MAX)].into(),
    })
}

pub(super) fn key((namespace, name, uid): (&str, &str, &str)) -> Key {
    Key {
        namespace: namespace.into(),
        name: name.into(),
        uid: Uid(uid.into()),
    }
}

/// Reads namespace, name and UID of a ReplicaSet or a pod, and adds their faults.
pub(super) fn texts<'a>(
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    faults: &mut Faults,
) -> Option<(&'a str, &'a str, &'a str)> {
    let namespace = faults.keep_some(field::namespace("namespace", namespace));
    let name = faults.keep_some(field::name("name", name));
    let uid = faults.keep_some(field::uid("uid", uid));
    Some((namespace?, name?, uid?))
}

fn owner<'a>(owner: Option<OwnerView<'a>>, faults: &mut Faults) -> Option<OwnerView<'a>> {
    let OwnerView {
        api_version,
        kind,
        name,
        uid,
        block_owner_deletion,
    } = owner?;
    let mut text = |field, text, max| faults.keep(field::text(field, text, max));
    Some(OwnerView {
        api_version: text("controller.api_version", api_version, API_VERSION_MAX),
        kind: text("controller.kind", kind, KIND_MAX),
        name: text("controller.name", name, field::NAME_MAX),
        uid: faults.keep_some(field::uid("controller.uid", uid))?,
        block_owner_deletion,
    })
}

/// An agent whose objects have no kinds leaves the kind of a controller empty: only ReplicaSets decide on pods.
fn with_kind(owner: OwnerView<'_>) -> OwnerView<'_> {
    if owner.kind.is_empty() {
        owner.to_replica_set()
    } else {
        owner
    }
}

fn ready(condition: Option<&v1::ReadyCondition>) -> Result<Ready, Violation> {
    let Some(v1::ReadyCondition {
        ready,
        last_transition_time: since,
    }) = condition
    else {
        return Ok(Ready::default());
    };
    Ok(Ready {
        ready: *ready,
        since: field::timestamp("ready.last_transition_time", since.as_ref())?,
    })
}

namesakes! {
    fn phase(v1::PodPhase) -> Phase {
        Pending Unknown Running Succeeded Failed; Unspecified => Other
    }
}

/// Reads the deletion cost annotation. A value that is invalid for upstream counts as 0 (spec 7.2).
fn deletion_cost(annotation: &str) -> i32 {
    let canonical = annotation == "0"
        || annotation.starts_with(|first: char| first == '-' || ('1'..='9').contains(&first));
    let cost = canonical.then(|| annotation.parse().ok());
    cost.flatten().unwrap_or(0)
}

#[expect(clippy::disallowed_methods, reason = "the labels are sorted")]
fn selector(selector: Option<&v1::LabelSelector>) -> Result<Selector, Quarantine> {
    let Some(v1::LabelSelector {
        match_labels,
        match_expressions,
    }) = selector
    else {
        return Selector::parse(None);
    };
    let requirements = match_labels.len().saturating_add(match_expressions.len());
    let values = match_expressions.iter().map(|one| one.values.len());
    let values = match_labels.len().saturating_add(values.sum());
    for (number, max, noun) in [
        (requirements, REQUIREMENTS_MAX, "requirements"),
        (values, VALUES_MAX, "values"),
    ] {
        if number > max {
            let detail = format!("has {number} {noun}; at most {max} are allowed");
            let field = "selector".to_owned();
            return Err(Quarantine { field, detail });
        }
    }
    let mut labels: Vec<_> = match_labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    labels.sort_unstable();
    Selector::parse(Some(Parts {
        match_labels: labels,
        match_expressions: match_expressions.iter().map(expression).collect(),
    }))
}

fn expression(requirement: &v1::LabelSelectorRequirement) -> (&str, &str, Vec<&str>) {
    let v1::LabelSelectorRequirement {
        key,
        operator,
        values,
    } = requirement;
    (key, operator, values.iter().map(String::as_str).collect())
}

fn status(status: Option<&v1::ReplicaSetStatus>, faults: &mut Faults) -> Status {
    let Some(status) = status else {
        return Status::default();
    };
    let v1::ReplicaSetStatus {
        replicas,
        fully_labeled_replicas,
        ready_replicas,
        available_replicas,
        terminating_replicas,
        observed_generation,
        conditions,
    } = status;
    Status {
        replicas: *replicas,
        fully_labeled_replicas: *fully_labeled_replicas,
        ready_replicas: *ready_replicas,
        available_replicas: *available_replicas,
        terminating_replicas: *terminating_replicas,
        observed_generation: *observed_generation,
        conditions: self::conditions(conditions, faults),
    }
}

fn conditions(conditions: &[v1::ReplicaSetCondition], faults: &mut Faults) -> Vec<Condition> {
    let (number, bytes) = (
        conditions.len(),
        conditions
            .iter()
            .map(|it| it.r#type.len() + it.status.len() + it.reason.len() + it.message.len()),
    );
    let bytes: usize = bytes.sum();
    let found = if number > CONDITIONS_MAX {
        format!("are {number}; at most {CONDITIONS_MAX} are allowed")
    } else if bytes > CONDITIONS_BYTES_MAX {
        format!("have {bytes} bytes of text; at most {CONDITIONS_BYTES_MAX} are allowed")
    } else {
        String::new()
    };
    if !found.is_empty() {
        faults.add(Violation::new("status.conditions", Fault::Range, found));
        return Vec::new();
    }
    let numbered = conditions.iter().enumerate();
    numbered
        .map(|(place, condition)| self::condition(place, condition, faults))
        .collect()
}

fn condition(place: usize, condition: &v1::ReplicaSetCondition, faults: &mut Faults) -> Condition {
    let v1::ReplicaSetCondition {
        r#type,
        status,
        last_transition_time,
        reason,
        message,
    } = condition;
    let within = |violation: Violation| violation.within(&format!("status.conditions[{place}]"));
    let time = field::timestamp("last_transition_time", last_transition_time.as_ref());
    let last_transition = faults.keep(time.map_err(within));
    let mut text = |field, text, max| {
        let text = field::text(field, text, max).map_err(within);
        faults.keep(text).to_owned()
    };
    Condition {
        kind: text("type", r#type, CONDITION_TYPE_MAX),
        status: text("status", status, CONDITION_STATUS_MAX),
        last_transition,
        reason: text("reason", reason, REASON_MAX),
        message: text("message", message, MESSAGE_MAX),
    }
}

impl From<Violation> for Quarantine {
    fn from(violation: Violation) -> Self {
        let Violation {
            field,
            description: detail,
            fault: _,
        } = violation;
        Self { field, detail }
    }
}

impl Rejected {
    /// Creates the rejection of an object with this namespace, name and UID, as far as they could be read.
    pub(crate) fn new(kind: v1::Kind, names: [&str; 3], violations: Vec<Violation>) -> Self {
        let [namespace, name, uid] =
            names.map(|text| &text[..text.floor_char_boundary(field::NAME_MAX)]);
        Self {
            kind,
            object: object_ref(namespace, name, uid),
            violations,
        }
    }
}

pub(crate) fn object_ref(namespace: &str, name: &str, uid: &str) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
    }
}
