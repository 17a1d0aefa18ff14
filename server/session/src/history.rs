//! The last decisions of a session, for inspection.

use std::{collections::VecDeque, sync::Arc};

use decree::v1;

/// How many decisions a session remembers.
const REMEMBERED_MAX: usize = 512;
/// How many of a ReplicaSet's last decisions are shown.
const SHOWN_MAX: usize = 10;

/// Decisions, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(VecDeque<Arc<v1::DecisionRecord>>);

// === impl History ===

impl History {
    pub(crate) fn push(&mut self, record: Arc<v1::DecisionRecord>) {
        if self.0.len() == REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(record);
    }

    /// Returns the last decisions on a ReplicaSet, the newest first.
    pub(crate) fn of(&self, namespace: &str, name: &str) -> Vec<v1::DecisionRecord> {
        let is_its = |record: &&Arc<v1::DecisionRecord>| {
            let object = record.replica_set.as_ref();
            object.is_some_and(|object| object.namespace == namespace && object.name == name)
        };
        let last = self.0.iter().rev().filter(is_its).take(SHOWN_MAX);
        last.map(|record| v1::DecisionRecord::clone(record))
            .collect()
    }
}
