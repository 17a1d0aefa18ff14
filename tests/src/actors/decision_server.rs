//! What answers the agents: a server, or one gone bad in its place.

use decree::v1;
use jiff::Timestamp;

use super::{
    clock::Clock,
    malicious::MaliciousServer,
    server::{Sent, ServerActor},
};
use crate::facts::Told;

/// Either of them, driven alike: see [`ServerActor`].
#[derive(Debug)]
pub enum DecisionServer {
    /// A server.
    Honest(Box<ServerActor>),
    /// One gone bad.
    Malicious(Box<MaliciousServer>),
}

// === impl DecisionServer ===

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

    /// Takes the end of the agent's half of a connection; `in_order` where the agent closed it.
    pub fn handle_disconnected(&mut self, now: Timestamp, connection: u64, in_order: bool) {
        match self {
            Self::Honest(it) => it.handle_disconnected(now, connection, in_order),
            Self::Malicious(it) => it.handle_disconnected(connection),
        }
    }

    /// Begins to drain; a malicious server does so when it likes.
    pub fn handle_drain(&mut self, now: Timestamp) {
        if let Self::Honest(it) = self {
            it.handle_drain(now);
        }
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        match self {
            Self::Honest(it) => it.handle_timeout(now),
            Self::Malicious(it) => it.handle_timeout(now),
        }
    }

    /// Returns what leaves next on one of these connections.
    pub fn poll(&mut self, now: Timestamp, is_of: impl Fn(u64) -> bool) -> Option<Sent> {
        match self {
            Self::Honest(it) => it.poll(now, is_of),
            Self::Malicious(it) => it.poll(is_of),
        }
    }

    /// Returns what people were told since this was asked last, by the connections of the sessions.
    pub fn take_told(&mut self) -> Vec<(u64, Told)> {
        match self {
            Self::Honest(it) => it.take_told(),
            Self::Malicious(_) => Vec::new(),
        }
    }

    /// Returns when [`Self::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        match self {
            Self::Honest(it) => it.poll_timeout(),
            Self::Malicious(it) => it.poll_timeout(),
        }
    }

    /// Returns whether the server drains and its process may end.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        matches!(self, Self::Honest(it) if it.is_drained())
    }

    /// Returns how many sessions live on these connections.
    pub fn session_count(&self, is_of: impl Fn(u64) -> bool) -> usize {
        match self {
            Self::Honest(it) => it.session_count(is_of),
            Self::Malicious(it) => it.session_count(is_of),
        }
    }

    /// Returns how many batches are in flight, as far as the server keeps account.
    #[must_use]
    pub fn batches_in_flight(&self) -> usize {
        match self {
            Self::Honest(it) => it.batches_in_flight(),
            Self::Malicious(_) => 0,
        }
    }

    /// Returns its clocks, if it goes by any.
    pub fn clock_mut(&mut self) -> Option<&mut Clock> {
        match self {
            Self::Honest(it) => Some(&mut it.clock),
            Self::Malicious(_) => None,
        }
    }
}
