//! Batches in flight, until every operation has its outcome.

use super::stream::Unseen;
use crate::{
    batch::{ActionKind, Batch, BatchId, Operation},
    event::OperationResult,
    held::{Held, HeldMap},
    index::SetId,
    object::{Key, Timestamp},
    sync::batch_result::BatchResult,
};

/// The memory of a batch in flight in bytes, without its operations.
const BATCH_BYTES: usize = 600;
/// The memory of an operation in flight in bytes, with the name and UID of its pod, which may be the only copies by then.
const OPERATION_BYTES: usize = 300;

/// A batch in flight, with the results of its operations so far.
#[derive(Clone, Debug)]
pub(super) struct SentBatch {
    pub(super) set: SetId,
    pub(super) key: Key,
    pub(super) action: ActionKind,
    /// The operations; `None` for those that have an outcome.
    operations: Vec<Option<Operation>>,
    remaining: usize,
    sent: Timestamp,
    /// The time of its last outcome, or else of its sending.
    heard: Timestamp,
    pub(super) result: BatchResult,
    pub(super) unseen: Unseen,
}

#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    pub(super) batches: HeldMap<BatchId, SentBatch>,
    operations: usize,
    /// The latest send time of the batches whose outcomes have all come.
    answered_of: Option<Timestamp>,
}

impl InFlight {
    /// Whether a batch with this number of operations may leave. A batch that is larger than the whole limit leaves alone.
    pub(super) const fn have_room(&self, operations: usize, max: usize) -> bool {
        operations == 0 || self.operations == 0 || self.operations.saturating_add(operations) <= max
    }

    pub(super) fn insert(&mut self, now: Timestamp, set: SetId, batch: &Batch) {
        let action = batch.action.kind();
        let operations = batch.action.each_operation();
        let operations: Vec<_> = operations.into_iter().map(Some).collect();
        self.operations += operations.len();
        let sent = SentBatch {
            set,
            key: batch.key.clone(),
            action,
            remaining: operations.len(),
            operations,
            sent: now,
            heard: now,
            result: BatchResult::default(),
            unseen: Unseen::default(),
        };
        self.batches.insert(batch.id, sent);
    }

    pub(super) fn get(&self, batch: BatchId) -> Option<&SentBatch> {
        self.batches.get(&batch)
    }

    /// Notes that the outcome of an operation did not show its effect. `list` is the last list that has begun.
    pub(super) fn note_unseen(&mut self, batch: BatchId, operation: Operation, list: u32) {
        self.batches.change(&batch, |sent| {
            sent.unseen.after.insert(operation.kind(), list);
            if let Operation::Create(name) = operation {
                sent.unseen.names.push(name);
            }
        });
    }

    /// Whether a batch has had no outcome since `since`, although a batch sent later has all its outcomes. Agents work on batches in turns.
    pub(super) fn is_any_overlooked(&self, since: Timestamp) -> bool {
        let mut batches = self.batches.values();
        batches.any(|sent| sent.heard <= since && Some(sent.heard) < self.answered_of)
    }

    /// Records the result of an operation. Returns the operation with its ReplicaSet, and `None` for unknown batches and repeated outcomes.
    pub(super) fn answer(
        &mut self,
        now: Timestamp,
        (batch, at): (BatchId, u32),
        effect: &OperationResult,
    ) -> Option<(SetId, Key, Operation)> {
        let answer = |sent: &mut SentBatch| {
            let operation = sent.operations.get_mut(at as usize)?.take()?;
            sent.heard = now;
            sent.remaining -= 1;
            sent.result.count(at, &operation, effect);
            Some((sent.set, sent.key.clone(), operation))
        };
        let answered = self.batches.change(&batch, answer)??;
        self.operations -= 1;
        Some(answered)
    }

    pub(super) fn take_answered(&mut self, batch: BatchId) -> Option<SentBatch> {
        self.get(batch).filter(|sent| sent.remaining == 0)?;
        let sent = self.batches.remove(&batch)?;
        self.answered_of = self.answered_of.max(Some(sent.sent));
        Some(sent)
    }
}

impl Held for InFlight {
    fn bytes(&self) -> usize {
        let Self {
            batches,
            operations: _,
            answered_of: _,
        } = self;
        batches.bytes()
    }
}

impl SentBatch {
    /// Returns the number of operations, and of those that have an outcome.
    pub(super) const fn progress(&self) -> (usize, usize) {
        let operations = self.operations.len();
        (operations, operations - self.remaining)
    }

    pub(super) fn unfollowed(&self) -> usize {
        let open = if self.action == ActionKind::Create {
            self.remaining
        } else {
            0
        };
        open + self.unseen.names.len()
    }
}

impl Held for SentBatch {
    fn bytes(&self) -> usize {
        let Self {
            set: _,
            key: _,
            action: _,
            operations,
            remaining,
            sent: _,
            heard: _,
            result,
            unseen,
        } = self;
        let slots = operations.len() * size_of::<Option<Operation>>();
        BATCH_BYTES + slots + remaining * OPERATION_BYTES + result.bytes() + unseen.bytes()
    }
}
