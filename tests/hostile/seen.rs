//! What came back.

use std::{any::Any, collections::BTreeSet};

use tokio::task::JoinSet;

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

    /// Waits for parts of an attack and takes what they have seen.
    pub(crate) async fn add_all(&mut self, mut parts: JoinSet<Self>) {
        while let Some(part) = parts.join_next().await {
            self.add(part.expect("a part of an attack does not panic"));
        }
    }

    /// Opens so many connections at once; returns what all of them have seen.
    pub(crate) async fn of_connections<C>(count: u64, connection: impl Fn() -> C) -> Self
    where
        C: Future<Output = Self> + Send + 'static,
    {
        let mut seen = Self::default();
        seen.add_all((0..count).map(|_| connection()).collect())
            .await;
        seen
    }

    /// Takes what another part of the attack has seen.
    pub(crate) fn add(&mut self, other: Self) {
        self.ends.extend(other.ends);
        self.bytes += other.bytes;
        self.proved |= other.proved;
        self.held.extend(other.held);
    }
}
