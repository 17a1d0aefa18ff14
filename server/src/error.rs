//! Everything that the server refuses, and the one place where a `tonic::Status` is written.
//!
//! Each refusal carries a `google.rpc.ErrorInfo` with the domain `decree.dev` and a reason that docs/protocol.md explains;
//! beside it stand the details that fit: `BadRequest`, `PreconditionFailure`, `QuotaFailure`, `ResourceInfo`, `RetryInfo`.
//! However large the message was that is refused, its refusal fits the headers that common clients take ([`bounds`]).

use std::{collections::HashMap, fmt, time::Duration};

use server_core::Kind;
use thiserror::Error;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, PreconditionViolation, StatusExt};

use self::bounds::{MESSAGE_MAX, TEXT_MAX, cut, fitting};
use crate::wire::Violation;

mod bounds;

/// The domain of every `ErrorInfo`.
pub const DOMAIN: &str = "decree.dev";

/// How long a client that met a limit waits before it tries again.
const OVERLOAD_RETRY: Duration = Duration::from_secs(1);

/// What is refused and why. The message is the status' message.
#[derive(Clone, Debug, Error)]
pub(crate) enum Refusal {
    #[error("the message cannot be decoded: {detail}")]
    Malformed { detail: String },
    #[error("the message is larger than {max} bytes")]
    TooLarge { max: usize },
    #[error("{}", summary(.0))]
    Invalid(Vec<Violation>),
    #[error("a session begins with a hello")]
    HelloExpected,
    #[error("a session has one hello")]
    HelloRepeated,
    #[error("no hello came within {} s", .0.as_secs_f64())]
    HelloTimeout(Duration),
    #[error("the protocol is {supported}; the agent speaks {min} to {max}")]
    ProtocolUnsupported { min: i32, max: i32, supported: i32 },
    #[error("not known here: {}{}", .first.join(", "), and_more(*.more))]
    CapabilityUnsupported { first: Vec<String>, more: usize },
    #[error("a burst of {burst} operations does not fit a frame; at most {max} do")]
    BurstUnsupported { burst: u32, max: usize },
    #[error("a session with epoch {newest} is open; epoch {epoch} is older")]
    EpochTooOld { epoch: i64, newest: i64 },
    #[error("session {by} of agent {agent} with epoch {epoch} took over")]
    Superseded {
        by: String,
        agent: String,
        epoch: i64,
    },
    #[error("frame {expected} was expected and {got} came")]
    SequenceGap { expected: u64, got: u64 },
    #[error("no snapshot of {} is open", noun(*.0))]
    SnapshotNotOpen(Kind),
    #[error("the snapshot of {} named {arrived} objects and says {count}", noun(*kind))]
    SnapshotCount {
        kind: Kind,
        count: i64,
        arrived: i64,
    },
    #[error("an event of {} came before their first snapshot", noun(*.0))]
    EventBeforeSnapshot(Kind),
    #[error("nothing was heard of the agent for {} s", .0.as_secs_f64())]
    Silent(Duration),
    #[error("the agent read nothing for {} s", .0.as_secs_f64())]
    SlowReader(Duration),
    #[error("the limit of {max} {what} is reached")]
    Exhausted { what: Limit, max: usize },
    #[error("the server is draining")]
    Draining { reconnect_after: Duration },
    #[error("the deadline has passed")]
    DeadlineExceeded,
    #[error("more than one cluster is connected; name one")]
    ClusterRequired,
    #[error("cluster {0:?} is not connected")]
    ClusterUnknown(String),
    #[error("replica set {namespace}/{name} is not known")]
    ReplicaSetUnknown { namespace: String, name: String },
    #[error("the session has ended")]
    SessionEnded,
    #[error("the session failed and was ended")]
    Panicked,
    #[error("{message}")]
    Transport { code: Code, message: String },
}

/// What is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Sessions,
    Objects,
    Watchers,
}

fn summary(violations: &[Violation]) -> String {
    match violations {
        [] => "a field is invalid".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first}; and {} more", rest.len()),
    }
}

