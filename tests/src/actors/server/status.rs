//! The end of a session, as its agent sees it.

use agent_core::link::Disconnect;
use server_session::Refusal;

/// Returns the cause that the agent sees when a session ends, as its uplink reads the status.
pub fn disconnect(refusal: Option<&Refusal>) -> Disconnect {
    let Some(refusal) = refusal else {
        return Disconnect::Ended;
    };
    match refusal {
        Refusal::Superseded { .. }
        | Refusal::SequenceGap { .. }
        | Refusal::VersionsWentBack { .. }
        | Refusal::Silent(_)
        | Refusal::OutcomesMissing(_)
        | Refusal::ListMissing(..) => Disconnect::Lost(refusal.to_string()),
        Refusal::Draining { reconnect_after } => Disconnect::Refused {
            status: refusal.to_string(),
            retry_after: Some(*reconnect_after),
        },
        Refusal::Invalid(..)
        | Refusal::Malformed(_)
        | Refusal::HelloExpected
        | Refusal::HelloRepeated
        | Refusal::ProtocolUnsupported { .. }
        | Refusal::CapabilityUnsupported { .. }
        | Refusal::BurstUnsupported { .. }
        | Refusal::EpochTooOld { .. }
        | Refusal::SnapshotNotOpen(_)
        | Refusal::SnapshotCount { .. }
        | Refusal::EventBeforeSnapshot(_)
        | Refusal::NodesUnexpected
        | Refusal::ObjectsExhausted { .. }
        | Refusal::MemoryExhausted { .. } => Disconnect::Refused {
            status: refusal.to_string(),
            retry_after: None,
        },
    }
}
