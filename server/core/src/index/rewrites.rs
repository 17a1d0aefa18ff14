//! The same status, written again and again because somebody else changes it back.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::object::{Span, Status, Timestamp};

/// After this number of writes of the same status in a row, further ones keep an interval.
const AT_ONCE: u32 = 10;
const EVERY: Span = Span::seconds(1);

/// The last written status of a ReplicaSet, by its hash, and how often it was written in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rewrites {
    hash: u64,
    count: u32,
    last: Timestamp,
    /// Whether the last write took effect.
    is_done: bool,
}

impl Rewrites {
    pub(crate) fn note(&mut self, now: Timestamp, status: &Status) {
        let hash = hash(status);
        let count = if hash == self.hash { self.count } else { 0 };
        *self = Self {
            hash,
            count: count.saturating_add(1),
            last: now,
            is_done: false,
        };
    }

    pub(crate) const fn note_done(&mut self) {
        self.is_done = true;
    }

    /// Returns whether the last write was of this status, and took effect.
    pub(crate) fn is_written(&self, status: &Status) -> bool {
        self.is_done && self.hash == hash(status)
    }

    pub(crate) fn held_until(&self, status: &Status) -> Option<Timestamp> {
        let is_same = self.count >= AT_ONCE && self.hash == hash(status);
        is_same.then(|| self.last.plus(EVERY))
    }
}

fn hash(status: &Status) -> u64 {
    let mut hasher = DefaultHasher::new();
    status.hash(&mut hasher);
    hasher.finish()
}
