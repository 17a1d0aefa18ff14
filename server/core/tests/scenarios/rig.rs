//! A controller and its surroundings: events in, batches out, and outcomes as the scenario needs them.

use decree_core::{
    Action, After, Batch, Config, Controller, ControllerReport, Decision, Event, FailureClass, Key,
    Kind, NodeChange, OperationResult, Outcome, Pod, Quarantine, ReplicaSet, ResourceVersion, Span,
    Status, Surroundings, SurroundingsCopy, Timestamp, Uid, View,
};

use crate::objects::{START, owner, pod as owned, unready, with};

/// A report of the end of a sync.
pub(crate) struct EndedSync {
    pub(crate) key: Key,
    pub(crate) error: Option<String>,
    pub(crate) requeue_after: Option<Span>,
}

pub(crate) struct Rig {
    pub(crate) controller: Controller,
    pub(crate) now: Timestamp,
    version: u64,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        Self {
            controller: Controller::new(config),
            now: START,
            version: 1000,
        }
    }

    /// The next session of the cluster at the same server, which this one leaves its lost creates to.
    pub(crate) fn successor(&self, config: Config) -> Self {
        let mut next = Self {
            controller: Controller::new(config),
            ..*self
        };
        let left = self.controller.leave();
        next.controller.inherit(self.now, left, Span(0));
        next
    }

    /// A rig whose lists are complete.
    pub(crate) fn of(sets: Vec<ReplicaSet>, pods: Vec<Pod>) -> Self {
        Self::new().listed(sets, pods)
    }

    pub(crate) fn listed(mut self, sets: Vec<ReplicaSet>, pods: Vec<Pod>) -> Self {
        self.list_sets(sets);
        self.list_pods(pods);
        self
    }

    pub(crate) fn list_sets(&mut self, sets: Vec<ReplicaSet>) {
        let sets = sets.into_iter().map(Box::new);
        self.list(Kind::ReplicaSet, sets.map(Event::ReplicaSetApplied));
    }

    pub(crate) fn list_pods(&mut self, pods: Vec<Pod>) {
        self.list(Kind::Pod, pods.into_iter().map(Event::PodApplied));
    }

    fn list(&mut self, kind: Kind, objects: impl Iterator<Item = Event>) {
        self.observe(Event::SnapshotBegin(kind));
        objects.for_each(|event| self.observe(event));
        let version = Some(self.next_version());
        self.observe(Event::SnapshotEnd { kind, version });
    }

    pub(crate) fn observe(&mut self, event: Event) {
        self.controller.handle_event(self.now, event);
    }

    pub(crate) fn change_node(&mut self, change: NodeChange) {
        self.controller.handle_node(self.now, change);
    }

    /// Applies a pod at the next version.
    pub(crate) fn apply_pod(&mut self, pod: Pod) {
        let version = Some(self.next_version());
        self.observe(Event::PodApplied(Pod { version, ..pod }));
    }

    /// Applies a ReplicaSet at the next version.
    pub(crate) fn apply_replica_set(&mut self, set: ReplicaSet) {
        let version = Some(self.next_version());
        self.observe(Event::ReplicaSetApplied(Box::new(ReplicaSet {
            version,
            ..set
        })));
    }

    pub(crate) fn delete_pod(&mut self, pod: &Pod) {
        let version = Some(self.next_version());
        self.observe(Event::PodDeleted {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            version,
        });
    }

    pub(crate) fn next_version(&mut self) -> ResourceVersion {
        self.version += 1;
        ResourceVersion(self.version)
    }

    /// Later versions are above this one.
    pub(crate) fn reach(&mut self, version: Option<ResourceVersion>) {
        self.version = self.version.max(version.map_or(0, |it| it.0));
    }

    pub(crate) fn wait(&mut self, span: Span) {
        self.now = self.now.plus(span);
        self.controller.handle_timeout(self.now);
    }

    pub(crate) fn poll(&mut self) -> Option<Batch> {
        self.controller.poll_batch(self.now)
    }

    /// The next batch, which must exist.
    pub(crate) fn batch(&mut self) -> Batch {
        self.poll().expect("the story comes to a batch here")
    }

    /// The next batch, after all its operations have taken effect.
    pub(crate) fn batch_done(&mut self) -> Batch {
        let batch = self.batch();
        self.succeed(&batch);
        batch
    }

    pub(crate) fn answer(&mut self, batch: &Batch, operation: u32, result: OperationResult) {
        self.controller.handle_outcome(
            self.now,
            Outcome {
                batch: batch.id,
                operation,
                result,
            },
        );
    }

    /// Every operation takes effect, and the agent reports the object after it.
    pub(crate) fn succeed(&mut self, batch: &Batch) {
        for operation in 0..batch.action.operations() {
            self.succeed_one(batch, operation);
        }
    }

    pub(crate) fn succeed_one(&mut self, batch: &Batch, operation: usize) {
        let version = self.next_version();
        let after = self.after(batch, operation, version);
        let operation = u32::try_from(operation).expect("stories are small");
        let version = Some(version);
        self.answer(batch, operation, OperationResult::Done { version, after });
    }

    /// The object after an operation.
    pub(crate) fn after(
        &self,
        batch: &Batch,
        operation: usize,
        version: ResourceVersion,
    ) -> Option<After> {
        let Batch { key, action, .. } = batch;
        let version = Some(version);
        let inspect = self.controller.inspect();
        let pod = match action {
            Action::Create { names, .. } => Pod {
                namespace: key.namespace.clone(),
                ..unready(owned(names.get(operation)?, &key.name))
            },
            Action::Delete(_) => return Some(After::Gone),
            Action::Claim { adopts, releases } => {
                let (pod, controller) = match adopts.get(operation) {
                    Some(orphan) => (orphan, Some(owner(&key.name))),
                    None => (releases.get(operation - adopts.len())?, None),
                };
                let known = inspect.pod(&key.namespace, &pod.name)?;
                Pod {
                    controller,
                    ..known
                }
            }
            Action::Advise(advices) => {
                let advice = advices.get(operation)?;
                let mut pod = inspect.pod(&key.namespace, &advice.pod.name)?;
                pod.state.deletion_cost = advice.cost;
                pod
            }
            Action::WriteStatus(status) => {
                return Some(After::ReplicaSet(Box::new(ReplicaSet {
                    version,
                    status: (**status).clone(),
                    ..inspect.replica_set(key)?.object().clone()
                })));
            }
        };
        Some(After::Pod(Box::new(Pod { version, ..pod })))
    }

    pub(crate) fn fail_all(&mut self, batch: &Batch, class: FailureClass) {
        for operation in 0..u32::try_from(batch.action.operations()).expect("stories are small") {
            self.answer(batch, operation, failed(class, "no"));
        }
    }

    /// Polls and lets everything succeed until nothing is left to do. Returns the batches.
    pub(crate) fn settle(&mut self) -> Vec<Batch> {
        let mut done = Vec::new();
        while let Some(batch) = self.poll() {
            self.succeed(&batch);
            done.push(batch);
            assert!(done.len() < 10_000, "the story never comes to rest");
        }
        done
    }

    pub(crate) fn reports(&mut self) -> Vec<ControllerReport> {
        std::iter::from_fn(|| self.controller.poll_report()).collect()
    }

    /// The kinds that were requested since the last call.
    pub(crate) fn requests(&mut self) -> Vec<Kind> {
        let requests = std::iter::from_fn(|| self.controller.poll_request());
        requests.map(|(kind, _)| kind).collect()
    }

    /// The syncs that ended since the last call.
    pub(crate) fn syncs(&mut self) -> Vec<EndedSync> {
        let mut syncs = Vec::new();
        for report in self.reports() {
            if let ControllerReport::Synced {
                key,
                error,
                requeue_after,
            } = report
            {
                syncs.push(EndedSync {
                    key,
                    error,
                    requeue_after,
                });
            }
        }
        syncs
    }

    /// The errors of the syncs that ended since the last call.
    pub(crate) fn errors(&mut self) -> Vec<String> {
        let syncs = self.syncs().into_iter();
        syncs.filter_map(|sync| sync.error).collect()
    }

    /// The number of creates that are lost if the session ends now.
    pub(crate) fn lost(&self) -> u32 {
        let left = self.controller.leave();
        left.iter().map(|(.., account)| account.lost).sum()
    }

    pub(crate) fn view(&self, name: &str) -> View {
        self.controller
            .inspect()
            .view(self.now, "default", name)
            .expect("the story knows this ReplicaSet")
    }

    pub(crate) fn simulate(&self, name: &str, replicas: i32) -> Decision {
        self.decision("default", name, Some(replicas))
            .expect("the story knows this ReplicaSet")
    }

    /// A copy of the input of a decision.
    pub(crate) fn surroundings(
        &self,
        namespace: &str,
        name: &str,
        objects_max: usize,
    ) -> Surroundings {
        let mut copy = SurroundingsCopy::new(namespace, name, objects_max);
        let steps = std::iter::repeat_with(|| copy.step(self.now, &self.controller));
        steps.flatten().next().expect("it ends")
    }

    /// The decision on a known ReplicaSet for `replicas` desired pods, or for the current number.
    pub(crate) fn decision(
        &self,
        namespace: &str,
        name: &str,
        replicas: Option<i32>,
    ) -> Option<Decision> {
        let known = self.surroundings(namespace, name, usize::MAX);
        let decision = known.decide(replicas, &|| true);
        decision.expect("nothing interrupts it")
    }
}

