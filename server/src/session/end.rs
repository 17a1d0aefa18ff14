//! The end of a session.

use tonic::{Code, Status};

use crate::{
    error::{self, Refusal},
    shared::Shared,
};

/// Why a session ended.
#[derive(Debug)]
pub(crate) enum SessionEnd {
    /// The agent closed its half of the stream.
    Closed,
    /// The agent disappeared.
    Gone,
    /// The server ended it.
    Refused(Refusal),
}

impl SessionEnd {
    /// The meaning of a broken inbound stream: an invalid message, or an agent that disappeared.
    pub(super) fn broken(status: &Status, shared: &Shared) -> Self {
        let bad = [
            Code::Internal,
            Code::OutOfRange,
            Code::ResourceExhausted,
            Code::Unimplemented,
        ];
        if bad.contains(&status.code()) {
            let max = shared.config.limits.frame_bytes_max;
            Self::Refused(error::from_transport(status, max))
        } else {
            Self::Gone
        }
    }

    /// The reason for programs.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Closed => "CLOSED_BY_AGENT",
            Self::Gone => "AGENT_GONE",
            Self::Refused(refusal) => refusal.reason(),
        }
    }

    /// The reason for people.
    pub(super) fn why(&self) -> String {
        match self {
            Self::Closed | Self::Gone => String::new(),
            Self::Refused(refusal) => refusal.message(),
        }
    }
}

impl From<Refusal> for SessionEnd {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
