//! Batches in flight, until every operation has its outcome.

use std::collections::BTreeMap;

use super::lists::Unseen;
use crate::{
    batch::{Batch, BatchId, Operation, Operations},
    index::SetId,
    object::Key,
    pieces::{Pieces, pieces},
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
    pub(super) result: BatchResult,
    /// What its outcomes did not show.
    pub(super) unseen: Unseen,
}

/// All batches in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    batches: BTreeMap<BatchId, SentBatch>,
    operations: usize,
}

// === impl InFlight ===

impl InFlight {
    /// Returns whether a batch of so many operations may leave. One that is larger than the whole bound leaves alone.
    pub(super) const fn have_room(&self, operations: usize, max: usize) -> bool {
        operations == 0 || self.operations == 0 || self.operations.saturating_add(operations) <= max
    }

    /// Keeps a batch until all its outcomes have come.
    pub(super) fn insert(&mut self, set: SetId, batch: &Batch) {
        let operations = batch.action.operations();
        self.operations += operations;
        let sent = SentBatch {
            set,
            key: batch.key.clone(),
            operations: Operations::of(&batch.action),
            answered: vec![false; operations],
            remaining: operations,
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
        self.batches.len() * BATCH_BYTES + self.operations * OPERATION_BYTES
    }

    /// Returns how many batches are in flight.
    pub(super) fn count(&self) -> usize {
        self.batches.len()
    }

    /// Notes that an operation has its outcome. `None` for unknown batches and repeated outcomes.
    pub(super) fn answer(
        &mut self,
        batch: BatchId,
        operation: u32,
    ) -> Option<(&mut SentBatch, Operation)> {
        let sent = self.batches.get_mut(&batch)?;
        let answered = sent.answered.get_mut(operation as usize)?;
        if std::mem::replace(answered, true) {
            return None;
        }
        sent.remaining -= 1;
        self.operations -= 1;
        let operation = sent.operations.get(operation as usize)?;
        Some((sent, operation))
    }

    /// Returns all batches, to be freed a piece at a time.
    pub(super) fn into_pieces(self) -> Pieces {
        pieces(self.batches)
    }

    /// Takes out a batch if all its outcomes have come.
    pub(super) fn take_answered(&mut self, batch: BatchId) -> Option<SentBatch> {
        let sent = self.batches.get(&batch);
        let answered = sent.is_some_and(|sent| sent.remaining == 0);
        answered.then(|| self.batches.remove(&batch)).flatten()
    }
}

// === impl SentBatch ===

impl SentBatch {
    /// Returns how many operations there are, and how many are answered.
    pub(super) const fn progress(&self) -> (usize, usize) {
        (self.answered.len(), self.answered.len() - self.remaining)
    }
}
