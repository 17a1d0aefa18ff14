//! All refusals of the server, and the one place that creates a `tonic::Status`.
//!
//! Each refusal carries a `google.rpc.ErrorInfo` with the domain `decree.dev` and a reason that docs/protocol.md explains.
//! Fitting details come with it: `BadRequest`, `PreconditionFailure`, `QuotaFailure`, `ResourceInfo`, `RetryInfo`.
//! A refusal fits into the headers that common clients accept, even if the refused message was large ([`bounds`]).

use std::{collections::HashMap, error::Error as _, time::Duration};

use decree_api::v1;
use decree_core::Interrupted;
use server_access::Denial;
use server_session::{
    Refusal as SessionRefusal,
    wire::{Fault, Violation},
};
use service::transport::Ended;
use thiserror::Error;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, PreconditionViolation, StatusExt};

use self::bounds::{MESSAGE_MAX, TEXT_MAX, cut, fitting};

mod bounds;

/// The domain of every `ErrorInfo`.
pub const DOMAIN: &str = "decree.dev";

/// The delay before a client that met a limit should retry.
const OVERLOAD_RETRY: Duration = Duration::from_secs(1);
/// The maximum number of clusters that an ambiguous name lists.
const UIDS_NAMED_MAX: usize = 4;

/// A refusal with its reason. The text becomes the message of the status.
#[derive(Clone, Debug, Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Session(#[from] SessionRefusal),
    #[error(transparent)]
    Denied(#[from] Denial),
    #[error("session {0:?} is not one of yours")]
    SessionUnknown(String),
    #[error("the message cannot be decoded: {detail}")]
    Malformed { detail: String },
    #[error("the message is larger than {max} bytes")]
    TooLarge { max: usize },
    #[error("received no Hello within {} s", .0.as_secs_f64())]
    HelloTimeout(Duration),
    #[error("the agent has read nothing for {} s", .0.as_secs_f64())]
    SlowReader(Duration),
    #[error("limit of {max} {what} reached")]
    Exhausted { what: &'static str, max: usize },
    #[error("deadline exceeded")]
    DeadlineExceeded,
    #[error("more than one cluster is connected; name one")]
    ClusterRequired,
    #[error("{word:?} names {} clusters: those of uid {}; write the uid of one", .uids.len(), quoted(.uids))]
    ClusterAmbiguous { word: String, uids: Vec<String> },
    #[error("cluster {0:?} is not connected")]
    ClusterUnknown(String),
    #[error("ReplicaSet {namespace}/{name} not found")]
    ReplicaSetUnknown { namespace: String, name: String },
    #[error(
        "the server does not have all decisions after this resume_token any more; watch without it"
    )]
    ResumeTokenExpired,
    #[error("the session has ended")]
    SessionEnded,
    #[error("the session failed and was ended")]
    Panicked,
    #[error("the client certificate {0}")]
    CertificateEnded(Ended),
    #[error("{message}")]
    Transport { code: Code, message: String },
}

impl Refusal {
    /// The refusal of a request that would exceed a limit.
    pub(crate) const fn exhausted(what: &'static str, max: usize) -> Self {
        Self::Exhausted { what, max }
    }

    pub(crate) fn field(field: &str, fault: Fault, description: impl Into<String>) -> Self {
        Self::invalid(vec![Violation::new(field, fault, description)])
    }

    /// The refusal of a query about a ReplicaSet that no session of the cluster knows.
    pub(crate) fn unknown(subject: v1::GetReplicaSetRequest) -> Self {
        let (namespace, name) = (subject.namespace, subject.name);
        Self::ReplicaSetUnknown { namespace, name }
    }

    pub(crate) const fn invalid(violations: Vec<Violation>) -> Self {
        Self::Session(SessionRefusal::Invalid(violations, 0))
    }

