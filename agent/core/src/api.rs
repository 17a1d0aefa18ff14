//! What the agent may ask of its cluster, what the cluster answers, and how a refusal is sorted.
//!
//! **Invariant:** [`Request`] is closed: five effects and two reads, and no way to express another.

use std::{sync::Arc, time::Duration};

use decree::v1::{self, FailureClass};
use serde_json::Value;
use thiserror::Error;

/// An object as a cluster hands it over.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// As the API writes it, shared by all who look at it.
    Written(Arc<Value>),
    /// A pod of which nothing but what a decision reads was ever held.
    Pod(Box<v1::Pod>),
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

/// What is asked of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Creates a pod; the object carries namespace and name.
    CreatePod {
        /// The pod as it is to be.
        pod: Value,
        /// How long the cluster may work on it: it is told, and gives the create up then.
        timeout: Duration,
    },
    /// Deletes a pod under preconditions.
    DeletePod {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        name: String,
        /// The uid that the pod must have.
        uid: String,
        /// The version that the pod must have.
        resource_version: Option<String>,
    },
    /// Patches a pod by strategic merge. The patch names the uid that the pod must have.
    PatchPod {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        name: String,
        /// The patch.
        patch: Value,
    },
    /// Replaces the status of a ReplicaSet; the object carries uid and version.
    ReplaceStatus {
        /// The ReplicaSet with the status to write.
        replica_set: Value,
    },
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

/// What the cluster answered to a call that it accepted.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The object as it is after the call.
    Object(Object),
    /// A deletion by which the object is gone at once.
    Gone(Object),
}

/// A refused call, or one without an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP code; `None` where no answer came, so that the effect is unknown.
    pub code: Option<u16>,
    /// The reason of the `Status` object, such as `AlreadyExists`.
    pub reason: String,
    /// The text of the `Status` object.
    pub message: String,
    /// The types of the causes in its details, such as `NamespaceTerminating`.
    pub causes: Vec<String>,
    /// How long the cluster asks to wait.
    pub retry_after_seconds: Option<u32>,
}

/// Sorts a refusal by what it asks for. A 409 that a deletion meets is a failed precondition: the caller knows that.
#[must_use]
pub fn classify(error: &ApiError) -> FailureClass {
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

/// Tells a quota from other refusals by the words of the admission plugins, which give no cause for programs.
fn classify_forbidden(error: &ApiError) -> FailureClass {
    const QUOTA: [&str; 2] = ["exceeded quota", "failed quota"];
    const LIMIT_RANGE: [&str; 3] = [
        "usage per Pod",
        "usage per Container",
        "limit to request ratio",
    ];
    if error
        .causes
        .iter()
        .any(|cause| cause == "NamespaceTerminating")
    {
        return FailureClass::NamespaceTerminating;
    }
    let words = QUOTA.iter().chain(&LIMIT_RANGE);
    if words.into_iter().any(|word| error.message.contains(word)) {
        return FailureClass::Quota;
    }
    FailureClass::Forbidden
}

/// Reads a version as the API writes it: decimal, no leading zero (spec 5.2). Others are not comparable.
#[must_use]
pub fn parse_version(text: &str) -> Option<u64> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    canonical.then(|| text.parse().ok()).flatten()
}

// === impl Object ===

impl Object {
    /// Returns the version, empty where it has none.
    #[must_use]
    pub fn version(&self) -> &str {
        match self {
            Self::Written(object) => text(object, "/metadata/resourceVersion"),
            Self::Pod(pod) => &pod.resource_version,
        }
    }

    /// Returns the object as the API writes it; `None` where it was not held so.
    #[must_use]
    pub fn written(&self) -> Option<&Arc<Value>> {
        match self {
            Self::Written(object) => Some(object),
            Self::Pod(_) => None,
        }
    }

    /// Returns the code of a `Status` that stands in the place of an object.
    #[must_use]
    pub fn code(&self) -> Option<u64> {
        self.written()?.get("code")?.as_u64()
    }
}

impl From<Value> for Object {
    fn from(object: Value) -> Self {
        Self::Written(Arc::new(object))
    }
}

