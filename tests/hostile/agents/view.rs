//! The agent's view of its cluster, as it streams it.

use std::collections::{BTreeMap, BTreeSet};

use decree_api::v1::{self, batch::Action, event::Event, reconcile_request::Frame};
use tests::{objects::set_ref, oracle::operations};

/// The letters of suffixes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The objects by uid, and the counts over all sessions of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The number of streams or connections.
    pub(crate) sessions: u64,
    /// The number of lists, of either kind.
    pub(crate) lists: u64,
    /// What the cluster became after it had settled.
    pub(crate) violations: Vec<String>,
    replica_sets: BTreeMap<String, v1::ReplicaSet>,
    pods: BTreeMap<String, v1::Pod>,
    settled: Option<State>,
    is_greeted: bool,
    listed: BTreeSet<i32>,
    batch_last: u64,
    sent: u64,
    answered: u64,
}

/// What no act of the server may change: ReplicaSets, and the existence and owners of pods.
#[derive(Clone, Debug, PartialEq)]
struct State {
    replica_sets: BTreeMap<String, v1::ReplicaSet>,
    pods: BTreeSet<(String, String, bool)>,
}

impl View {
    pub(super) fn replica_sets(&self) -> Vec<v1::ReplicaSet> {
        self.replica_sets.values().cloned().collect()
    }

    /// Whether each ReplicaSet has had its desired pods, so that the attack began.
    pub(super) const fn is_settled(&self) -> bool {
        self.settled.is_some()
    }

    pub(super) fn begin_session(&mut self) {
        self.sessions += 1;
        (self.is_greeted, self.batch_last) = (false, 0);
        (self.sent, self.answered) = (0, 0);
        self.listed.clear();
    }

    pub(super) const fn is_greeted(&self) -> bool {
        self.is_greeted
    }

    pub(super) fn is_listed(&self) -> bool {
        self.listed.len() == 2
    }

    pub(super) const fn is_answered(&self) -> bool {
        self.answered >= self.sent
    }

    /// Takes a frame of the agent.
    pub(super) fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Hello(_) => self.is_greeted = true,
            Frame::SnapshotBegin(begin) => {
                self.lists += 1;
                self.listed.remove(&begin.kind);
                match begin.kind() {
                    v1::Kind::Pod => self.pods.clear(),
                    v1::Kind::ReplicaSet => self.replica_sets.clear(),
                    v1::Kind::Unspecified => {}
                }
            }
            Frame::SnapshotObjects(objects) => {
                let sets = objects.replica_sets.into_iter();
                self.replica_sets
                    .extend(sets.map(|set| (set.uid.clone(), set)));
                let pods = objects.pods.into_iter();
                self.pods.extend(pods.map(|pod| (pod.uid.clone(), pod)));
            }
            Frame::SnapshotEnd(end) => drop(self.listed.insert(end.kind)),
            Frame::Events(events) => events
                .events
                .into_iter()
                .for_each(|event| self.apply(event)),
            Frame::Outcomes(outcomes) => self.answered += outcomes.outcomes.len() as u64,
            Frame::Heartbeat(_) | Frame::Nodes(_) | Frame::Costs(_) => {}
        }
        if self.is_listed() {
            self.compare();
        }
    }

    /// The batches that an honest server would send at the start.
    pub(super) fn desired_batches(&mut self) -> Vec<v1::Batch> {
        let mut batches = Vec::new();
        for set in self.replica_sets() {
            let missing = desired(&set).saturating_sub(self.pods_of(&set.uid));
            if missing > 0 && !self.is_settled() {
                let prefix = format!("{}-", set.name);
                let names = (0..missing as u64).map(|at| format!("{prefix}{}", suffix(at)));
                let action = create(&prefix, names.collect());
                batches.push(self.batch(&set, action));
            }
        }
        batches
    }

    /// The next batch for a ReplicaSet.
    pub(super) fn batch(&mut self, set: &v1::ReplicaSet, action: Action) -> v1::Batch {
        self.batch_last += 1;
        let batch = v1::Batch {
            id: self.batch_last,
            replica_set: Some(set_ref(set)),
            generation: set.generation,
            replica_set_version: set.resource_version.clone(),
            guard: Some(v1::Guard {
                session_id: "s".to_owned(),
                epoch: 0,
            }),
            action: Some(action),
            ..v1::Batch::default()
        };
        self.sent += operations(&batch) as u64;
        batch
    }

    /// The number of active pods of a ReplicaSet.
    fn pods_of(&self, uid: &str) -> usize {
        let pods = self.pods.values();
        pods.filter(|pod| pod.deletion_timestamp.is_none() && controller(pod) == uid)
            .count()
    }

    fn apply(&mut self, event: v1::Event) {
        match event.event {
            Some(Event::PodApplied(pod)) => drop(self.pods.insert(pod.uid.clone(), pod)),
            Some(Event::ReplicaSetApplied(set)) => {
                self.replica_sets.insert(set.uid.clone(), set);
            }
            Some(Event::Deleted(deleted)) => {
                let uid = deleted.object.unwrap_or_default().uid;
                self.pods.remove(&uid);
                self.replica_sets.remove(&uid);
            }
            Some(Event::Bookmark(_)) | None => {}
        }
    }

    fn compare(&mut self) {
        let pods = self.pods.values().map(|pod| {
            let owner = controller(pod).to_owned();
            (pod.uid.clone(), owner, pod.deletion_timestamp.is_some())
        });
        let state = State {
            replica_sets: self.replica_sets.clone(),
            pods: pods.collect(),
        };
        let has_pods = |set: &v1::ReplicaSet| self.pods_of(&set.uid) == desired(set);
        match &self.settled {
            Some(settled) if *settled == state => {}
            Some(settled) => self
                .violations
                .push(format!("{settled:?} became {state:?}")),
            None if self.replica_sets.values().all(has_pods) => self.settled = Some(state),
            None => {}
        }
    }
}

fn desired(set: &v1::ReplicaSet) -> usize {
    usize::try_from(set.replicas.unwrap_or(1)).unwrap_or(0)
}

fn controller(pod: &v1::Pod) -> &str {
    pod.controller
        .as_ref()
        .map_or("", |owner| owner.uid.as_str())
}

/// A create in the format of an honest server.
pub(super) fn create(generate_name: &str, names: Vec<String>) -> Action {
    Action::Create(v1::Create {
        names,
        generate_name: generate_name.to_owned(),
        slow_start_initial: 500,
    })
}

/// A suffix in the format of the API server, different for each number.
pub(super) fn suffix(mut number: u64) -> String {
    let letters = (0..5).map(|_| {
        let letter = ALPHABET[usize::try_from(number % 27).expect("it is small")];
        number /= 27;
        char::from(letter)
    });
    letters.collect()
}
