//! What came back.

use std::{any::Any, collections::BTreeSet};

/// What an attack has seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// How its streams, calls or connections ended, in words.
    pub(crate) ends: BTreeSet<String>,
    /// How many bytes of messages came.
    pub(crate) bytes: usize,
    /// Whether a session was proved to be served.
    pub(crate) proved: bool,
    /// What is kept open until the process has ended.
    pub(crate) held: Vec<Box<dyn Any + Send>>,
}

// === impl Seen ===

impl Seen {
    /// Returns what is seen of something that came to this end.
    pub(crate) fn ended(end: impl Into<String>) -> Self {
        Self {
            ends: [end.into()].into(),
            ..Self::default()
        }
    }

    /// Takes what another part of the attack has seen.
    pub(crate) fn add(&mut self, other: Self) {
        self.ends.extend(other.ends);
        self.bytes += other.bytes;
        self.proved |= other.proved;
        self.held.extend(other.held);
    }
}
