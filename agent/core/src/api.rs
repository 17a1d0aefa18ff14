//! The agent's requests to its cluster, the cluster's answers, and the classes of refusals.
//!
//! **Invariant:** [`Request`] is closed: six effects and two reads, and no way to express another.
//! **Invariant:** the agent copies a [`Template`] from a ReplicaSet to its pods without reading it, so a field unknown to this version
//! reaches the pod.

use std::{fmt, sync::Arc, time::Duration};

use decree_api::v1::{self, FailureClass};
use thiserror::Error;

/// An object of the cluster with the fields that decisions read. The adapter to the cluster makes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A pod.
    Pod(Box<v1::Pod>),
    /// A ReplicaSet.
    ReplicaSet(Box<ReplicaSet>),
}

/// A ReplicaSet and the template of its pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaSet {
    /// The fields that decisions read.
    pub projected: v1::ReplicaSet,
    /// The template; `None` for a ReplicaSet without one.
    pub template: Option<Template>,
}

/// The template of a ReplicaSet, in the form in which its adapter reads and writes it. Clones share it.
#[derive(Clone, PartialEq, Eq)]
pub struct Template(Arc<[u8]>);

/// An object that cannot be read: a field holds a value that the Kubernetes API never writes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{object}: {field}: {detail}")]
pub struct InvalidObject {
    /// The object for people, such as `pod default/web-1`.
    pub object: String,
    /// The path of the field, such as `metadata.labels.app`.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}

/// The kinds that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// ReplicaSets.
    ReplicaSet,
    /// Pods.
    Pod,
}

/// The number of a call, unique in the life of an [`Agent`](crate::agent::Agent).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// One call to make. The shell answers each with exactly one reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The number to give back with the reply.
    pub id: CallId,
    /// What to ask.
    pub request: Request,
}

/// A request to the cluster. A pod or ReplicaSet to change must have the named UID.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Creates a pod.
    CreatePod(CreatePod),
    /// Deletes a pod.
    DeletePod {
        /// The pod, with the uid that it must have.
        pod: v1::ObjectRef,
        /// The version that it must have.
        resource_version: Option<String>,
    },
    /// Makes a ReplicaSet the controller of a pod.
    AdoptPod {
        /// The pod, with the uid that it must have.
        pod: v1::ObjectRef,
        /// The new controller.
        controller: v1::OwnerReference,
    },
    /// Removes a ReplicaSet from the owners of a pod.
    ReleasePod {
        /// The pod, with the uid that it must have.
        pod: v1::ObjectRef,
        /// The uid of the ReplicaSet.
        owner_uid: String,
    },
    /// Writes the deletion cost of a pod, marked as ours.
    AdvisePod {
        /// The pod, with the uid that it must have.
        pod: v1::ObjectRef,
        /// The version that it must have.
        resource_version: String,
        /// The cost; 0 takes it away.
        cost: i32,
    },
    /// Writes the whole status of a ReplicaSet.
    WriteStatus(WriteStatus),
    /// Reads a pod live.
    ReadPod {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        name: String,
    },
    /// Reads a ReplicaSet live.
    ReadReplicaSet {
        /// The ReplicaSet's namespace.
        namespace: String,
        /// The ReplicaSet's name.
        name: String,
    },
}

/// A pod to create (spec 6.3): labels, annotations, finalizers and spec are the template's.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatePod {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The `generateName` of the pod, which has no effect beside the name; empty for none.
    pub generate_name: String,
    /// The ReplicaSet, its only owner.
    pub controller: v1::OwnerReference,
    /// The template of the pod.
    pub template: Template,
    /// Whether the pod names the agent as the responder to its evictions, if the cluster knows responders: its ReplicaSet replaces pods before
    /// their eviction.
    pub responds: bool,
    /// How long the cluster may work on the create. The request carries this timeout, after which the cluster gives up.
    pub timeout: Duration,
}

/// A status to write.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteStatus {
    /// The ReplicaSet, with the uid that it must have.
    pub replica_set: v1::ObjectRef,
    /// The version that it must have.
    pub resource_version: String,
    /// The status.
    pub status: v1::ReplicaSetStatus,
    /// The selector at that version: a custom resource repeats it in its status.
    pub selector: Option<v1::LabelSelector>,
}

/// The cluster's answer to an accepted call.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The pod as it is after the call.
    Pod(Box<v1::Pod>),
    /// The ReplicaSet as it is after the call.
    ReplicaSet(Box<ReplicaSet>),
    /// The pod is gone at once. The value is its last version, empty if the cluster does not say.
    Gone(String),
}

/// The answer to a call.
pub type Answer = Result<Reply, ApiError>;

