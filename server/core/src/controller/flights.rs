//! Batches on their way, until every operation is answered.

use std::{collections::BTreeMap, sync::Arc};

use super::Controller;
use crate::{
    batch::{Action, Batch, BatchId, PodRef},
    event::Outcome,
    index::SetId,
    object::{Key, Status, Timestamp},
    sync::Tally,
};

/// A batch on its way, and what has become of its operations.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) set: SetId,
    pub(super) key: Key,
    action: Action,
    answered: Vec<bool>,
    remaining: usize,
    pub(super) tally: Tally,
}

/// One operation of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Create(Arc<str>),
    Delete(PodRef),
    Adopt(PodRef),
    Release(PodRef),
    WriteStatus(Box<Status>),
}

/// All batches on their way.
#[derive(Debug, Default)]
pub(super) struct Flights {
    flights: BTreeMap<BatchId, Flight>,
    operations: usize,
}

// === impl Flights ===

impl Flights {
    /// Returns whether a batch of so many operations may leave. One that is larger than the whole bound leaves alone.
    pub(super) const fn have_room(&self, operations: usize, max: usize) -> bool {
        operations == 0 || self.operations == 0 || self.operations.saturating_add(operations) <= max
    }

    /// Keeps a batch until all its outcomes have come.
    pub(super) fn launch(&mut self, set: SetId, batch: &Batch) {
        let operations = batch.action.operations();
        self.operations += operations;
        let flight = Flight {
            set,
            key: batch.key.clone(),
            action: batch.action.clone(),
            answered: vec![false; operations],
            remaining: operations,
            tally: Tally::default(),
        };
        self.flights.insert(batch.id, flight);
    }

    /// Returns a batch on its way.
    pub(super) fn of(&self, batch: BatchId) -> Option<&Flight> {
        self.flights.get(&batch)
    }

    /// Returns how many batches are on their way.
    pub(super) fn count(&self) -> usize {
        self.flights.len()
    }

    /// Notes an answer. `None` for unknown batches and repeated answers.
    fn answer(&mut self, batch: BatchId, operation: u32) -> Option<(&mut Flight, Operation)> {
        let flight = self.flights.get_mut(&batch)?;
        let answered = flight.answered.get_mut(operation as usize)?;
        if std::mem::replace(answered, true) {
            return None;
        }
        flight.remaining -= 1;
        self.operations -= 1;
        let operation = flight.action.operation(operation as usize)?;
        Some((flight, operation))
    }

    /// Takes out a batch if it is answered.
    fn retire(&mut self, batch: BatchId) -> Option<Flight> {
        let answered = self
            .flights
            .get(&batch)
            .is_some_and(|flight| flight.remaining == 0);
        answered.then(|| self.flights.remove(&batch)).flatten()
    }
}

// === impl Flight ===

impl Flight {
    /// Returns how many operations there are, and how many are answered.
    pub(super) const fn progress(&self) -> (usize, usize) {
        (self.answered.len(), self.answered.len() - self.remaining)
    }
}

// === impl Action ===

impl Action {
    fn operation(&self, at: usize) -> Option<Operation> {
        match self {
            Self::Create { names, .. } => names.get(at).cloned().map(Operation::Create),
            Self::Delete(victims) => victims
                .get(at)
                .map(|victim| Operation::Delete(victim.pod.clone())),
            Self::Claim { adopts, releases } => match adopts.get(at) {
                Some(pod) => Some(Operation::Adopt(pod.clone())),
                None => releases
                    .get(at - adopts.len())
                    .cloned()
                    .map(Operation::Release),
            },
            Self::WriteStatus(status) => (at == 0).then(|| Operation::WriteStatus(status.clone())),
        }
    }
}

// === impl Controller ===

impl Controller {
    /// Records what became of an operation. Unknown batches and repeated outcomes are ignored.
    pub fn handle_outcome(&mut self, now: Timestamp, outcome: Outcome) {
        let now = self.tick(now);
        let Outcome {
            batch,
            operation: at,
            result,
        } = outcome;
        let Some((flight, operation)) = self.flights.answer(batch, at) else {
            return;
        };
        flight.tally.count(at, &operation, &result);
        let (set, key) = (flight.set, flight.key.clone());
        self.take_effect(now, (set, &key), operation, result);
        if let Some(flight) = self.flights.retire(batch)
            && self
                .runs
                .get(&flight.set)
                .is_some_and(|run| run.batch == batch)
        {
            self.answered.push_back((flight.set, flight.tally));
        }
    }
}