fn and_more(more: usize) -> String {
    if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    }
}

fn successor(session: &str, agent: &str, epoch: i64) -> Vec<(&'static str, String)> {
    vec![
        ("session_id", session.to_owned()),
        ("agent_instance", agent.to_owned()),
        ("epoch", epoch.to_string()),
    ]
}

const fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "pods",
        Kind::ReplicaSet => "replica sets",
    }
}

// === impl Limit ===

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sessions => "sessions",
            Self::Objects => "objects",
            Self::Watchers => "watchers",
        })
    }
}

// === impl Refusal ===

impl Refusal {
    /// Returns the refusal of one field.
    pub(crate) fn field(violation: Violation) -> Self {
        Self::Invalid(vec![violation])
    }

    /// Returns the word for programs: `ErrorInfo.reason`.
    pub(crate) fn reason(&self) -> &'static str {
        self.nature().1
    }

    /// Returns the words for people, cut to what a status may carry.
    pub(crate) fn message(&self) -> String {
        cut(&self.to_string(), MESSAGE_MAX)
    }

    /// Returns how long to wait before the same is worth trying again, where it is.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        if let Self::Draining { reconnect_after } = self {
            return Some(*reconnect_after);
        }
        let passes = matches!(
            self,
            Self::Exhausted {
                what: Limit::Sessions | Limit::Watchers,
                ..
            } | Self::SessionEnded
        );
        passes.then_some(OVERLOAD_RETRY)
    }

    /// Returns the code, the reason, and the facts that go with it.
    fn nature(&self) -> (Code, &'static str, Vec<(&'static str, String)>) {
        use Code::{
            Aborted, DeadlineExceeded, FailedPrecondition, Internal, InvalidArgument, NotFound,
            OutOfRange, ResourceExhausted, Unavailable,
        };
        match self {
            Self::Malformed { .. } => (InvalidArgument, "MALFORMED_MESSAGE", vec![]),
            Self::TooLarge { max } => (
                OutOfRange,
                "MESSAGE_TOO_LARGE",
                vec![("max_bytes", max.to_string())],
            ),
            Self::Invalid(violations) => {
                let more = violations.len() - named(violations);
                (InvalidArgument, "INVALID_FIELD", omitted(more))
            }
            Self::HelloExpected => (FailedPrecondition, "HELLO_EXPECTED", vec![]),
            Self::HelloRepeated => (FailedPrecondition, "HELLO_REPEATED", vec![]),
            Self::HelloTimeout(_) => (DeadlineExceeded, "HELLO_TIMEOUT", vec![]),
            Self::ProtocolUnsupported { supported, .. } => (
                FailedPrecondition,
                "PROTOCOL_UNSUPPORTED",
                vec![("supported", supported.to_string())],
            ),
            Self::CapabilityUnsupported { more, .. } => {
                (FailedPrecondition, "CAPABILITY_UNSUPPORTED", omitted(*more))
            }
            Self::BurstUnsupported { max, .. } => (
                FailedPrecondition,
                "BURST_UNSUPPORTED",
                vec![("max", max.to_string())],
            ),
            Self::EpochTooOld { newest, .. } => (
                FailedPrecondition,
                "EPOCH_TOO_OLD",
                vec![("newest", newest.to_string())],
            ),
            Self::Superseded { by, agent, epoch } => {
                let facts = successor(by, agent, *epoch);
                (Aborted, "SESSION_SUPERSEDED", facts)
            }
            Self::SequenceGap { expected, got } => {
                let facts = vec![("expected", expected.to_string()), ("got", got.to_string())];
                (Aborted, "SEQUENCE_GAP", facts)
            }
            Self::SnapshotNotOpen(_) => (FailedPrecondition, "SNAPSHOT_NOT_OPEN", vec![]),
            Self::SnapshotCount { count, arrived, .. } => {
                let facts = vec![
                    ("count", count.to_string()),
                    ("arrived", arrived.to_string()),
                ];
                (FailedPrecondition, "SNAPSHOT_COUNT_MISMATCH", facts)
            }
            Self::EventBeforeSnapshot(_) => (FailedPrecondition, "EVENT_BEFORE_SNAPSHOT", vec![]),
            Self::Silent(_) => (DeadlineExceeded, "AGENT_SILENT", vec![]),
            Self::SlowReader(_) => (DeadlineExceeded, "AGENT_NOT_READING", vec![]),
            Self::Exhausted { what, max } => {
                let facts = vec![("limit", what.to_string()), ("max", max.to_string())];
                (ResourceExhausted, "LIMIT_REACHED", facts)
            }
            Self::Draining { .. } => (Unavailable, "SERVER_DRAINING", vec![]),
            Self::DeadlineExceeded => (DeadlineExceeded, "DEADLINE_EXCEEDED", vec![]),
            Self::ClusterRequired => (InvalidArgument, "CLUSTER_REQUIRED", vec![]),
            Self::ClusterUnknown(_) => (NotFound, "CLUSTER_UNKNOWN", vec![]),
            Self::ReplicaSetUnknown { .. } => (NotFound, "REPLICA_SET_UNKNOWN", vec![]),
            Self::SessionEnded => (Unavailable, "SESSION_ENDED", vec![]),
            Self::Panicked => (Internal, "INTERNAL_FAILURE", vec![]),
            Self::Transport { code, .. } => (*code, transport_reason(*code), vec![]),
        }
    }

    fn details(&self, code: Code, reason: &str, facts: Vec<(&str, String)>) -> ErrorDetails {
        let metadata: HashMap<_, _> = facts
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        let mut details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
        let said = cut(&self.to_string(), TEXT_MAX);
        if let Self::Invalid(violations) = self {
            let first = violations.iter().take(named(violations));
            details.set_bad_request(first.map(field_violation).collect::<Vec<_>>());
        } else if let Self::ClusterRequired = self {
            details.add_bad_request_violation("cluster", said);
        } else if let Self::Exhausted { what, .. } = self {
            details.add_quota_failure_violation(what.to_string(), said);
        } else if let Self::ClusterUnknown(cluster) = self {
            details.set_resource_info("Cluster", cut(cluster, TEXT_MAX), "", said);
        } else if let Self::ReplicaSetUnknown { namespace, name } = self {
            let name = cut(&format!("{namespace}/{name}"), TEXT_MAX);
            details.set_resource_info("ReplicaSet", name, "", said);
        } else if let Self::CapabilityUnsupported { first, .. } = self {
            let violation = |name| PreconditionViolation::new(reason, name, "is not known here");
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

/// Returns what a status that tonic wrote by itself amounts to here. Its `INTERNAL` is about a message that it cannot decode:
/// the peer's fault, not the server's.
pub(crate) fn from_transport(status: &Status, max_bytes: usize) -> Refusal {
    let (code, message) = (status.code(), status.message().to_owned());
    if code == Code::OutOfRange {
        Refusal::TooLarge { max: max_bytes }
    } else if code == Code::Internal {
        Refusal::Malformed { detail: message }
    } else {
        Refusal::Transport { code, message }
    }
}

/// Returns how many of the violations a status names.
fn named(violations: &[Violation]) -> usize {
    let text = |text: &str| text.len().min(TEXT_MAX);
    let sizes = violations.iter().map(|violation| {
        text(&violation.field) + text(&violation.description) + violation.fault.as_str().len()
    });
    fitting(sizes)
}

/// Returns the fact that entries of a list are left out.
fn omitted(more: usize) -> Vec<(&'static str, String)> {
    let more = (more > 0).then(|| ("omitted", more.to_string()));
    more.into_iter().collect()
}

fn field_violation(violation: &Violation) -> FieldViolation {
    let text = |text: &str| cut(text, TEXT_MAX);
    let mut detail = FieldViolation::new(text(&violation.field), text(&violation.description));
    violation.fault.as_str().clone_into(&mut detail.reason);
    detail
}

const fn transport_reason(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "MESSAGE_TOO_LARGE",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL_FAILURE",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
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