    /// The value of `ErrorInfo.reason`.
    pub(crate) fn reason(&self) -> &'static str {
        self.nature().1
    }

    /// The message of the status, cut to the maximum length.
    pub(crate) fn message(&self) -> String {
        cut(&self.to_string(), MESSAGE_MAX)
    }

    /// The delay before a retry can succeed; `None` if a retry is useless.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        if let Self::Session(SessionRefusal::Draining { reconnect_after }) = self {
            return Some(*reconnect_after);
        }
        matches!(self, Self::Exhausted { .. } | Self::SessionEnded).then_some(OVERLOAD_RETRY)
    }

    /// The gRPC code, the reason, and the metadata.
    fn nature(&self) -> (Code, &'static str, Vec<(&'static str, String)>) {
        match self {
            Self::Session(refusal) => (session_code(refusal), refusal.reason(), facts(refusal)),
            Self::Denied(denial) if denial.is_about_proof() => {
                (Code::Unauthenticated, denial.reason(), vec![])
            }
            Self::Denied(denial) => (Code::PermissionDenied, denial.reason(), vec![]),
            Self::SessionUnknown(_) => (Code::NotFound, "SESSION_UNKNOWN", vec![]),
            Self::Malformed { .. } => (Code::InvalidArgument, "MALFORMED_MESSAGE", vec![]),
            Self::TooLarge { max } => {
                let facts = vec![("max_bytes", max.to_string())];
                (Code::OutOfRange, "MESSAGE_TOO_LARGE", facts)
            }
            Self::HelloTimeout(_) => (Code::DeadlineExceeded, "HELLO_TIMEOUT", vec![]),
            Self::SlowReader(_) => (Code::DeadlineExceeded, "AGENT_NOT_READING", vec![]),
            Self::Exhausted { what, max } => {
                let facts = vec![("limit", (*what).to_owned()), ("max", max.to_string())];
                (Code::ResourceExhausted, "LIMIT_REACHED", facts)
            }
            Self::DeadlineExceeded => (Code::DeadlineExceeded, "DEADLINE_EXCEEDED", vec![]),
            Self::ClusterRequired => (Code::InvalidArgument, "CLUSTER_REQUIRED", vec![]),
            Self::ClusterAmbiguous { .. } => (Code::InvalidArgument, "CLUSTER_AMBIGUOUS", vec![]),
            Self::ClusterUnknown(_) => (Code::NotFound, "CLUSTER_UNKNOWN", vec![]),
            Self::ReplicaSetUnknown { .. } => (Code::NotFound, "REPLICA_SET_UNKNOWN", vec![]),
            Self::ResumeTokenExpired => (Code::OutOfRange, "RESUME_TOKEN_EXPIRED", vec![]),
            Self::SessionEnded => (Code::Unavailable, "SESSION_ENDED", vec![]),
            Self::Panicked => (Code::Internal, "INTERNAL_FAILURE", vec![]),
            Self::CertificateEnded(ended) => {
                let reason = match ended {
                    Ended::Expired => "CERTIFICATE_EXPIRED",
                    Ended::Revoked => "CERTIFICATE_REVOKED",
                    Ended::Untrusted => "CERTIFICATE_UNTRUSTED",
                };
                (Code::Unauthenticated, reason, vec![])
            }
            Self::Transport { code, .. } => (*code, code_names(*code).1, vec![]),
        }
    }

    fn details(&self, code: Code, reason: &str, facts: Vec<(&str, String)>) -> ErrorDetails {
        let facts = facts.into_iter();
        let facts: HashMap<_, _> = facts.map(|(key, fact)| (key.to_owned(), fact)).collect();
        let mut details = ErrorDetails::with_error_info(reason, DOMAIN, facts);
        let said = cut(&self.to_string(), TEXT_MAX);
        if let Self::Session(SessionRefusal::Invalid(violations, _)) = self {
            let first = violations.iter().take(named(violations));
            details.set_bad_request(first.map(field_violation).collect::<Vec<_>>());
        } else if let Self::ClusterRequired | Self::ClusterAmbiguous { .. } = self {
            details.add_bad_request_violation("cluster", said);
        } else if let Self::Exhausted { what, .. } = self {
            details.add_quota_failure_violation(*what, said);
        } else if let Self::Session(SessionRefusal::ObjectsExhausted { .. }) = self {
            details.add_quota_failure_violation("objects", said);
        } else if let Self::Session(SessionRefusal::MemoryExhausted { .. }) = self {
            details.add_quota_failure_violation("session_memory", said);
        } else if let Self::ClusterUnknown(cluster) = self {
            details.set_resource_info("Cluster", cut(cluster, TEXT_MAX), "", said);
        } else if let Self::SessionUnknown(session) = self {
            details.set_resource_info("Session", cut(session, TEXT_MAX), "", said);
        } else if let Self::ReplicaSetUnknown { namespace, name } = self {
            let name = cut(&format!("{namespace}/{name}"), TEXT_MAX);
            details.set_resource_info("ReplicaSet", name, "", said);
        } else if let Self::Session(SessionRefusal::CapabilityUnsupported { first, .. }) = self {
            let violation = |name| PreconditionViolation::new(reason, name, "is not supported");
            details.set_precondition_failure(first.iter().map(violation).collect::<Vec<_>>());
        } else if code == Code::FailedPrecondition {
            details.add_precondition_failure_violation(reason, "session", said);
        }
        if let Some(delay) = self.retry_after() {
            details.set_retry_info(Some(delay));
        }
        details
    }
}

impl From<Interrupted> for Refusal {
    fn from(Interrupted: Interrupted) -> Self {
        Self::DeadlineExceeded
    }
}

/// The first uids of a long list.
fn quoted(uids: &[String]) -> String {
    let first = uids.iter().take(UIDS_NAMED_MAX);
    let first = first.map(|uid| format!("{uid:?}"));
    let more = (uids.len() > UIDS_NAMED_MAX).then(|| "…".to_owned());
    first.chain(more).collect::<Vec<_>>().join(", ")
}