/// The error of a refused or unanswered call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP code; `None` without an answer, when the effect is unknown.
    pub code: Option<u16>,
    /// The reason of the `Status` object, such as `AlreadyExists`.
    pub reason: String,
    /// The text of the `Status` object.
    pub message: String,
    /// The types of the causes in its details, such as `NamespaceTerminating`.
    pub causes: Vec<String>,
    /// How long the cluster asks the agent to wait.
    pub retry_after_seconds: Option<u32>,
}

/// The longest wait that the cluster may ask of a list or watch. A busy API server asks for seconds.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// The reason of errors for events that cannot be read.
const UNREADABLE: &str = "Unreadable";

/// Classifies a refusal. A 409 to a deletion is a failed precondition, which the caller must know.
pub(crate) fn classify(error: &ApiError) -> FailureClass {
    let timed_out = matches!(error.reason.as_str(), "Timeout" | "ServerTimeout");
    match error.code {
        None | Some(408 | 504) => FailureClass::Timeout,
        Some(403) => classify_forbidden(error),
        Some(401) => FailureClass::Forbidden,
        Some(404) => FailureClass::NotFound,
        Some(409) if error.reason == "AlreadyExists" => FailureClass::NameTaken,
        Some(409) => FailureClass::Conflict,
        Some(429) => FailureClass::Throttled,
        Some(500..) if timed_out => FailureClass::Timeout,
        Some(400..=499) => FailureClass::Invalid,
        Some(_) => FailureClass::Unavailable,
    }
}

/// True if a refused write may have taken effect, or may still.
pub(crate) fn leaves_effect_open(error: &ApiError) -> bool {
    let class = classify(error);
    matches!(class, FailureClass::Timeout | FailureClass::Unavailable)
}

/// Tells a quota from other refusals by the messages of the admission plugins, which give no machine-readable cause.
fn classify_forbidden(error: &ApiError) -> FailureClass {
    const QUOTA: [&str; 5] = [
        "exceeded quota",
        "failed quota",
        "usage per Pod",
        "usage per Container",
        "limit to request ratio",
    ];
    if error.causes.iter().any(|it| it == "NamespaceTerminating") {
        FailureClass::NamespaceTerminating
    } else if QUOTA.iter().any(|word| error.message.contains(word)) {
        FailureClass::Quota
    } else {
        FailureClass::Forbidden
    }
}

pub(crate) fn pod_ref(pod: &v1::Pod) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

pub(crate) fn object_ref(set: &v1::ReplicaSet) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: set.namespace.clone(),
        name: set.name.clone(),
        uid: set.uid.clone(),
    }
}

pub(crate) fn display(object: &v1::ObjectRef) -> String {
    format!("{}/{}", object.namespace, object.name)
}

/// Parses a version as the API writes it: decimal, no leading zero (spec 5.2). Other versions are not comparable.
pub(crate) fn parse_version(text: &str) -> Option<u64> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    canonical.then(|| text.parse().ok()).flatten()
}

impl Object {
    /// The version; empty for an object without one.
    pub(crate) fn resource_version(&self) -> &str {
        match self {
            Self::Pod(pod) => &pod.resource_version,
            Self::ReplicaSet(replica_set) => &replica_set.projected.resource_version,
        }
    }

    pub(crate) fn reference(&self) -> (Kind, v1::ObjectRef) {
        match self {
            Self::Pod(pod) => (Kind::Pod, pod_ref(pod)),
            Self::ReplicaSet(replica_set) => (Kind::ReplicaSet, object_ref(&replica_set.projected)),
        }
    }
}

impl From<v1::Pod> for Object {
    fn from(pod: v1::Pod) -> Self {
        Self::Pod(Box::new(pod))
    }
}

impl From<ReplicaSet> for Object {
    fn from(replica_set: ReplicaSet) -> Self {
        Self::ReplicaSet(Box::new(replica_set))
    }
}

impl Template {
    /// Creates a template from the bytes of its adapter.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }
}

impl AsRef<[u8]> for Template {
    /// Returns the bytes given to [`new`](Template::new), for the adapter alone.
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Template {
    /// Shows no content: a template may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Template({} bytes)", self.0.len())
    }
}

impl Kind {
    /// Both kinds, in the order in which they are listed.
    pub const ALL: [Self; 2] = [Self::ReplicaSet, Self::Pod];

    /// Returns the name of the resource in logs and metrics.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::ReplicaSet => "replicasets",
            Self::Pod => "pods",
        }
    }

    /// Returns the contract's value for the kind.
    pub const fn to_wire(self) -> v1::Kind {
        match self {
            Self::ReplicaSet => v1::Kind::ReplicaSet,
            Self::Pod => v1::Kind::Pod,
        }
    }

    pub(crate) fn from_wire(kind: v1::Kind) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.to_wire() == kind)
    }
}

