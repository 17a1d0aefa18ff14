//! The state machine. It takes events and outcomes by `handle_*` and gives batches and reports by `poll_*`. The time is an argument.

mod cluster_change;
mod events;
mod in_flight;
mod inspect;
mod known;
mod lists;
mod obstacles;
mod outcomes;
mod surroundings;
mod unconverged;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use self::{
    cluster_change::{Impact, ReplicaSetsCopy},
    inspect::Sizes,
    known::{KnownSet, Replica},
    surroundings::Surroundings,
};
use self::{
    in_flight::InFlight,
    lists::{ListWait, Progress},
    obstacles::Obstacles,
    unconverged::Unconverged,
};
use crate::{
    batch::{Action, Batch, BatchId},
    config::Config,
    consistency::Consistency,
    index::{Index, PodId, SetId, lasting},
    object::{Kind, ResourceVersion, Timestamp, Uid},
    queue::Queue,
    reason::Reason,
    report::{ControllerReport, ScaleDown},
    sync::{self, Next, SyncResult, SyncStep, Weight, batch_result::BatchResult, rank::RankedPod},
};

/// At this number of syncs that wait for room, no other sync begins.
const WITHOUT_ROOM_MAX: usize = 64;

/// Decides for one cluster.
///
/// Time never goes back here, since availability is counted forward. A `now` before an earlier `now` counts as the earlier one.
#[derive(Clone, Debug)]
pub struct Controller {
    config: Config,
    pub(crate) index: Index,
    pub(crate) queue: Queue,
    pub(crate) reports: VecDeque<ControllerReport>,
    /// The lists to request from the agent, with the cause.
    requests: BTreeMap<Kind, String>,
    quarantined: BTreeMap<SetId, String>,
    /// The ReplicaSets with missing or surplus pods.
    miscounted: Unconverged,
    /// The ReplicaSets with the desired number of pods, of which some are not available.
    unavailable: Unconverged,
    obstacles: Obstacles,
    consistency: Consistency,
    lists: Progress,
    /// The syncs with a batch in flight.
    running: BTreeMap<SetId, RunningSync>,
    /// The UIDs of ReplicaSets that were deleted while they had batches in flight, even if they came back.
    abandoned: BTreeSet<Uid>,
    in_flight: InFlight,
    /// The syncs that wait for a list after the outcomes of their batch.
    waiting: BTreeMap<SetId, ListWait>,
    /// The syncs whose batch has all its outcomes. They continue before other syncs begin.
    answered: VecDeque<(SetId, BatchResult)>,
    /// The sync whose next batch, a status write, found no room.
    status_without_room: Option<ReadySync>,
    /// The syncs whose next batch found no room, in order, with the operations that it may have. Statuses of others pass them.
    without_room: VecDeque<(ReadySync, usize)>,
    next_batch: u64,
    /// The latest time given.
    clock: Timestamp,
}

/// A sync that waits for the outcomes of its batch.
#[derive(Clone, Debug)]
struct RunningSync {
    batch: BatchId,
    step: SyncStep,
}

/// A sync that can continue: from its beginning, or from a step whose batch has all its outcomes.
#[derive(Clone, Debug)]
struct ReadySync {
    set: SetId,
    answered: Option<(SyncStep, BatchResult)>,
}

/// Answers questions about a controller, without changing it.
#[derive(Clone, Copy, Debug)]
pub struct Inspect<'a>(&'a Controller);

// === impl Controller ===

