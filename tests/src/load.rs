//! A controller under load: ReplicaSets of typical pods, at rest, with single events.

use std::sync::Arc;

use decree_core::{
    Action, After, Batch, Config, Controller, Event, Key, Kind, OperationResult, Outcome,
    OwnerReference, Phase, Pod, PodRef, PodState, Ready, ReplicaSet, Requirement, ResourceVersion,
    Selector, Span, Status, Test, Timestamp, Uid, Victim,
};

/// The time of all benchmarks.
const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

/// The number of nodes of the pods.
const NODES: u32 = 100;

/// A controller with ReplicaSets of typical pods, and the state for further events.
#[derive(Debug)]
pub struct Load {
    controller: Controller,
    replica_sets: Vec<ReplicaSet>,
    pods: u32,
    ages: Ages,
    /// The number of pods that the first ReplicaSet has had, and the last of them.
    made: u32,
    newest: Option<PodRef>,
    version: u64,
    rng: u32,
}

/// The times at which the pods became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ages {
    /// Between a minute and a day ago.
    Spread,
    /// All in the same second: the most expensive case of the order of deletion.
    Same,
}

impl Load {
    /// Returns a controller with `replica_sets` ReplicaSets of `pods` ready pods each, and no work left.
    pub fn at_rest(replica_sets: u32, pods: u32, ages: Ages) -> Self {
        let mut load = Self {
            // The benchmark deletes pods often, to measure their replacement.
            controller: Controller::new(Config {
                create_back_off: false,
                ..Config::default()
            }),
            replica_sets: (0..replica_sets).map(|at| replica_set(at, pods)).collect(),
            pods,
            ages,
            made: 0,
            newest: None,
            version: 1,
            rng: 1,
        };
        load.apply(Event::SnapshotBegin(Kind::ReplicaSet));
        for set in load.replica_sets.clone() {
            load.apply(Event::ReplicaSetApplied(Box::new(set)));
        }
        load.apply(Event::SnapshotEnd {
            kind: Kind::ReplicaSet,
            version: None,
        });
        load.apply(Event::SnapshotBegin(Kind::Pod));
        for at in pods..replica_sets * pods {
            let pod = load.pod(at / pods, at % pods, 0);
            load.apply(Event::PodApplied(pod));
        }
        for _ in 0..pods {
            load.add_pod(None);
        }
        load.apply(Event::SnapshotEnd {
            kind: Kind::Pod,
            version: None,
        });
        load.settle();
        load
    }

    /// Returns the controller, without the state of the load itself.
    pub fn into_controller(self) -> Controller {
        self.controller
    }

    /// Runs the controller until it has no work left; all operations succeed at once.
    pub fn settle(&mut self) {
        while let Some(batch) = self.poll() {
            self.obey(&batch);
        }
    }

    /// Applies an event.
    pub fn apply(&mut self, event: Event) {
        self.controller.handle_event(NOW, event);
    }

    /// Applies steady events, each with the sync that it causes.
    ///
    /// # Panics
    /// If one of them leads to a batch.
    pub fn stay_steady(&mut self, events: Vec<Event>) {
        for event in events {
            self.apply(event);
            assert!(self.poll().is_none(), "a steady event changes nothing");
        }
    }

    /// Returns the next batch, and discards the reports.
    pub fn poll(&mut self) -> Option<Batch> {
        let batch = self.controller.poll_batch(NOW);
        while self.controller.poll_report().is_some() {}
        batch
    }

    /// Lets every operation of a batch succeed; the outcomes contain the objects, and the stream shows them after that.
    pub fn obey(&mut self, batch: &Batch) {
        let events: Vec<_> = match &batch.action {
            Action::WriteStatus(status) => vec![self.write_status(&batch.key, status)],
            Action::Create { names, .. } => names.iter().map(|it| self.new_pod(Some(it))).collect(),
            Action::Delete(victims) => {
                let pods = victims.iter().map(|Victim { pod, .. }| pod.clone());
                pods.map(|pod| self.pod_deleted(pod)).collect()
            }
            Action::Claim { .. } | Action::Advise(_) => {
                unreachable!("loads have no orphans, and agents that act")
            }
        };
        for (operation, event) in (0..).zip(&events) {
            let (version, after) = written(event);
            let outcome = Outcome {
                batch: batch.id,
                operation,
                result: OperationResult::Done {
                    version,
                    after: Some(after),
                },
            };
            self.controller.handle_outcome(NOW, outcome);
        }
        events.into_iter().for_each(|event| self.apply(event));
    }

    /// Returns an event of some pod that changes nothing relevant: only the number of restarts.
    pub fn steady_event(&mut self) -> Event {
        self.rng = self.rng.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let sets = u32::try_from(self.replica_sets.len()).expect("loads are small");
        let at = (self.rng >> 8) % (sets * self.pods);
        let restarts = i32::try_from(self.rng >> 16).expect("16 bits fit");
        Event::PodApplied(self.pod(at / self.pods, at % self.pods, restarts))
    }

    /// Returns the deletion event of the newest pod.
    pub fn lost_pod_event(&mut self) -> Event {
        let pod = self.newest.clone().expect("the load has a pod");
        self.pod_deleted(pod)
    }

