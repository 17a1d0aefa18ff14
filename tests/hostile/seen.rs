//! The observations of an attack.

use std::{any::Any, collections::BTreeSet};

use tokio::task::JoinSet;

/// The observations of an attack.
#[derive(Default)]
pub(crate) struct Seen {
    /// The ends of its streams, calls or connections, in words.
    pub(crate) ends: BTreeSet<String>,
    /// The number of received bytes of messages.
    pub(crate) bytes: usize,
    /// Whether a session was proved to be served.
    pub(crate) proved: bool,
    /// The connections to hold until the process has ended.
    pub(crate) held: Vec<Box<dyn Any + Send>>,
}

/// The number of sessions, calls or connections of an attack that gives none.
pub(crate) const fn one() -> u64 {
    1
}

impl Seen {
    /// The observation of this end.
    pub(crate) fn ended(end: impl Into<String>) -> Self {
        Self {
            ends: [end.into()].into(),
            ..Self::default()
        }
    }

    /// Waits for parts of an attack and adds their observations.
    pub(crate) async fn add_all(&mut self, mut parts: JoinSet<Self>) {
        while let Some(part) = parts.join_next().await {
            self.add(part.expect("a part of an attack does not panic"));
        }
    }

    /// Adds the observations of another part of the attack.
    pub(crate) fn add(&mut self, other: Self) {
        self.ends.extend(other.ends);
        self.bytes += other.bytes;
        self.proved |= other.proved;
        self.held.extend(other.held);
    }
}
