//! Values kept once, and known by small numbers: equal states of a machine, and equal messages, are one.
//!
//! A state of the world is then a few numbers. The step of a machine with an input is computed once, for all states of the world.

use std::{collections::HashMap, fmt::Debug, rc::Rc};

use agent_core::{
    api::{ApiError, Reply, Request},
    lease::{Command, Record},
    link::Disconnect,
    watch::{List, WatchEvent},
};
use decree::v1;

use super::digest::digest;

/// The number of a value in its [`Interner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u32);

/// Values of one type, each kept once.
#[derive(Debug)]
pub struct Interner<T> {
    values: Vec<Rc<T>>,
    ids: HashMap<u128, Id>,
}

/// All messages in any state.
#[derive(Debug, Default)]
pub struct Messages {
    /// Frames of agents.
    pub to_server: Interner<v1::ReconcileRequest>,
    /// Frames of servers.
    pub to_agent: Interner<v1::ReconcileResponse>,
    /// How connections end.
    pub ends: Interner<Disconnect>,
    /// Calls.
    pub requests: Interner<Request>,
    /// Answers to calls.
    pub replies: Interner<Result<Reply, ApiError>>,
    /// Answers to lists.
    pub lists: Interner<List>,
    /// Events of watches.
    pub events: Interner<WatchEvent>,
    /// Requests for the Lease.
    pub lease_commands: Interner<Command>,
    /// Answers to requests for the Lease.
    pub lease_answers: Interner<Result<Record, ApiError>>,
}

// === impl Interner ===

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            ids: HashMap::new(),
        }
    }
}

impl<T: Debug> Interner<T> {
    /// Keeps a value, and returns its number, or the number of an equal value.
    pub fn intern(&mut self, value: T) -> Id {
        let digest = digest(&value);
        let next = Id(u32::try_from(self.values.len()).expect("fewer values than states"));
        let id = *self.ids.entry(digest).or_insert(next);
        if id == next {
            self.values.push(Rc::new(value));
        }
        id
    }

    /// Returns a value.
    #[must_use]
    pub fn get(&self, id: Id) -> &Rc<T> {
        &self.values[id.0 as usize]
    }
}
