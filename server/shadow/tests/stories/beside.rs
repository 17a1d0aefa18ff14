//! A world in which the decisions are not executed, since another controller acts.

use std::sync::Arc;

use server_core::{
    Batch, Config, Controller, Event, Kind, NotStarted, OperationResult, Outcome, Pod, ReplicaSet,
    ResourceVersion, Span, SurroundingsCopy, Timestamp,
};
use server_shadow::{Departure, Difference, Shadow, Subject};

use crate::objects::START;

pub(crate) struct Beside {
    pub(crate) shadow: Shadow,
    controller: Controller,
    now: Timestamp,
    version: u64,
}

impl Beside {
    /// A world whose lists are complete.
    pub(crate) fn of(sets: Vec<ReplicaSet>, pods: Vec<Pod>) -> Self {
        let mut beside = Self {
            shadow: Shadow::default(),
            controller: Controller::new(Config::default()),
            now: START,
            version: 1000,
        };
        let sets = sets.into_iter().map(Box::new).map(Event::ReplicaSetApplied);
        beside.list(Kind::ReplicaSet, sets.collect());
        beside.list(Kind::Pod, pods.into_iter().map(Event::PodApplied).collect());
        beside.decide();
        beside
    }

    /// Begins a new list of pods.
    pub(crate) fn begin_list(&mut self) {
        self.observe(Event::SnapshotBegin(Kind::Pod));
    }

    /// Applies a pod, without a decision on it alone.
    pub(crate) fn apply_undecided(&mut self, pod: Pod) {
        let version = self.next_version();
        self.observe(Event::PodApplied(Pod { version, ..pod }));
    }

    pub(crate) fn apply_pod(&mut self, pod: Pod) {
        self.apply_undecided(pod);
        self.decide();
    }

    pub(crate) fn delete_pod(&mut self, pod: &Pod) {
        let version = self.next_version();
        let Pod {
            namespace,
            name,
            uid,
            ..
        } = pod.clone();
        self.observe(Event::PodDeleted {
            namespace,
            name,
            uid: (&uid).into(),
            version,
        });
        self.decide();
    }

    pub(crate) fn apply_replica_set(&mut self, set: ReplicaSet) {
        let version = self.next_version();
        self.observe(Event::ReplicaSetApplied(Box::new(ReplicaSet {
            version,
            ..set
        })));
        self.decide();
    }

    /// The first victim for this number of desired pods.
    pub(crate) fn first_victim(&self, name: &str, replicas: i32) -> Arc<str> {
        let mut copy = SurroundingsCopy::new("default", name, usize::MAX);
        let steps = std::iter::repeat_with(|| copy.step(self.now, &self.controller));
        let known = steps.flatten().next().expect("it ends");
        let decision = known.decide(Some(replicas), &|| true);
        let decision = decision.expect("nothing interrupts it");
        let decision = decision.expect("the story knows this ReplicaSet");
        Arc::clone(&decision.deletes[0].pod.name)
    }

    /// Advances the time second by second, and returns the reported differences.
    pub(crate) fn after(&mut self, span: Span) -> Vec<Difference> {
        let end = self.now.plus(span);
        let mut reported = Vec::new();
        while self.now < end {
            reported.extend(self.step(Span::seconds(1)));
        }
        reported
    }

    /// Advances the time in one step, and returns the reported differences.
    pub(crate) fn step(&mut self, span: Span) -> Vec<Difference> {
        self.now = self.now.plus(span);
        self.controller.handle_timeout(self.now);
        self.decide();
        self.shadow.handle_timeout(self.now, &self.controller);
        std::iter::from_fn(|| self.shadow.poll_difference()).collect()
    }

    /// Judges at `now`, and returns when the next judgement is due.
    pub(crate) fn judges_at(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.shadow.handle_timeout(now, &self.controller);
        self.shadow.poll_timeout()
    }

    pub(crate) fn departures(&mut self, span: Span) -> Vec<(Subject, Option<Departure>)> {
        let reported = self.after(span);
        reported
            .into_iter()
            .map(|Difference { finding, .. }| (finding.subject, finding.departure))
            .collect()
    }

    fn list(&mut self, kind: Kind, objects: Vec<Event>) {
        let version = self.next_version();
        self.controller
            .handle_event(self.now, Event::SnapshotBegin(kind));
        for object in objects {
            self.controller.handle_event(self.now, object);
        }
        let end = Event::SnapshotEnd { kind, version };
        self.controller.handle_event(self.now, end);
    }

    fn observe(&mut self, event: Event) {
        self.shadow.handle_event(self.now, &self.controller, &event);
        self.controller.handle_event(self.now, event);
    }

    /// Polls all decisions, and the agent answers that it only watches.
    fn decide(&mut self) {
        while let Some(batch) = self.controller.poll_batch(self.now) {
            self.shadow.handle_batch(self.now, &batch);
            self.refuse(&batch);
        }
    }

    fn refuse(&mut self, batch: &Batch) {
        for operation in (0..).take(batch.action.operations()) {
            let outcome = Outcome {
                batch: batch.id,
                operation,
                result: OperationResult::NotStarted(NotStarted::NotEnforcing),
            };
            self.controller.handle_outcome(self.now, outcome);
        }
    }

    fn next_version(&mut self) -> Option<ResourceVersion> {
        self.version += 1;
        Some(ResourceVersion(self.version))
    }
}
