//! Why a session is refused or ended: a value that the shell turns into a status.

use std::time::Duration;

use decree_core::{Kind, ResourceVersion};
use thiserror::Error;

use crate::wire::{MalformedFrame, Violation};

/// A refusal with its cause. The message is for people, [`Refusal::reason`] for programs.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// Fields break the contract: the first of them, and the number of further ones.
    #[error("{}", summary(.0, *.1))]
    Invalid(Vec<Violation>, usize),
    /// The bytes are no frame.
    #[error("the message cannot be decoded: {0}")]
    Malformed(#[from] MalformedFrame),
    /// The first frame is no Hello.
    #[error("the first frame of a session must be a Hello")]
    HelloExpected,
    /// A later frame is a Hello.
    #[error("a session has only one Hello")]
    HelloRepeated,
    /// No common protocol.
    #[error("this server supports protocol version {supported}; the agent supports {min} to {max}")]
    ProtocolUnsupported {
        /// The lowest version of the agent.
        min: i32,
        /// The highest version of the agent.
        max: i32,
        /// The version of this server.
        supported: i32,
    },
    /// Unknown capabilities, or an unknown mode.
    #[error("unsupported capabilities: {}{}", .first.join(", "), and_more(*.more))]
    CapabilityUnsupported {
        /// The first of them.
        first: Vec<String>,
        /// The number of further ones.
        more: usize,
    },
    /// A burst that would not fit a frame.
    #[error("a burst of {burst} operations does not fit a frame; at most {max} do")]
    BurstUnsupported {
        /// The burst.
        burst: u32,
        /// The number of operations that fit.
        max: usize,
    },
    /// A newer session of the same cluster and shard is open.
    #[error("epoch {epoch} is too old: a session with epoch {newest} is open")]
    EpochTooOld {
        /// The refused epoch.
        epoch: i64,
        /// The epoch of the open session.
        newest: i64,
    },
    /// A newer session took over.
    #[error("superseded by session {by} of agent {agent} with epoch {epoch}")]
    Superseded {
        /// The id of the newer session.
        by: String,
        /// The agent's process.
        agent: String,
        /// Its epoch.
        epoch: i64,
    },
    /// A frame number is missing or came twice.
    #[error("expected frame {expected}, received frame {got}")]
    SequenceGap {
        /// The expected number.
        expected: u64,
        /// The received number.
        got: u64,
    },
    /// Objects or an end without a begin.
    #[error("no snapshot of {} is open", noun(*.0))]
    SnapshotNotOpen(Kind),
    /// A list named another number of objects than its count.
    #[error("the snapshot of {} ended with a count of {count} after {arrived} objects", noun(*kind))]
    SnapshotCount {
        /// The kind.
        kind: Kind,
        /// Its count.
        count: i64,
        /// The number of objects that it named.
        arrived: i64,
    },
    /// A list is older than the last one of its kind, or lists have been older than a write for a minute: it is of another cluster, or the
    /// cluster was restored to an earlier state.
    #[error(
        "the versions of the cluster went back: a list of {} has version {}, and the cluster had reached {}",
        noun(*kind), .got.0, .last.0
    )]
    VersionsWentBack {
        /// The kind.
        kind: Kind,
        /// The version that the cluster had reached.
        last: ResourceVersion,
        /// The version of the new list.
        got: ResourceVersion,
    },
    /// A change before the first list of its kind.
    #[error("received an event of {} before their first snapshot", noun(*.0))]
    EventBeforeSnapshot(Kind),
    /// The agent was silent for too long.
    #[error("received nothing from the agent for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The agent reports no outcome of any operation in flight.
    #[error("received no outcome of any operation in flight for {} s", .0.as_secs_f64())]
    OutcomesMissing(Duration),
    /// The agent has not begun a list that a Resync asked for.
    #[error("received no list of {} within {} s of a Resync", noun(*.0), .1.as_secs_f64())]
    ListMissing(Kind, Duration),
    /// More objects than the limit of a session, with nodes.
    #[error("limit of {max} objects reached")]
    ObjectsExhausted {
        /// The limit.
        max: usize,
    },
    /// Nodes of an agent without the capability.
    #[error("received nodes; the Hello does not ask for the capability nodes")]
    NodesUnexpected,
    /// More memory than the limit of a session.
    #[error("limit of {max} bytes of memory for a session reached")]
    MemoryExhausted {
        /// The limit.
        max: usize,
    },
    /// The server is draining.
    #[error("the server is draining")]
    Draining {
        /// When the agent may connect to another server.
        reconnect_after: Duration,
    },
}

impl Refusal {
    /// The refusal of one field.
    pub fn field(violation: Violation) -> Self {
        Self::Invalid(vec![violation], 0)
    }