/// The refusal for a status that tonic created. Tonic's `INTERNAL` means a message that cannot be decoded, which is an error of the
/// peer.
pub(crate) fn from_transport(status: &Status, max_bytes: usize) -> Refusal {
    // A refusal by this server's body below tonic is reported unchanged.
    let source = status.source().and_then(|it| it.downcast_ref::<Refusal>());
    if let Some(refusal) = source {
        return refusal.clone();
    }
    let (code, message) = (status.code(), status.message().to_owned());
    if code == Code::OutOfRange {
        Refusal::TooLarge { max: max_bytes }
    } else if code == Code::Internal {
        Refusal::Malformed { detail: message }
    } else {
        Refusal::Transport { code, message }
    }
}

const fn session_code(refusal: &SessionRefusal) -> Code {
    match refusal {
        SessionRefusal::Invalid(..) | SessionRefusal::Malformed(_) => Code::InvalidArgument,
        SessionRefusal::HelloExpected
        | SessionRefusal::HelloRepeated
        | SessionRefusal::ProtocolUnsupported { .. }
        | SessionRefusal::CapabilityUnsupported { .. }
        | SessionRefusal::BurstUnsupported { .. }
        | SessionRefusal::EpochTooOld { .. }
        | SessionRefusal::SnapshotNotOpen(_)
        | SessionRefusal::SnapshotCount { .. }
        | SessionRefusal::NodesUnexpected
        | SessionRefusal::EventBeforeSnapshot(_) => Code::FailedPrecondition,
        SessionRefusal::Superseded { .. }
        | SessionRefusal::SequenceGap { .. }
        | SessionRefusal::VersionsWentBack { .. } => Code::Aborted,
        SessionRefusal::Silent(_)
        | SessionRefusal::OutcomesMissing(_)
        | SessionRefusal::ListMissing(..) => Code::DeadlineExceeded,
        SessionRefusal::ObjectsExhausted { .. } | SessionRefusal::MemoryExhausted { .. } => {
            Code::ResourceExhausted
        }
        SessionRefusal::Draining { .. } => Code::Unavailable,
    }
}

/// The metadata of a refusal, with the number of list entries that a status leaves out.
fn facts(refusal: &SessionRefusal) -> Vec<(&'static str, String)> {
    let omitted = if let SessionRefusal::Invalid(violations, more) = refusal {
        violations.len() - named(violations) + more
    } else if let SessionRefusal::CapabilityUnsupported { more, .. } = refusal {
        *more
    } else {
        0
    };
    let omitted = (omitted > 0).then(|| ("omitted", omitted.to_string()));
    refusal.facts().into_iter().chain(omitted).collect()
}

/// The number of violations that fit into a status.
fn named(violations: &[Violation]) -> usize {
    let text = |text: &str| text.len().min(TEXT_MAX);
    let sizes = violations.iter().map(|violation| {
        text(&violation.field) + text(&violation.description) + violation.fault.as_str().len()
    });
    fitting(sizes)
}

fn field_violation(violation: &Violation) -> FieldViolation {
    let text = |text: &str| cut(text, TEXT_MAX);
    let mut detail = FieldViolation::new(text(&violation.field), text(&violation.description));
    violation.fault.as_str().clone_into(&mut detail.reason);
    detail
}

/// The name of a code in metrics, as grpc-prometheus writes it, and the reason of a status with this code that a library made.
pub(crate) const fn code_names(code: Code) -> (&'static str, &'static str) {
    match code {
        Code::Ok => ("OK", "OK"),
        Code::Cancelled => ("Canceled", "CANCELLED"),
        Code::Unknown => ("Unknown", "UNKNOWN"),
        Code::InvalidArgument => ("InvalidArgument", "INVALID_ARGUMENT"),
        Code::DeadlineExceeded => ("DeadlineExceeded", "DEADLINE_EXCEEDED"),
        Code::NotFound => ("NotFound", "NOT_FOUND"),
        Code::AlreadyExists => ("AlreadyExists", "ALREADY_EXISTS"),
        Code::PermissionDenied => ("PermissionDenied", "PERMISSION_DENIED"),
        Code::ResourceExhausted => ("ResourceExhausted", "MESSAGE_TOO_LARGE"),
        Code::FailedPrecondition => ("FailedPrecondition", "FAILED_PRECONDITION"),
        Code::Aborted => ("Aborted", "ABORTED"),
        Code::OutOfRange => ("OutOfRange", "OUT_OF_RANGE"),
        Code::Unimplemented => ("Unimplemented", "UNIMPLEMENTED"),
        Code::Internal => ("Internal", "INTERNAL_FAILURE"),
        Code::Unavailable => ("Unavailable", "UNAVAILABLE"),
        Code::DataLoss => ("DataLoss", "DATA_LOSS"),
        Code::Unauthenticated => ("Unauthenticated", "UNAUTHENTICATED"),
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let (code, reason, facts) = refusal.nature();
        let details = refusal.details(code, reason, facts);
        Self::with_error_details(code, refusal.message(), details)
    }
}

#[cfg(test)]
mod tests;
