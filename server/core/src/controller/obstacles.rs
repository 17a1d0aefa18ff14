//! What held back the last attempt of each ReplicaSet, until an attempt succeeds.

use std::collections::BTreeMap;

use crate::{index::SetId, reason::Reason};

/// How much is kept of the words of an agent or a cluster.
const WORDS_MAX: usize = 1_024;
/// What an obstacle takes in memory, beside its words.
const OBSTACLE_BYTES: usize = 100;

/// At most one obstacle for each ReplicaSet.
#[derive(Clone, Debug, Default)]
pub(super) struct Obstacles {
    by_set: BTreeMap<SetId, Reason>,
    bytes: usize,
}

// === impl Obstacles ===

impl Obstacles {
    /// Keeps an obstacle in the place of an older one.
    pub(super) fn insert(&mut self, id: SetId, mut obstacle: Reason) {
        let words = obstacle.detail.to_mut();
        words.truncate(words.floor_char_boundary(WORDS_MAX));
        words.shrink_to_fit();
        self.remove(id);
        self.bytes += bytes(&obstacle);
        self.by_set.insert(id, obstacle);
    }

    /// Forgets what held a ReplicaSet back.
    pub(super) fn remove(&mut self, id: SetId) {
        if let Some(obstacle) = self.by_set.remove(&id) {
            self.bytes -= bytes(&obstacle);
        }
    }

    /// Returns what held a ReplicaSet back.
    pub(super) fn get(&self, id: SetId) -> Option<&Reason> {
        self.by_set.get(&id)
    }

    /// Returns about how many bytes all of it takes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

fn bytes(obstacle: &Reason) -> usize {
    OBSTACLE_BYTES + obstacle.detail.len()
}