impl Request {
    /// Returns the verb and kind for logs and metrics.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::CreatePod(_) => "create_pod",
            Self::DeletePod { .. } => "delete_pod",
            Self::AdoptPod { .. } => "adopt_pod",
            Self::ReleasePod { .. } => "release_pod",
            Self::AdvisePod { .. } => "advise_pod",
            Self::WriteStatus(_) => "write_status",
            Self::ReadPod { .. } => "read_pod",
            Self::ReadReplicaSet { .. } => "read_replica_set",
        }
    }
}

impl Reply {
    /// The kind and the version of the object after the call.
    pub(crate) fn version(&self) -> (Kind, &str) {
        match self {
            Self::Pod(pod) => (Kind::Pod, &pod.resource_version),
            Self::Gone(version) => (Kind::Pod, version),
            Self::ReplicaSet(set) => (Kind::ReplicaSet, &set.projected.resource_version),
        }
    }
}

impl From<Object> for Reply {
    fn from(object: Object) -> Self {
        match object {
            Object::Pod(pod) => Self::Pod(pod),
            Object::ReplicaSet(replica_set) => Self::ReplicaSet(replica_set),
        }
    }
}

impl ApiError {
    /// Returns the error of a call without an answer.
    pub fn no_answer(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// Returns the shortest wait of a refused list or watch: as long as the cluster asks for, at most a minute.
    pub fn retry_after(&self) -> Duration {
        let seconds = self.retry_after_seconds.unwrap_or_default();
        Duration::from_secs(seconds.into()).min(RETRY_AFTER_MAX)
    }

    /// Returns the error for an event that cannot be read. The event may hide a change, so the error has the effect of a version that is
    /// gone.
    pub fn unreadable(message: impl Into<String>) -> Self {
        Self {
            code: Some(410),
            reason: UNREADABLE.to_owned(),
            ..Self::no_answer(message)
        }
    }

    /// Returns whether the requested version is too old, so that the kind must be listed again.
    pub fn is_gone(&self) -> bool {
        self.code == Some(410)
    }

    /// Returns whether this is an expected error: a version that is gone, unless the error is for an event that cannot be read.
    pub fn is_everyday(&self) -> bool {
        self.is_gone() && self.reason != UNREADABLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::refusal;

    #[test]
    fn refusals_are_sorted_by_what_they_ask_for() {
        for (code, reason, class) in [
            (307, "", FailureClass::Unavailable),
            (401, "Unauthorized", FailureClass::Forbidden),
            (404, "NotFound", FailureClass::NotFound),
            (409, "AlreadyExists", FailureClass::NameTaken),
            (409, "Conflict", FailureClass::Conflict),
            (422, "Invalid", FailureClass::Invalid),
            (429, "TooManyRequests", FailureClass::Throttled),
            (500, "InternalError", FailureClass::Unavailable),
            (500, "ServerTimeout", FailureClass::Timeout),
            (503, "ServiceUnavailable", FailureClass::Unavailable),
            (504, "Timeout", FailureClass::Timeout),
        ] {
            assert_eq!(classify(&refusal(code, reason)), class, "{code}");
        }
        for (message, class) in [
            ("exceeded quota: pods", FailureClass::Quota),
            ("maximum memory usage per Pod is 1Gi", FailureClass::Quota),
            ("denied by webhook", FailureClass::Forbidden),
        ] {
            let mut error = refusal(403, "Forbidden");
            error.message = message.to_owned();
            assert_eq!(classify(&error), class, "{message}");
            // A terminating namespace is told by its cause alone.
            error.causes = vec!["NamespaceTerminating".into()];
            assert_eq!(classify(&error), FailureClass::NamespaceTerminating);
        }
        let unanswered = ApiError::no_answer("reset");
        assert_eq!(classify(&unanswered), FailureClass::Timeout);
        assert_eq!((&*unanswered.message, unanswered.code), ("reset", None));
    }

    #[test]
    fn event_that_cannot_be_read_is_gone_and_no_everyday_matter() {
        for (error, is_gone, is_everyday) in [
            (refusal(410, "Expired"), true, true),
            (ApiError::unreadable("cut off"), true, false),
            (refusal(403, "Forbidden"), false, false),
            (ApiError::no_answer("reset"), false, false),
        ] {
            let said = (error.is_gone(), error.is_everyday());
            assert_eq!(said, (is_gone, is_everyday), "{error:?}");
        }
    }

    #[test]
    fn versions_are_decimal_without_leading_zero() {
        assert_eq!(parse_version("10"), Some(10));
        assert_eq!(parse_version("18446744073709551615"), Some(u64::MAX));
        for bad in ["", "0", "01", "-1", "1a", "18446744073709551616"] {
            assert_eq!(parse_version(bad), None, "{bad:?}");
        }
    }
}
