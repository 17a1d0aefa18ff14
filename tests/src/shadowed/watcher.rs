//! The shadow-mode watcher with its controller, which decides and does nothing.

use server_core::{
    Batch, Config, Controller, Event, Kind, NotStarted, OperationResult, Outcome, ReplicaSet,
    ResourceVersion, Timestamp,
};
use server_shadow::{Agreements, Difference, Shadow};

#[derive(Debug)]
pub(super) struct Watcher {
    controller: Controller,
    shadow: Shadow,
    told: Vec<Difference>,
    /// The time of the next timer.
    alarm: Option<Timestamp>,
}

impl Watcher {
    /// Returns a watcher after a list of these ReplicaSets, without pods.
    pub(super) fn new(now: Timestamp, sets: Vec<ReplicaSet>) -> Self {
        let mut controller = Controller::new(Config::default());
        let sets = sets.into_iter().map(Box::new).map(Event::ReplicaSetApplied);
        let lists: [(Kind, Vec<Event>); 2] =
            [(Kind::ReplicaSet, sets.collect()), (Kind::Pod, Vec::new())];
        for (kind, objects) in lists {
            controller.handle_event(now, Event::SnapshotBegin(kind));
            for object in objects {
                controller.handle_event(now, object);
            }
            let version = Some(ResourceVersion(1));
            controller.handle_event(now, Event::SnapshotEnd { kind, version });
        }
        let mut watcher = Self {
            controller,
            shadow: Shadow::default(),
            told: Vec::new(),
            alarm: None,
        };
        watcher.decide(now);
        watcher
    }

    pub(super) fn see(&mut self, now: Timestamp, event: Event) {
        self.shadow.handle_event(now, &self.controller, &event);
        self.controller.handle_event(now, event);
        self.decide(now);
    }

    pub(super) fn wake(&mut self, now: Timestamp) {
        self.alarm = None;
        self.controller.handle_timeout(now);
        self.decide(now);
        self.shadow.handle_timeout(now, &self.controller);
        self.told
            .extend(std::iter::from_fn(|| self.shadow.poll_difference()));
    }

    /// The deadline of the watcher, if it has changed.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Timestamp> {
        let due = [self.controller.poll_timeout(), self.shadow.poll_timeout()];
        let due = due.into_iter().flatten().min()?.max(now);
        if self.alarm.is_some_and(|alarm| alarm <= due) {
            return None;
        }
        self.alarm = Some(due);
        Some(due)
    }

    pub(super) fn agreements(&self) -> &Agreements {
        self.shadow.agreements()
    }

    pub(super) fn deleted_by_others(&self) -> u64 {
        self.shadow.deleted_by_others()
    }

    pub(super) fn told(&self) -> &[Difference] {
        &self.told
    }

    pub(super) fn is_surprised(&self) -> bool {
        let mut findings = self.told.iter().map(|told| &told.finding);
        findings.any(|finding| finding.departure.is_none())
    }

    /// Makes all due decisions, and answers that nothing was done.
    fn decide(&mut self, now: Timestamp) {
        while let Some(batch) = self.controller.poll_batch(now) {
            self.shadow.handle_batch(now, &batch);
            self.refuse(now, &batch);
        }
    }

    fn refuse(&mut self, now: Timestamp, batch: &Batch) {
        for operation in (0..).take(batch.action.operations()) {
            let outcome = Outcome {
                batch: batch.id,
                operation,
                result: OperationResult::NotStarted(NotStarted::NotEnforcing),
            };
            self.controller.handle_outcome(now, outcome);
        }
    }
}
