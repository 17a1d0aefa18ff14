//! How a session ended.

use crate::error::Refusal;

/// How a session ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The agent closed its half of the stream.
    Closed,
    /// The agent is gone.
    Gone,
    /// The server ended it.
    Refused(Refusal),
}

// === impl End ===

impl End {
    /// Returns the word for programs.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Closed => "CLOSED_BY_AGENT",
            Self::Gone => "AGENT_GONE",
            Self::Refused(refusal) => refusal.reason(),
        }
    }

    /// Returns the words for people.
    pub(super) fn why(&self) -> String {
        match self {
            Self::Closed | Self::Gone => String::new(),
            Self::Refused(refusal) => refusal.message(),
        }
    }
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
