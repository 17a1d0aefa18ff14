//! The last decisions of a session, for inspection.

use std::{collections::VecDeque, sync::Arc};

use decree::v1;
use prost::Message;

/// How many decisions a session remembers, and about how many bytes these take.
const REMEMBERED_MAX: usize = 512;
const BYTES_MAX: usize = 4 << 20;
/// Which part of what a session may hold that is at most.
const SHARE: usize = 64;
/// What a decision and each object of it take in memory, beside their words.
const RECORD_BYTES: usize = 500;
const TARGET_BYTES: usize = 200;
/// How many of a ReplicaSet's last status writes are shown, and of its other decisions, which must not drown in them. Its last deletion is
/// shown in any case.
const STATUS_SHOWN_MAX: usize = 10;
const OTHERS_SHOWN_MAX: usize = 20;
/// The actions that are shown by rules of their own.
const STATUS: &str = "status";
const DELETE: &str = "delete";

/// Decisions, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct History {
    records: VecDeque<Arc<v1::DecisionRecord>>,
    bytes: usize,
    bytes_max: usize,
}

// === impl History ===

impl History {
    /// Returns an empty one for a session that may hold so many bytes in all.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            records: VecDeque::new(),
            bytes: 0,
            bytes_max: BYTES_MAX.min(bytes_max / SHARE),
        }
    }

    /// Keeps a decision, and lets go of the oldest where there are too many.
    pub(crate) fn push(&mut self, record: Arc<v1::DecisionRecord>) {
        self.bytes += bytes(&record);
        self.records.push_back(record);
        while self.records.len() > REMEMBERED_MAX || self.bytes > self.bytes_max {
            let Some(oldest) = self.records.pop_front() else {
                return;
            };
            self.bytes -= bytes(&oldest);
        }
    }

    /// Returns about how many bytes all of it takes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the last decisions on a ReplicaSet, the newest first, and behind them its last deletion if that is not among them: the
    /// status is written with each change, and would soon hide which pods went and why.
    pub(crate) fn of(&self, namespace: &str, name: &str) -> Vec<v1::DecisionRecord> {
        let is_its = |record: &&Arc<v1::DecisionRecord>| {
            let object = record.replica_set.as_ref();
            object.is_some_and(|object| object.namespace == namespace && object.name == name)
        };
        let (mut status_writes, mut others, mut deletions) = (0, 0, 0);
        let is_shown = |record: &&Arc<v1::DecisionRecord>| {
            let (count, max) = match record.action.as_str() {
                STATUS => (&mut status_writes, STATUS_SHOWN_MAX),
                DELETE if deletions == 0 => (&mut deletions, 1),
                _ => (&mut others, OTHERS_SHOWN_MAX),
            };
            *count += 1;
            *count <= max
        };
        let last = self.records.iter().rev().filter(is_its).filter(is_shown);
        last.map(|record| v1::DecisionRecord::clone(record))
            .collect()
    }
}

fn bytes(record: &v1::DecisionRecord) -> usize {
    RECORD_BYTES + record.encoded_len() + TARGET_BYTES * record.targets.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As much as a session may hold where nothing of this is near it.
    const PLENTY: usize = 1 << 30;

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
        let mut history = History::new(PLENTY);
        history.push(record(1, DELETE));
        history.push(record(2, DELETE));
        for number in 3..=15 {
            history.push(record(number, "status"));
        }
        assert_eq!(shown(&history), [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 2, 1]);
    }

    #[test]
    fn deletion_among_the_last_is_shown_once() {
        let mut history = History::new(PLENTY);
        history.push(record(1, DELETE));
        history.push(record(2, DELETE));
        history.push(record(3, "status"));
        assert_eq!(shown(&history), [3, 2, 1]);
        assert!(history.of("default", "other").is_empty());
    }

    #[test]
    fn status_writes_leave_room_for_other_decisions() {
        let mut history = History::new(PLENTY);
        for number in 0..200 {
            let action = if number % 20 == 0 { "create" } else { STATUS };
            history.push(record(number, action));
        }
        let shown = history.of("default", "web");
        let creates = shown.iter().filter(|record| record.action == "create");
        assert_eq!((shown.len(), creates.count()), (20, 10));
        assert!(shown.is_sorted_by_key(|record| std::cmp::Reverse(record.batch_id)));
    }

    #[test]
    fn last_deletion_is_shown_behind_any_number_of_others() {
        let mut history = History::new(PLENTY);
        history.push(record(1, DELETE));
        history.push(record(2, DELETE));
        for number in 3..=30 {
            history.push(record(number, "create"));
        }
        let shown = shown(&history);
        assert_eq!((shown.len(), shown.last()), (21, Some(&2)));
    }

    #[test]
    fn history_keeps_within_its_share_and_counts_what_it_holds() {
        let target = |number: usize| v1::DecisionTarget {
            name: format!("{number:0>250}"),
            ..v1::DecisionTarget::default()
        };
        let large = |number| {
            let mut large = v1::DecisionRecord::clone(&record(number, "create"));
            large.targets = (0..20).map(target).collect();
            Arc::new(large)
        };
        let mut history = History::new(64 * 100_000);
        for number in 0..1_000 {
            history.push(large(number));
            assert!(history.bytes() <= 100_000);
        }
        let held: usize = history.records.iter().map(|record| bytes(record)).sum();
        assert_eq!(history.bytes(), held);
        assert_eq!(shown(&history).first(), Some(&999));
        let mut history = History::new(PLENTY);
        (0..1_000).for_each(|number| history.push(large(number)));
        assert!(history.bytes() <= BYTES_MAX && history.records.len() > 400);
    }
}