/// Success without the object after the write.
pub(crate) const BARE: OperationResult = OperationResult::Done {
    version: None,
    after: None,
};

/// Success, with the pod after the write.
pub(crate) fn done(pod: Pod) -> OperationResult {
    OperationResult::Done {
        version: pod.version,
        after: Some(After::Pod(Box::new(pod))),
    }
}

pub(crate) fn failed(class: FailureClass, message: &str) -> OperationResult {
    OperationResult::Failed {
        class,
        message: message.to_owned(),
        retry_after: None,
    }
}

pub(crate) fn created(batch: &Batch) -> Vec<String> {
    let Action::Create { names, .. } = &batch.action else {
        panic!("not a create: {batch:?}")
    };
    names.iter().map(ToString::to_string).collect()
}

pub(crate) fn victims(batch: &Batch) -> Vec<String> {
    let Action::Delete(victims) = &batch.action else {
        panic!("not a delete: {batch:?}")
    };
    let names = victims.iter().map(|victim| victim.pod.name.to_string());
    names.collect()
}

/// Returns active, fully labeled, ready and available pods, and terminating pods.
pub(crate) fn counts(status: &Status) -> ([i32; 4], Option<i32>) {
    (
        [
            status.replicas,
            status.fully_labeled_replicas,
            status.ready_replicas,
            status.available_replicas,
        ],
        status.terminating_replicas,
    )
}

pub(crate) fn invalid() -> Quarantine {
    Quarantine {
        field: "selector".to_owned(),
        detail: "not a selector".to_owned(),
    }
}

pub(crate) fn uid(text: &str) -> Uid {
    Uid(text.into())
}

pub(crate) fn at(pod: Pod, version: u64) -> Pod {
    Pod {
        version: Some(ResourceVersion(version)),
        ..pod
    }
}

pub(crate) fn deleting(pod: Pod) -> Pod {
    with(pod, |state| state.deleting = true)
}