    /// Adds a pod to the first ReplicaSet.
    pub fn add_pod(&mut self, name: Option<&Arc<str>>) {
        let event = self.new_pod(name);
        self.apply(event);
    }

    fn new_pod(&mut self, name: Option<&Arc<str>>) -> Event {
        let mut pod = self.pod(0, self.made, 0);
        self.made += 1;
        pod.name = name.cloned().unwrap_or(pod.name);
        self.newest = Some(PodRef {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
        });
        Event::PodApplied(pod)
    }

    fn pod_deleted(&mut self, PodRef { name, uid }: PodRef) -> Event {
        Event::PodDeleted {
            namespace: "default".into(),
            name,
            uid,
            version: self.next_version(),
        }
    }

    /// A pod as the agent sends it, with separately allocated strings: two labels, a node, an owner.
    fn pod(&mut self, set: u32, at: u32, restarts: i32) -> Pod {
        let name = format!("web-{set}-{}", scattered(at, 27));
        let age = match self.ages {
            Ages::Spread => i64::from(at % 5000) * 17 + 60,
            Ages::Same => 3600,
        };
        let since = NOW.plus(Span::seconds(-age));
        let Key {
            namespace: _,
            name: owner,
            uid,
        } = &self.replica_sets[set as usize].key;
        Pod {
            namespace: "default".into(),
            name: name.into(),
            uid: Uid(format!("{:08x}-3fd9-4d6e-b7d6-{set:012x}", scattered(at, 32)).into()),
            labels: [
                ("app", owner.to_string()),
                ("pod-template-hash", format!("6b7c{set:06x}")),
            ]
            .map(|(key, value)| (key.into(), value.into()))
            .into(),
            controller: Some(controller("ReplicaSet", owner, &uid.0)),
            version: self.next_version(),
            node: Some(format!("node-{:03}", at % NODES).into()),
            deleted: None,
            waiting: None,
            state: PodState {
                created: Some(since),
                phase: Phase::Running,
                ready: Ready {
                    ready: true,
                    since: Some(since),
                },
                restarts,
                ..PodState::default()
            },
        }
    }

    /// Sets the desired replicas of the first ReplicaSet.
    pub fn scale(&mut self, replicas: i32) {
        let version = self.next_version();
        let set = &mut self.replica_sets[0];
        (set.replicas, set.version, set.generation) = (replicas, version, set.generation + 1);
        let set = set.clone();
        self.apply(Event::ReplicaSetApplied(Box::new(set)));
    }

    fn write_status(&mut self, key: &Key, status: &Status) -> Event {
        let version = self.next_version();
        let set = self.replica_sets.iter_mut().find(|set| set.key == *key);
        let set = set.expect("the controller knows no other ReplicaSet");
        (set.status, set.version) = (status.clone(), version);
        Event::ReplicaSetApplied(Box::new(set.clone()))
    }

    fn next_version(&mut self) -> Option<ResourceVersion> {
        self.version += 1;
        Some(ResourceVersion(self.version))
    }
}

/// The version and the object in the outcome of a write that the stream will show by an event.
fn written(event: &Event) -> (Option<ResourceVersion>, After) {
    match event {
        Event::PodApplied(pod) => (pod.version, After::Pod(Box::new(pod.clone()))),
        Event::ReplicaSetApplied(set) => (set.version, After::ReplicaSet(set.clone())),
        Event::PodDeleted { version, .. } => (*version, After::Gone),
        Event::ReplicaSetDeleted { .. }
        | Event::SnapshotBegin(_)
        | Event::SnapshotEnd { .. }
        | Event::Bookmark { .. } => unreachable!("no operation leads to this"),
    }
}

fn replica_set(at: u32, pods: u32) -> ReplicaSet {
    let name = format!("web-{at}");
    let labels = [("app", name.as_str())];
    let requirement = |(key, value): (&str, &str)| Requirement {
        key: key.into(),
        test: Test::In(vec![value.into()]),
    };
    ReplicaSet {
        selector: Ok(Selector::All(labels.map(requirement).to_vec().into())),
        template_labels: labels.map(|(key, value)| (key.into(), value.into())).into(),
        controller: Some(controller("Deployment", "web", &format!("d-{at}"))),
        key: Key {
            namespace: "default".into(),
            uid: Uid(format!("0b5ae02a-3fd9-4d6e-b7d6-{at:012x}").into()),
            name: name.into(),
        },
        version: Some(ResourceVersion(1)),
        generation: 1,
        deleting: false,
        replicas: i32::try_from(pods).expect("loads are small"),
        min_ready_seconds: 0,
        status: Status::default(),
        resume: "".into(),
        preferences: None,
        replicas_manager: "".into(),
    }
}

fn controller(kind: &str, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".into(),
        kind: kind.into(),
        name: name.into(),
        uid: Uid(uid.into()),
        block_owner_deletion: Some(true),
    }
}

/// Scatters numbers into a random order, like a hash of a name, without collisions within one `bits`.
const fn scattered(at: u32, bits: u32) -> u32 {
    at.wrapping_mul(0x9e37_79b1) & (u32::MAX >> (32 - bits))
}
