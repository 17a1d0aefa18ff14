//! Commands of the agent to its shell.

use crate::{
    api::{Call, Kind},
    history::VersionId,
    link::LinkCommand,
    watch::WatchCommand,
};

/// A command to the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentCommand {
    /// A command about the connection to the server.
    Link(LinkCommand),
    /// A command about the list and watch of a kind.
    Watch(Kind, WatchCommand),
    /// Ask for the newest version of a kind, answered by [`Agent::handle_version`](super::Agent::handle_version).
    AskVersion(Kind, VersionId),
    /// A call to the cluster, answered by [`Agent::handle_reply`](super::Agent::handle_reply).
    Call(Call),
}
