//! The decision server of a world: an honest one, or a malicious one in its place.

use decree_api::v1;
use jiff::Timestamp;

use super::{
    clock::Clock,
    malicious::MaliciousServer,
    server::{Sent, ServerActor},
};
use crate::facts::Told;

/// Either server, with the same interface: see [`ServerActor`].
#[derive(Debug)]
pub enum DecisionServer {
    /// An honest server.
    Honest(Box<ServerActor>),
    /// A malicious server.
    Malicious(Box<MaliciousServer>),
}

impl DecisionServer {
    /// Takes a new connection. Returns whether it is accepted.
    pub fn handle_connected(&mut self, connection: u64) -> bool {
        match self {
            Self::Honest(it) => it.handle_connected(connection),
            Self::Malicious(_) => true,
        }
    }

    /// Takes a frame.
    pub fn handle_frame(&mut self, now: Timestamp, connection: u64, request: v1::ReconcileRequest) {
        match self {
            Self::Honest(it) => it.handle_frame(now, connection, request),
            Self::Malicious(it) => it.handle_frame(now, connection, &request),
        }
    }

    /// Takes the end of the agent's half of a connection; `in_order` if the agent closed it.
    pub fn handle_disconnected(&mut self, now: Timestamp, connection: u64, in_order: bool) {
        match self {
            Self::Honest(it) => it.handle_disconnected(now, connection, in_order),
            Self::Malicious(it) => it.handle_disconnected(connection),
        }
    }

    /// Returns when the server started; a malicious server has no such time.
    pub fn started(&self) -> Timestamp {
        match self {
            Self::Honest(it) => it.started,
            Self::Malicious(_) => Timestamp::UNIX_EPOCH,
        }
    }

    /// Starts a drain; a malicious server drains at any time.
    pub fn handle_drain(&mut self, now: Timestamp) {
        if let Self::Honest(it) = self {
            it.handle_drain(now);
        }
    }

    /// Handles timers that are due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        match self {
            Self::Honest(it) => it.handle_timeout(now),
            Self::Malicious(it) => it.handle_timeout(now),
        }
    }

    /// Returns the next output on one of these connections.
    pub fn poll(&mut self, now: Timestamp, is_of: impl Fn(u64) -> bool) -> Option<Sent> {
        match self {
            Self::Honest(it) => it.poll(now, is_of),
            Self::Malicious(it) => it.poll(is_of),
        }
    }

    /// Returns the notices to people since the last call, by the connections of the sessions.
    pub fn take_told(&mut self) -> Vec<(u64, Told)> {
        match self {
            Self::Honest(it) => it.take_told(),
            Self::Malicious(_) => Vec::new(),
        }
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        match self {
            Self::Honest(it) => it.poll_timeout(),
            Self::Malicious(it) => it.poll_timeout(),
        }
    }

    /// Returns whether the server drains and its process may end.
    pub fn is_drained(&self) -> bool {
        matches!(self, Self::Honest(it) if it.is_drained())
    }

    /// Returns the number of live sessions on these connections.
    pub fn session_count(&self, is_of: impl Fn(u64) -> bool) -> usize {
        match self {
            Self::Honest(it) => it.session_count(is_of),
            Self::Malicious(it) => it.session_count(is_of),
        }
    }

    /// Returns the number of batches in flight, as far as the server counts them.
    pub fn batches_in_flight(&self) -> usize {
        match self {
            Self::Honest(it) => it.batches_in_flight(),
            Self::Malicious(_) => 0,
        }
    }

    /// Returns the clocks of the server, if it uses any.
    pub fn clock_mut(&mut self) -> Option<&mut Clock> {
        match self {
            Self::Honest(it) => Some(&mut it.clock),
            Self::Malicious(_) => None,
        }
    }
}
