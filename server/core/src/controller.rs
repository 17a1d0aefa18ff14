//! The one machine: news in by `handle_*`, work out by `poll_*`, time by argument.

mod events;
mod in_flight;
mod inspect;
mod known;
mod leftover;
mod lists;
mod obstacles;
mod outcomes;
mod reports;
mod resume;
mod state;
mod unconverged;

use self::state::{ReadySync, RunningSync};
pub use self::{
    inspect::{Sizes, Surroundings},
    known::{KnownSet, Replica},
    state::Controller,
};
use crate::{
    batch::{Action, Batch, BatchId},
    index::{PodId, SetId},
    object::{Condition, Kind, Timestamp},
    reason::Reason,
    report::Report,
    sync::{
        self, Next, Prepared, Step, SyncResult, Weight, batch_result::BatchResult, choice::Choice,
    },
    work::Work,
};

/// How many pods of a ReplicaSet are compared for a unit of work when some of them are chosen.
const PODS_PER_UNIT: usize = 8;

/// How many syncs may wait for room before no other begins.
const WITHOUT_ROOM_MAX: usize = 64;

/// How many bytes of a condition's message are copied for a unit of work.
const BYTES_PER_UNIT: usize = 2_048;

// === impl Controller ===

impl Controller {
    /// Lets time pass: delayed keys become due, and a stream that does not show our writes is asked for a list.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.handle_timeout_within(now, &mut Work::units(0));
    }

    /// Lets time pass as [`Self::handle_timeout`] does. Where the work is spent before all due keys are queued, the work has paused, and the
    /// next call goes on.
    pub fn handle_timeout_within(&mut self, now: Timestamp, work: &mut Work) {
        let now = self.tick(now);
        if !self.resume(now, work) || !self.queue.handle_timeout(now, work) {
            return;
        }
        for kind in self.consistency.overdue(now) {
            self.request_list(kind, "the stream has not shown a write for 5 minutes");
        }
    }

    /// Returns the next batch to send, or `None` when there is nothing to do now.
    ///
    /// Every operation of it must be answered by [`Self::handle_outcome`].
    pub fn poll_batch(&mut self, now: Timestamp) -> Option<Batch> {
        self.poll_batch_within(now, &mut Work::units(0))
    }

    /// Returns the next batch as [`Self::poll_batch`] does, or `None` also where the work is spent before there is one.
    pub fn poll_batch_within(&mut self, now: Timestamp, work: &mut Work) -> Option<Batch> {
        self.handle_timeout_within(now, work);
        let now = self.clock;
        if work.has_paused() || !self.is_view_whole() {
            return None;
        }
        while !work.is_spent() {
            let (ready, adoptable) = self.next_ready(now, work)?;
            let Some((prepared, answered)) = self.prepare(now, ready, adoptable, work) else {
                break;
            };
            let set = prepared.id;
            work.spend(1 + self.copied(set));
            match self.advance(now, prepared, answered) {
                Next::Send {
                    action,
                    reasons,
                    step,
                    age_ratios,
                } => {
                    work.spend(self.looked_at(set, &action));
                    let reports = age_ratios.into_iter().map(Report::DeletionAgeRatio);
                    reports.for_each(|report| self.reports.push(report));
                    return self.send(set, action, reasons, step);
                }
                Next::Finished(result) => self.finish(now, set, result),
            }
        }
        work.pause();
        None
    }

    /// Returns how much work the choice of an action was.
    fn looked_at(&self, id: SetId, action: &Action) -> usize {
        let active = self.index.set(id).map_or(0, |set| set.counts.active);
        let looks = match action {
            Action::Delete(_) => usize::try_from(active).unwrap_or(0) / PODS_PER_UNIT,
            Action::WriteStatus(_) => self.copied(id),
            Action::Create { .. } | Action::Claim { .. } => 0,
        };
        looks + action.operations()
    }

    /// Returns how much work it is to copy the conditions of a ReplicaSet, which every status has.
    fn copied(&self, id: SetId) -> usize {
        let set = self.index.set(id);
        let conditions = set.map_or(&[][..], |set| &set.object.status.conditions);
        let bytes = |condition: &Condition| condition.message.len() / BYTES_PER_UNIT;
        conditions
            .iter()
            .map(|condition| 1 + bytes(condition))
            .sum()
    }

    /// Returns the next sync that can go on and has room for its batch, and the orphans that its ReplicaSet selects. One that has no
    /// room keeps its turn, but statuses of others pass it.
    fn next_ready(&mut self, now: Timestamp, work: &mut Work) -> Option<(ReadySync, Vec<PodId>)> {
        while !work.is_spent() {
            let (due, had_turn) = self.next_due(now)?;
            let step = due.answered.as_ref().map(|(step, _)| step);
            let adoptable = match &mut self.choosing {
                Some((choice, adoptable)) if choice.set == due.set => std::mem::take(adoptable),
                _ if sync::may_claim(step) => self.index.adoptable(due.set, work),
                _ => Vec::new(),
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
                    if (had_turn || first.is_none()) && self.in_flight.have_room(count, max) =>
                {
                    return Some((due, adoptable));
                }
                Weight::Pods(count) if had_turn => self.without_room.push_front((due, count)),
                Weight::Pods(count) => self.without_room.push_back((due, count)),
            }
            work.spend(1);
        }
        work.pause();
        None
    }

    /// Returns the next sync that can go on, and whether it has waited for its turn at the head of the others. None begins behind many that
    /// wait for room.
    fn next_due(&mut self, now: Timestamp) -> Option<(ReadySync, bool)> {
        if let Some(parked) = self.parked.take() {
            return Some((parked, true));
        }
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

    /// Looks up what the next step of a sync needs. `None` where the work is spent before that is done: the sync keeps its turn, and the
    /// next call goes on unless there are news.
    fn prepare(
        &mut self,
        now: Timestamp,
        ready: ReadySync,
        adoptable: Vec<PodId>,
        work: &mut Work,
    ) -> Option<(Prepared, Option<(Step, BatchResult)>)> {
        let id = ready.set;
        let begun = self.choosing.take().filter(|(choice, _)| choice.set == id);
        let choice = begun.map(|(choice, _)| choice).or_else(|| {
            let step = ready.answered.as_ref().map(|(step, _)| step);
            let count = sync::large_choice(&self.index, &self.config, (id, &adoptable), step)?;
            Some(Choice::new(&self.index, id, count, now))
        });
        let victims = match choice {
            None => None,
            Some(mut choice) => {
                if !choice.go_on(&self.index, work) {
                    self.choosing = Some((choice, adoptable));
                    self.parked = Some(ready);
                    return None;
                }
                Some(choice.finish(&self.index))
            }
        };
        let prepared = Prepared {
            id,
            adoptable,
            victims,
        };
        Some((prepared, ready.answered))
    }

    /// Lets a sync begin or go on. A ReplicaSet that is gone or cannot be understood is left alone.
    fn advance(
        &mut self,
        now: Timestamp,
        prepared: Prepared,
        answered: Option<(Step, BatchResult)>,
    ) -> Next {
        let id = prepared.id;
        let Some(set) = self.index.set_mut(id) else {
            return Next::Finished(SyncResult::default());
        };
        set.note_convergence(now);
        // Pods of a ReplicaSet that is being deleted are left alone.
        let lacks = set.unconverged_since().is_some() && !set.object.deleting;
        let miscounted = set.surplus() != 0;
        self.miscounted.note(now, id, lacks && miscounted);
        self.unavailable.note(now, id, lacks && !miscounted);
        if self.abandoned.contains(&set.object.key.uid) {
            // It is back, and its batch in flight: the last outcome queues it.
            return Next::Finished(SyncResult::default());
        }
        if let Err(quarantine) = &set.object.selector {
            let (key, detail) = (set.object.key.clone(), quarantine.to_string());
            if self.quarantined.get(&id) != Some(&detail) {
                self.quarantined.insert(id, detail.clone());
                self.reports.push(Report::Quarantined { key, detail });
            }
            return Next::Finished(SyncResult::default());
        }
        self.quarantined.remove(&id);
        sync::advance(&mut self.index, &self.config, now, prepared, answered)
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
        if let Action::Delete(victims) = &batch.action {
            self.index.expect_end(&batch.key.namespace, victims);
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
            self.reports.push(Report::Synced {
                key,
                error,
                requeue_after,
                waited: self.queue.waited(id),
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
}