    /// The word for programs; docs/protocol.md explains each.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(..) => "INVALID_FIELD",
            Self::Malformed(_) => "MALFORMED_MESSAGE",
            Self::HelloExpected => "HELLO_EXPECTED",
            Self::HelloRepeated => "HELLO_REPEATED",
            Self::ProtocolUnsupported { .. } => "PROTOCOL_UNSUPPORTED",
            Self::CapabilityUnsupported { .. } => "CAPABILITY_UNSUPPORTED",
            Self::BurstUnsupported { .. } => "BURST_UNSUPPORTED",
            Self::EpochTooOld { .. } => "EPOCH_TOO_OLD",
            Self::Superseded { .. } => "SESSION_SUPERSEDED",
            Self::SequenceGap { .. } => "SEQUENCE_GAP",
            Self::SnapshotNotOpen(_) => "SNAPSHOT_NOT_OPEN",
            Self::SnapshotCount { .. } => "SNAPSHOT_COUNT_MISMATCH",
            Self::VersionsWentBack { .. } => "VERSIONS_WENT_BACK",
            Self::EventBeforeSnapshot(_) => "EVENT_BEFORE_SNAPSHOT",
            Self::Silent(_) => "AGENT_SILENT",
            Self::OutcomesMissing(_) => "OUTCOMES_MISSING",
            Self::ListMissing(..) => "LIST_MISSING",
            Self::NodesUnexpected => "NODES_UNEXPECTED",
            Self::ObjectsExhausted { .. } | Self::MemoryExhausted { .. } => "LIMIT_REACHED",
            Self::Draining { .. } => "SERVER_DRAINING",
        }
    }

    /// The details of the reason, for programs.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::ProtocolUnsupported { supported, .. } => {
                vec![("supported", supported.to_string())]
            }
            Self::BurstUnsupported { max, .. } => vec![("max", max.to_string())],
            Self::EpochTooOld { newest, .. } => vec![("newest", newest.to_string())],
            Self::Superseded { by, agent, epoch } => vec![
                ("session_id", by.clone()),
                ("agent_instance", agent.clone()),
                ("epoch", epoch.to_string()),
            ],
            Self::SequenceGap { expected, got } => {
                vec![("expected", expected.to_string()), ("got", got.to_string())]
            }
            Self::SnapshotCount { count, arrived, .. } => vec![
                ("count", count.to_string()),
                ("arrived", arrived.to_string()),
            ],
            Self::VersionsWentBack { last, got, .. } => {
                vec![("last", last.0.to_string()), ("got", got.0.to_string())]
            }
            Self::ObjectsExhausted { max } => {
                vec![("limit", "objects".to_owned()), ("max", max.to_string())]
            }
            Self::MemoryExhausted { max } => vec![
                ("limit", "session_memory".to_owned()),
                ("max", max.to_string()),
            ],
            Self::Invalid(..)
            | Self::Malformed(_)
            | Self::HelloExpected
            | Self::HelloRepeated
            | Self::CapabilityUnsupported { .. }
            | Self::SnapshotNotOpen(_)
            | Self::EventBeforeSnapshot(_)
            | Self::NodesUnexpected
            | Self::Silent(_)
            | Self::OutcomesMissing(_)
            | Self::ListMissing(..)
            | Self::Draining { .. } => Vec::new(),
        }
    }
}

/// Returns the first violation in words, and the number of further ones: the rest of `violations`, and `more` that are only counted.
fn summary(violations: &[Violation], more: usize) -> String {
    let Some((first, rest)) = violations.split_first() else {
        return "a field is invalid".to_owned();
    };
    match rest.len() + more {
        0 => first.to_string(),
        more => format!("{first}; and {more} more"),
    }
}

fn and_more(more: usize) -> String {
    if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    }
}

const fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "pods",
        Kind::ReplicaSet => "replica sets",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Fault;

    #[test]
    fn refusals_name_the_kind_and_the_first_field() {
        let of = |kind| Refusal::SnapshotNotOpen(kind).to_string();
        assert_eq!(of(Kind::Pod), "no snapshot of pods is open");
        assert_eq!(of(Kind::ReplicaSet), "no snapshot of replica sets is open");
        let violation = |field: &str| Violation::new(field, Fault::Required, "is required");
        let one = Refusal::field(violation("hello.cluster_uid")).to_string();
        assert_eq!(one, violation("hello.cluster_uid").to_string());
        let three = Refusal::Invalid(["a", "b"].map(violation).into(), 1).to_string();
        assert_eq!(three, format!("{}; and 2 more", violation("a")));
    }
}
