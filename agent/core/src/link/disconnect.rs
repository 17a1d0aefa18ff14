//! How connections end.

use std::time::Duration;

use crate::history::WentBack;

/// Why a connection ended, or could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// The server ended the stream in order.
    Ended,
    /// The transport broke, or the server is unreachable.
    Lost(String),
    /// The versions of the cluster went back, so this agent ended the connection.
    WentBack(WentBack),
    /// Another agent of the same cluster and shard took over.
    Superseded(Successor),
    /// The server refuses this agent: an immediate retry will not help.
    Refused {
        /// The status code and text.
        status: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
}

/// The agent that took over, as the server describes it. Fields that the server leaves out are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Successor {
    /// The other process.
    pub agent_instance: String,
    /// The server's name for its session.
    pub session_id: String,
    /// The number of lease transitions of its lead.
    pub epoch: String,
}
