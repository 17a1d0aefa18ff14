//! The obstacle to the last attempt of each ReplicaSet, until an attempt succeeds.

use std::collections::BTreeMap;

use crate::{index::SetId, reason::Reason};

/// The maximum size kept of a message of an agent or a cluster.
const WORDS_MAX: usize = 1_024;
/// The memory of an obstacle in bytes, without its message.
const OBSTACLE_BYTES: usize = 100;

/// At most one obstacle for each ReplicaSet.
#[derive(Clone, Debug, Default)]
pub(super) struct Obstacles {
    by_set: BTreeMap<SetId, Reason>,
    bytes: usize,
}

// === impl Obstacles ===

impl Obstacles {
    /// Replaces an older obstacle.
    pub(super) fn insert(&mut self, id: SetId, mut obstacle: Reason) {
        let words = obstacle.detail.to_mut();
        words.truncate(words.floor_char_boundary(WORDS_MAX));
        words.shrink_to_fit();
        self.remove(id);
        self.bytes += bytes(&obstacle);
        self.by_set.insert(id, obstacle);
    }

    pub(super) fn remove(&mut self, id: SetId) {
        if let Some(obstacle) = self.by_set.remove(&id) {
            self.bytes -= bytes(&obstacle);
        }
    }

    pub(super) fn get(&self, id: SetId) -> Option<&Reason> {
        self.by_set.get(&id)
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

fn bytes(obstacle: &Reason) -> usize {
    OBSTACLE_BYTES + obstacle.detail.len()
}
