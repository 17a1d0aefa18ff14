//! The one machine: news in by `handle_*`, work out by `poll_*`, time by argument.

mod events;
mod in_flight;
mod inspect;
mod known;
mod lists;
mod outcomes;
mod reports;

use std::collections::{BTreeMap, VecDeque};

pub(crate) use self::in_flight::Operation;
use self::{
    in_flight::InFlight,
    lists::{Progress, Waiting},
    reports::Reports,
};
pub use self::{inspect::Sizes, known::KnownSet};
use crate::{
    batch::{Action, Batch, BatchId},
    consistency::Consistency,
    index::{Index, SetId},
    object::{Kind, ResourceVersion, Timestamp},
    queue::Queue,
    report::{Reason, Report},
    sync::{End, Next, Run, Step, Tally},
};

/// What decisions are made by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many creates or deletes one sync may decide; upstream: 500.
    pub burst_replicas: u32,
    /// How many creates slow start begins with; upstream: 1.
    pub slow_start_initial: u32,
    /// Whether deletes carry the version as a further precondition.
    pub delete_by_version: bool,
    /// How many operations may be in flight at once over all ReplicaSets; further batches wait their turn.
    pub operations_in_flight_max: usize,
}

/// Decides for one cluster.
///
/// Time never goes back here: a `now` that is earlier than one told before counts as that one, since availability is counted forward.
#[derive(Debug)]
pub struct Controller {
    pub(crate) config: Config,
    pub(crate) index: Index,
    pub(crate) queue: Queue,
    pub(crate) reports: Reports,
    /// Why ReplicaSets are left alone.
    pub(crate) quarantined: BTreeMap<SetId, String>,
    consistency: Consistency,
    lists: Progress,
    /// The syncs that wait for a batch.
    runs: BTreeMap<SetId, Run>,
    in_flight: InFlight,
    /// The syncs whose batch is answered, and which wait for a list.
    waiting: BTreeMap<SetId, Waiting>,
    /// The syncs whose batch is answered, and which go on before others begin.
    answered: VecDeque<(SetId, Tally)>,
    /// The sync whose next batch found no room.
    parked: Option<Due>,
    next_batch: u64,
    /// The latest time told.
    clock: Timestamp,
}

/// A sync that can go on: from its beginning, or from a step whose batch is answered.
#[derive(Debug)]
struct Due {
    set: SetId,
    answered: Option<(Step, Tally)>,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            burst_replicas: 500,
            slow_start_initial: 1,
            delete_by_version: false,
            operations_in_flight_max: 10_000,
        }
    }
}

// === impl Controller ===

impl Controller {
    /// Returns a controller that knows nothing; it decides nothing until a snapshot of both kinds is complete.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            index: Index::default(),
            queue: Queue::default(),
            reports: Reports::default(),
            quarantined: BTreeMap::new(),
            consistency: Consistency::default(),
            lists: Progress::default(),
            runs: BTreeMap::new(),
            in_flight: InFlight::default(),
            waiting: BTreeMap::new(),
            answered: VecDeque::new(),
            parked: None,
            next_batch: 1,
            clock: Timestamp(i64::MIN),
        }
    }

    /// Lets time pass: delayed keys become due, and a stream that does not show our writes is asked for a list.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let now = self.tick(now);
        self.queue.handle_timeout(now);
        for kind in self.consistency.overdue(now) {
            self.request_list(kind, "the stream has not shown a write for 5 minutes");
        }
    }

    /// Returns the next batch to send, or `None` when there is nothing to do now.
    ///
    /// Every operation of it must be answered by [`Self::handle_outcome`].
    pub fn poll_batch(&mut self, now: Timestamp) -> Option<Batch> {
        self.handle_timeout(now);
        let now = self.clock;
        if !self.is_view_whole() {
            return None;
        }
        loop {
            let Due { set, answered } = self.next_due(now)?;
            match self.advance(now, set, answered) {
                Next::Send(action, reasons, step) => return self.send(set, action, reasons, step),
                Next::Finished(end) => self.finish(now, set, end),
            }
        }
    }

    /// Returns the next sync that can go on and has room for its batch. One that has not keeps its turn.
    fn next_due(&mut self, now: Timestamp) -> Option<Due> {
        let parked = self.parked.take();
        let due = parked.or_else(|| self.next_answered()).or_else(|| {
            let set = self.queue.take(now)?;
            Some(Due {
                set,
                answered: None,
            })
        })?;
        let weight = self.weight(due.set, due.answered.as_ref().map(|(step, _)| step));
        if self
            .in_flight
            .have_room(weight, self.config.operations_in_flight_max)
        {
            return Some(due);
        }
        self.parked = Some(due);
        None
    }

    fn next_answered(&mut self) -> Option<Due> {
        while let Some((set, tally)) = self.answered.pop_front() {
            if let Some(run) = self.runs.remove(&set) {
                return Some(Due {
                    set,
                    answered: Some((run.step, tally)),
                });
            }
        }
        None
    }

    fn send(
        &mut self,
        id: SetId,
        action: Action,
        reasons: Vec<Reason>,
        step: Step,
    ) -> Option<Batch> {
        let object = &self.index.set(id)?.object;
        let batch = Batch {
            id: BatchId(self.next_batch),
            key: object.key.clone(),
            generation: object.generation,
            replica_set_version: object.version,
            pods_version: self.consistency.view(Kind::Pod),
            action,
            reasons,
        };
        self.next_batch += 1;
        self.runs.insert(
            id,
            Run {
                batch: batch.id,
                step,
            },
        );
        self.in_flight.insert(id, &batch);
        Some(batch)
    }

    fn finish(&mut self, now: Timestamp, id: SetId, end: End) {
        let End {
            error,
            requeue_at,
            afresh,
            retry_after,
        } = end;
        if error.is_some() || afresh {
            self.queue.retry(now, id, retry_after);
        } else {
            self.queue.forget(id);
        }
        let requeue_after = requeue_at.map(|at| at.since(now).max(Default::default()));
        if let Some(delay) = requeue_after {
            self.queue.add_after(now, id, delay);
        }
        if let Some(set) = self.index.set(id) {
            let key = set.object.key.clone();
            self.reports.push(Report::Synced {
                key,
                error,
                requeue_after,
            });
        }
        self.queue.done(id);
    }

    /// Returns the next report: requests for a list first, then the others, oldest first.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop()
    }

    /// Returns when [`Self::handle_timeout`] is due next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let due = [self.queue.next_due(), self.consistency.next_due()];
        due.into_iter().flatten().min()
    }

    /// Returns whether both kinds are complete.
    #[must_use]
    pub const fn is_synced(&self) -> bool {
        self.lists.is_synced()
    }

    /// Returns whether a list of a kind has been complete.
    #[must_use]
    pub const fn is_listed(&self, kind: Kind) -> bool {
        self.lists.is_listed(kind)
    }

    /// Returns the newest version seen of a kind.
    #[must_use]
    pub const fn version(&self, kind: Kind) -> Option<ResourceVersion> {
        self.consistency.seen(kind)
    }

    /// Returns whether nothing is missing from the view: both kinds complete, and no list open.
    #[must_use]
    pub const fn is_view_whole(&self) -> bool {
        self.lists.is_whole()
    }

    fn tick(&mut self, now: Timestamp) -> Timestamp {
        self.clock = self.clock.max(now);
        self.clock
    }
}
