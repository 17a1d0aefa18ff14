//! The machine of an agent: the agent of this project, or a third-party agent.

use agent_core::{
    agent::{Agent, AgentCommand},
    api::{ApiError, CallId, Kind, Reply},
    history::VersionId,
    link::Disconnect,
    report::Report,
    watch::{List, WatchEvent, WatchId},
};
use decree::v1;
use jiff::Timestamp;

use super::foreign::ForeignAgent;

/// Either machine, with the same interface: see [`Agent`].
#[derive(Debug)]
pub enum Machine {
    /// The agent of this project.
    Ours(Box<Agent>),
    /// A third-party agent.
    Foreign(Box<ForeignAgent>),
}

/// Calls a method that both machines have.
macro_rules! either {
    ($self:ident, $machine:ident => $call:expr) => {
        match $self {
            Self::Ours($machine) => $call,
            Self::Foreign($machine) => $call,
        }
    };
}

// === impl Machine ===

impl Machine {
    /// Takes an open stream to the server.
    pub fn handle_connected(&mut self, now: Timestamp) {
        either!(self, it => it.handle_connected(now));
    }

    /// Takes the end of the connection, or a failed attempt to connect.
    pub fn handle_disconnected(&mut self, now: Timestamp, cause: Disconnect) {
        match self {
            Self::Ours(it) => it.handle_disconnected(now, cause),
            Self::Foreign(it) => it.handle_disconnected(now, &cause),
        }
    }

    /// Takes a frame from the server.
    pub fn handle_frame(&mut self, now: Timestamp, frame: v1::ReconcileResponse) {
        either!(self, it => it.handle_frame(now, frame));
    }

    /// Takes the answer to a list.
    pub fn handle_listed(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        list: Result<List, ApiError>,
    ) {
        either!(self, it => it.handle_listed(now, kind, id, list));
    }

    /// Takes an event of a watch.
    pub fn handle_watch_event(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        event: WatchEvent,
    ) {
        match self {
            Self::Ours(it) => it.handle_watch_event(now, kind, id, event),
            Self::Foreign(it) => it.handle_watch_event(now, kind, id, event),
        }
    }

    /// Takes the end of a watch, or its refusal.
    pub fn handle_watch_closed(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        error: Option<&ApiError>,
    ) {
        either!(self, it => it.handle_watch_closed(now, kind, id, error));
    }

    /// Takes the newest version of a kind, which a third-party agent does not request.
    pub fn handle_version(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: VersionId,
        answer: &Result<String, ApiError>,
    ) {
        match self {
            Self::Ours(it) => it.handle_version(now, kind, id, answer),
            Self::Foreign(_) => {}
        }
    }

    /// Takes the answer to a call.
    pub fn handle_reply(&mut self, now: Timestamp, id: CallId, result: Result<Reply, ApiError>) {
        either!(self, it => it.handle_reply(now, id, result));
    }

    /// Starts an orderly stop, which no world requests of a third-party agent.
    pub fn handle_shutdown(&mut self) {
        match self {
            Self::Ours(it) => it.handle_shutdown(),
            Self::Foreign(_) => {}
        }
    }

    /// Returns whether it has stopped.
    #[must_use]
    pub fn is_stopped(&self, now: Timestamp) -> bool {
        match self {
            Self::Ours(it) => it.is_stopped(now),
            Self::Foreign(_) => false,
        }
    }

    /// Handles timers that are due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        either!(self, it => it.handle_timeout(now));
    }

    /// Returns the next command.
    pub fn poll_command(&mut self, now: Timestamp) -> Option<AgentCommand> {
        either!(self, it => it.poll_command(now))
    }

    /// Returns the next frame to send.
    pub fn poll_frame(&mut self, now: Timestamp) -> Option<v1::ReconcileRequest> {
        either!(self, it => it.poll_frame(now))
    }

    /// Returns the next report.
    pub fn poll_report(&mut self) -> Option<Report> {
        either!(self, it => it.poll_report())
    }

    /// Returns the deadline of [`handle_timeout`](Self::handle_timeout) and the polls without other input.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        either!(self, it => it.poll_timeout())
    }

    /// Returns whether a list of a kind uses `resourceVersion=0`, so that a cache may answer.
    #[must_use]
    pub fn lists_from_cache(&self, kind: Kind) -> bool {
        match self {
            Self::Ours(_) => false,
            Self::Foreign(it) => it.lists_from_cache(kind),
        }
    }

    /// Returns whether the agent takes lists in pages.
    #[must_use]
    pub const fn takes_pages(&self) -> bool {
        matches!(self, Self::Ours(_))
    }

    /// Returns the id of the open session.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        either!(self, it => it.session_id())
    }
}