impl Controller {
    /// Creates a controller without objects. It decides nothing until the snapshots of both kinds are complete.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            index: Index::new(config.names),
            config,
            queue: Queue::default(),
            reports: VecDeque::new(),
            requests: BTreeMap::new(),
            quarantined: BTreeMap::new(),
            miscounted: Unconverged::default(),
            unavailable: Unconverged::default(),
            obstacles: Obstacles::default(),
            consistency: Consistency::default(),
            lists: Progress::default(),
            running: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            in_flight: InFlight::default(),
            waiting: BTreeMap::new(),
            answered: VecDeque::new(),
            status_without_room: None,
            without_room: VecDeque::new(),
            next_batch: 1,
            clock: Timestamp(i64::MIN),
        }
    }

    /// Whether both kinds have been listed.
    #[must_use]
    pub const fn is_synced(&self) -> bool {
        self.lists.is_synced()
    }

    /// The newest version seen of a kind.
    #[must_use]
    pub const fn version(&self, kind: Kind) -> Option<ResourceVersion> {
        self.consistency.seen(kind)
    }

    /// The version of the last complete list of a kind that had a version.
    #[must_use]
    pub const fn last_list(&self, kind: Kind) -> Option<ResourceVersion> {
        self.consistency.last_list(kind)
    }

    /// Whether the view is complete: both kinds have been listed, and no list is open.
    #[must_use]
    pub const fn is_view_whole(&self) -> bool {
        self.lists.is_whole()
    }

    /// Whether a kind has been listed.
    #[must_use]
    pub const fn is_listed(&self, kind: Kind) -> bool {
        self.lists.is_listed(kind)
    }

    fn tick(&mut self, now: Timestamp) -> Timestamp {
        self.clock = self.clock.max(now);
        self.queue.set_now(self.clock);
        self.miscounted.tick(self.clock);
        self.unavailable.tick(self.clock);
        self.clock
    }

    /// Read access to everything known, queued and in flight.
    #[must_use]
    pub const fn inspect(&self) -> Inspect<'_> {
        Inspect(self)
    }

    /// Requests a list, even if one is requested already.
    fn request_list(&mut self, kind: Kind, cause: &str) {
        self.lists.request(kind);
        self.requests.insert(kind, cause.to_owned());
    }

    /// Advances the time: delayed keys become due, and the controller requests a list if the stream does not show our writes.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let now = self.tick(now);
        self.queue.handle_timeout(now);
        for kind in self.consistency.overdue(now) {
            self.request_list(kind, "the stream has not shown a write for 5 minutes");
        }
    }

    /// Returns the next batch to send; `None` if there is nothing to do now.
    ///
    /// [`Self::handle_outcome`] must receive an outcome for each of its operations.
    pub fn poll_batch(&mut self, now: Timestamp) -> Option<Batch> {
        self.handle_timeout(now);
        let now = self.clock;
        if !self.is_view_whole() {
            return None;
        }
        loop {
            let (ready, adoptable) = self.next_ready(now)?;
            let set = ready.set;
            match self.advance(now, ready, &adoptable) {
                Next::Send {
                    action,
                    reasons,
                    step,
                    age_ratios,
                    near_cut,
                } => {
                    let reports = age_ratios
                        .into_iter()
                        .map(ControllerReport::DeletionAgeRatio);
                    reports.for_each(|report| self.reports.push_back(report));
                    self.report_scale_down(now, set, &action, near_cut);
                    return self.send(set, action, reasons, step);
                }
                Next::Finished(result) => self.finish(now, set, result),
            }
        }
    }

    /// Returns the next sync that can continue and has room for its batch, and the orphans that its ReplicaSet selects. A sync without
    /// room stays first, and only status writes pass it.
    fn next_ready(&mut self, now: Timestamp) -> Option<(ReadySync, Vec<PodId>)> {
        loop {
            let (due, was_first) = self.next_due(now)?;
            let step = due.answered.as_ref().map(|(step, _)| step);
            let adoptable = if sync::may_claim(step) {
                self.index.adoptable(due.set)
            } else {
                Vec::new()
            };
            let set = self.index.set(due.set);
            let max = self.config.operations_in_flight_max;
            let first = self.without_room.front().map(|(_, weight)| *weight);
            match sync::weight(&self.config, set, &adoptable, step) {
                Weight::Nothing => return Some((due, adoptable)),
                Weight::Status if self.in_flight.have_room_for_status(max, first) => {
                    return Some((due, adoptable));
                }
                Weight::Status => {
                    self.status_without_room = Some(due);
                    return None;
                }
                Weight::Pods(count)
                    if (was_first || first.is_none()) && self.in_flight.have_room(count, max) =>
                {
                    return Some((due, adoptable));
                }
                Weight::Pods(count) if was_first => self.without_room.push_front((due, count)),
                Weight::Pods(count) => self.without_room.push_back((due, count)),
            }
        }
    }

    /// Returns the next sync that can continue, and whether it was the first sync in the queue for room. No sync begins while many wait for
    /// room.
    fn next_due(&mut self, now: Timestamp) -> Option<(ReadySync, bool)> {
        let max = self.config.operations_in_flight_max;
        let first = self.without_room.front();
        if first.is_some_and(|(_, weight)| self.in_flight.have_room(*weight, max)) {
            return self
                .without_room
                .pop_front()
                .map(|(ready, _)| (ready, true));
        }
        let status = self.status_without_room.take();
        let due = status.or_else(|| self.next_answered()).or_else(|| {
            let begins = self.without_room.len() < WITHOUT_ROOM_MAX;
            let set = begins.then(|| self.queue.take(now)).flatten()?;
            Some(ReadySync {
                set,
                answered: None,
            })
        })?;
        Some((due, false))
    }

    /// Begins or continues a sync. Skips a ReplicaSet that is gone or quarantined.
    fn advance(&mut self, now: Timestamp, ready: ReadySync, adoptable: &[PodId]) -> Next {
        let ReadySync { set: id, answered } = ready;
        let Some(set) = self.index.set_mut(id) else {
            return Next::Finished(SyncResult::default());
        };
        set.note_convergence(now);
        // The controller leaves alone the pods of a ReplicaSet that is being deleted.
        let lacks = set.unconverged_since().is_some() && !set.object.deleting;
        let miscounted = set.surplus() != 0;
        self.miscounted.note(now, id, lacks && miscounted);
        self.unavailable.note(now, id, lacks && !miscounted);
        if self.abandoned.contains(&set.object.key.uid) {
            // The ReplicaSet is back, and its batch is in flight. The last outcome queues the ReplicaSet.
            return Next::Finished(SyncResult::default());
        }
        if let Err(quarantine) = &set.object.selector {
            let (key, detail) = (set.object.key.clone(), quarantine.to_string());
            if self.quarantined.get(&id) != Some(&detail) {
                self.quarantined.insert(id, detail.clone());
                self.reports
                    .push_back(ControllerReport::Quarantined { key, detail });
            }
            return Next::Finished(SyncResult::default());
        }
        self.quarantined.remove(&id);
        sync::advance(
            &mut self.index,
            &self.config,
            now,
            (id, adoptable),
            answered,
        )
    }

    fn next_answered(&mut self) -> Option<ReadySync> {
        while let Some((set, result)) = self.answered.pop_front() {
            if let Some(sync) = self.running.remove(&set) {
                return Some(ReadySync {
                    set,
                    answered: Some((sync.step, result)),
                });
            }
        }
        None
    }

    /// Reports how the pods that the next batch deletes were chosen.
    fn report_scale_down(
        &mut self,
        now: Timestamp,
        id: SetId,
        action: &Action,
        pods: Vec<RankedPod>,
    ) {
        let (Action::Delete(victims), Some(set)) = (action, self.index.set(id)) else {
            return;
        };
        let scale_down = ScaleDown {
            key: set.object.key.clone(),
            at: now,
            batch: BatchId(self.next_batch),
            from: set.counts.active,
            to: set.wanted(),
            chosen: victims.len(),
            pods,
        };
        let report = ControllerReport::ScaleDown(Box::new(scale_down));
        self.reports.push_back(report);
    }

    fn send(
        &mut self,
        id: SetId,
        action: Action,
        reasons: Vec<Reason>,
        step: SyncStep,
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
        if let Action::Delete(victims) = &batch.action {
            lasting::expect_end(&mut self.index, &batch.key.namespace, victims);
        }
        self.running.insert(
            id,
            RunningSync {
                batch: batch.id,
                step,
            },
        );
        self.in_flight.insert(self.clock, id, &batch);
        Some(batch)
    }

    fn finish(&mut self, now: Timestamp, id: SetId, result: SyncResult) {
        let SyncResult {
            error,
            requeue_at,
            retry,
            retry_after,
        } = result;
        match retry {
            Some(retry) => {
                let max = self.config.backoff_max;
                self.queue.retry(now, id, (retry, retry_after), max);
            }
            None => {
                self.queue.forget(id);
                self.obstacles.remove(id);
            }
        }
        let requeue_after = requeue_at.map(|at| at.since(now).max(Default::default()));
        if let Some(delay) = requeue_after {
            self.queue.add_after(now, id, delay);
        }
        let closed = self.index.set(id).and_then(|set| set.closed_creates(now));
        if let Some((_, until)) = closed {
            self.queue.add_after(now, id, until.since(now));
        }
        if let Some(set) = self.index.set(id) {
            let key = set.object.key.clone();
            self.reports.push_back(ControllerReport::Synced {
                key,
                error,
                requeue_after,
                waited: self.queue.waited(id),
            });
        }
        self.queue.done(id);
    }

    /// Returns the next report, the oldest first. The caller drains the reports after every step.
    pub fn poll_report(&mut self) -> Option<ControllerReport> {
        self.reports.pop_front()
    }

    /// Returns the next kind to request a list of, with the cause. A request ends when a list begins.
    pub fn poll_request(&mut self) -> Option<(Kind, String)> {
        self.requests.pop_first()
    }

    /// Returns when [`Self::handle_timeout`] is due next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let due = [self.queue.next_due(), self.consistency.next_due()];
        due.into_iter().flatten().min()
    }
}
