//! Batches in flight, until every operation has its outcome.

use std::collections::BTreeMap;

use super::lists::Unseen;
use crate::{
    batch::{Action, Batch, BatchId, Operation, Operations},
    event::OperationResult,
    index::SetId,
    object::{Key, Timestamp},
    sync::batch_result::BatchResult,
};

/// What a batch in flight takes in memory, beside its operations.
const BATCH_BYTES: usize = 600;
/// What an operation in flight takes, with the name and uid of a pod that nothing else may have by then.
const OPERATION_BYTES: usize = 300;

/// A batch in flight, and what has become of its operations.
#[derive(Clone, Debug)]
pub(super) struct SentBatch {
    pub(super) set: SetId,
    pub(super) key: Key,
    pub(super) operations: Operations,
    answered: Vec<bool>,
    remaining: usize,
    sent: Timestamp,
    /// When its last outcome came, or it was sent.
    heard: Timestamp,
    pub(super) result: BatchResult,
    /// What its outcomes did not show.
    pub(super) unseen: Unseen,
}

/// All batches in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    batches: BTreeMap<BatchId, SentBatch>,
    operations: usize,
    /// How many of them write statuses.
    statuses: usize,
    /// What the words of outcomes take in bytes.
    words: usize,
    /// When the batch was sent that was sent last of those whose outcomes have all come.
    answered_of: Option<Timestamp>,
}

// === impl InFlight ===

impl InFlight {
    /// Returns whether a batch of so many operations may leave. One that is larger than the whole bound leaves alone.
    pub(super) const fn have_room(&self, operations: usize, max: usize) -> bool {
        operations == 0 || self.operations == 0 || self.operations.saturating_add(operations) <= max
    }

    /// Returns whether the write of a status may leave, and pass a batch of so many operations that waits for room. Those that pass take
    /// a tenth of the bound at most, and none that keeps the batch waiting once all others are answered.
    pub(super) fn have_room_for_status(&self, max: usize, waiting: Option<usize>) -> bool {
        let passes = |waiting| self.statuses < max.div_ceil(10).min(max.saturating_sub(waiting));
        self.have_room(1, max) && waiting.is_none_or(passes)
    }

    /// Keeps a batch that is sent at `now` until all its outcomes have come.
    pub(super) fn insert(&mut self, now: Timestamp, set: SetId, batch: &Batch) {
        let operations = batch.action.operations();
        self.operations += operations;
        if matches!(batch.action, Action::WriteStatus(_)) {
            self.statuses += operations;
        }
        let sent = SentBatch {
            set,
            key: batch.key.clone(),
            operations: Operations::of(&batch.action),
            answered: vec![false; operations],
            remaining: operations,
            sent: now,
            heard: now,
            result: BatchResult::default(),
            unseen: Unseen::default(),
        };
        self.batches.insert(batch.id, sent);
    }

    /// Returns a batch in flight.
    pub(super) fn get(&self, batch: BatchId) -> Option<&SentBatch> {
        self.batches.get(&batch)
    }

    /// Returns a batch in flight, to note something of it.
    pub(super) fn get_mut(&mut self, batch: BatchId) -> Option<&mut SentBatch> {
        self.batches.get_mut(&batch)
    }

    /// Returns about how many bytes all of it takes.
    pub(super) fn bytes(&self) -> usize {
        self.batches.len() * BATCH_BYTES + self.operations * OPERATION_BYTES + self.words
    }

    /// Returns how many batches are in flight.
    pub(super) fn count(&self) -> usize {
        self.batches.len()
    }

    /// Returns whether a batch has had no outcome after `since`, though all have come of one that was sent later: agents work on batches in turns.
    pub(super) fn is_any_overlooked(&self, since: Timestamp) -> bool {
        let mut batches = self.batches.values();
        batches.any(|sent| sent.heard <= since && Some(sent.heard) < self.answered_of)
    }

    /// Notes at `now` what became of an operation. `None` for unknown batches and repeated outcomes.
    pub(super) fn answer(
        &mut self,
        now: Timestamp,
        (batch, at): (BatchId, u32),
        effect: &OperationResult,
    ) -> Option<(&SentBatch, Operation)> {
        let sent = self.batches.get_mut(&batch)?;
        let answered = sent.answered.get_mut(at as usize)?;
        if std::mem::replace(answered, true) {
            return None;
        }
        sent.heard = now;
        sent.remaining -= 1;
        self.operations -= 1;
        let operation = sent.operations.get(at as usize)?;
        if matches!(operation, Operation::WriteStatus) {
            self.statuses -= 1;
        }
        self.words -= sent.result.bytes();
        sent.result.count(at, &operation, effect);
        self.words += sent.result.bytes();
        Some((sent, operation))
    }

    /// Takes out a batch if all its outcomes have come.
    pub(super) fn take_answered(&mut self, batch: BatchId) -> Option<SentBatch> {
        let sent = self.batches.get(&batch);
        let answered = sent.is_some_and(|sent| sent.remaining == 0);
        let sent = answered.then(|| self.batches.remove(&batch)).flatten()?;
        self.answered_of = self.answered_of.max(Some(sent.sent));
        self.words -= sent.result.bytes();
        Some(sent)
    }
}

// === impl SentBatch ===

impl SentBatch {
    /// Returns how many operations there are, and how many are answered.
    pub(super) const fn progress(&self) -> (usize, usize) {
        (self.answered.len(), self.answered.len() - self.remaining)
    }
}