impl From<Arc<Value>> for Object {
    fn from(object: Arc<Value>) -> Self {
        Self::Written(object)
    }
}

impl From<v1::Pod> for Object {
    fn from(pod: v1::Pod) -> Self {
        Self::Pod(Box::new(pod))
    }
}

/// Returns a text of an object, empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

// === impl Kind ===

impl Kind {
    /// Both kinds, in the order in which they are listed.
    pub const ALL: [Self; 2] = [Self::ReplicaSet, Self::Pod];

    /// Returns the contract's word for the kind.
    #[must_use]
    pub const fn to_wire(self) -> v1::Kind {
        match self {
            Self::ReplicaSet => v1::Kind::ReplicaSet,
            Self::Pod => v1::Kind::Pod,
        }
    }

    /// Returns the kind that the contract's word stands for.
    #[must_use]
    pub const fn from_wire(kind: v1::Kind) -> Option<Self> {
        match kind {
            v1::Kind::Unspecified => None,
            v1::Kind::Pod => Some(Self::Pod),
            v1::Kind::ReplicaSet => Some(Self::ReplicaSet),
        }
    }
}

// === impl Request ===

impl Request {
    /// Returns the verb and kind for logs and metrics.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::CreatePod { .. } => "create_pod",
            Self::DeletePod { .. } => "delete_pod",
            Self::PatchPod { .. } => "patch_pod",
            Self::ReplaceStatus { .. } => "replace_status",
            Self::ReadPod { .. } => "read_pod",
            Self::ReadReplicaSet { .. } => "read_replica_set",
        }
    }
}

// === impl Reply ===

impl Reply {
    /// Returns the reply that shows an object as the API writes it.
    #[must_use]
    pub const fn written(object: Arc<Value>) -> Self {
        Self::Object(Object::Written(object))
    }
}

// === impl ApiError ===

impl ApiError {
    /// Returns the error of a call to which no answer came.
    #[must_use]
    pub fn no_answer(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.code == Some(410)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, reason: &str, message: &str) -> ApiError {
        let (reason, message) = (reason.to_owned(), message.to_owned());
        ApiError {
            code: Some(code),
            reason,
            message,
            ..ApiError::default()
        }
    }

    #[test]
    fn refusals_are_sorted_by_what_they_ask_for() {
        let class = |code, reason, message| classify(&refused(code, reason, message));
        assert_eq!(
            class(403, "Forbidden", "exceeded quota: pods"),
            FailureClass::Quota
        );
        assert_eq!(
            class(403, "Forbidden", "maximum memory usage per Pod is 1Gi"),
            FailureClass::Quota
        );
        assert_eq!(
            class(403, "Forbidden", "denied by webhook"),
            FailureClass::Forbidden
        );
        assert_eq!(class(401, "Unauthorized", ""), FailureClass::Forbidden);
        assert_eq!(class(404, "NotFound", ""), FailureClass::NotFound);
        assert_eq!(class(409, "AlreadyExists", ""), FailureClass::NameTaken);
        assert_eq!(class(409, "Conflict", ""), FailureClass::Conflict);
        assert_eq!(class(422, "Invalid", ""), FailureClass::Invalid);
        assert_eq!(class(429, "TooManyRequests", ""), FailureClass::Throttled);
        assert_eq!(class(500, "InternalError", ""), FailureClass::Unavailable);
        assert_eq!(class(500, "ServerTimeout", ""), FailureClass::Timeout);
        assert_eq!(
            class(503, "ServiceUnavailable", ""),
            FailureClass::Unavailable
        );
        assert_eq!(class(504, "Timeout", ""), FailureClass::Timeout);
        assert_eq!(class(307, "", ""), FailureClass::Unavailable);
        assert_eq!(
            classify(&ApiError::no_answer("reset")),
            FailureClass::Timeout
        );
    }

    #[test]
    fn terminating_namespace_is_told_by_its_cause_alone() {
        let mut error = refused(403, "Forbidden", "exceeded quota");
        error.causes = vec!["NamespaceTerminating".into()];
        assert_eq!(classify(&error), FailureClass::NamespaceTerminating);
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
