//! The last decisions of a session, for inspection.

use std::{collections::VecDeque, sync::Arc};

use decree::v1;

/// How many decisions a session remembers.
const REMEMBERED_MAX: usize = 512;
/// How many of a ReplicaSet's last decisions are shown.
const SHOWN_MAX: usize = 10;
/// The action of a deletion.
const DELETE: &str = "delete";

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

    /// Returns the last decisions on a ReplicaSet, the newest first, and behind them its last deletion if that is not among them: the
    /// status is written with each change, and would soon hide which pods went and why.
    pub(crate) fn of(&self, namespace: &str, name: &str) -> Vec<v1::DecisionRecord> {
        let is_its = |record: &&Arc<v1::DecisionRecord>| {
            let object = record.replica_set.as_ref();
            object.is_some_and(|object| object.namespace == namespace && object.name == name)
        };
        let mut its = self.0.iter().rev().filter(is_its);
        let mut shown: Vec<_> = its.by_ref().take(SHOWN_MAX).collect();
        let is_deletion = |record: &&Arc<v1::DecisionRecord>| record.action == DELETE;
        if !shown.iter().any(is_deletion) {
            shown.extend(its.find(is_deletion));
        }
        let shown = shown.into_iter();
        shown
            .map(|record| v1::DecisionRecord::clone(record))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64, action: &str) -> Arc<v1::DecisionRecord> {
        let web = v1::ObjectRef {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
            uid: "web-uid".to_owned(),
        };
        Arc::new(v1::DecisionRecord {
            batch_id: number,
            action: action.to_owned(),
            replica_set: Some(web),
            ..v1::DecisionRecord::default()
        })
    }

    fn shown(history: &History) -> Vec<u64> {
        let shown = history.of("default", "web").into_iter();
        shown.map(|record| record.batch_id).collect()
    }

    #[test]
    fn last_deletion_is_shown_behind_any_number_of_statuses() {
        let mut history = History::default();
        history.push(record(1, DELETE));
        history.push(record(2, DELETE));
        for number in 3..=15 {
            history.push(record(number, "status"));
        }
        assert_eq!(shown(&history), [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 2]);
    }

    #[test]
    fn deletion_among_the_last_is_shown_once() {
        let mut history = History::default();
        history.push(record(1, DELETE));
        history.push(record(2, DELETE));
        history.push(record(3, "status"));
        assert_eq!(shown(&history), [3, 2, 1]);
        assert!(history.of("default", "other").is_empty());
    }
}
