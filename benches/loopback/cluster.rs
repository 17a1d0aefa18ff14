//! A cluster in which all writes succeed at once: the outcomes and watch events that an agent would report for each batch.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use decree_api::v1::{self, batch::Action, done::Object, event::Event, reconcile_request::Frame};
use tests::objects;
pub(crate) use tests::objects::events;

/// The ReplicaSets, and the newest version.
pub(crate) struct Cluster {
    replica_sets: HashMap<String, v1::ReplicaSet>,
    version: u64,
}

/// The effects of a batch.
pub(crate) struct Followed {
    pub(crate) outcomes: Frame,
    /// The events of the watches; `None` if the server relies on the outcome itself.
    pub(crate) events: Option<Frame>,
    /// The number of created or deleted pods.
    pub(crate) pods: usize,
}

/// A ReplicaSet with all its `replicas` pods ready.
pub(crate) fn replica_set(name: &str, replicas: i32) -> v1::ReplicaSet {
    let set = objects::replica_set(name).replicas(replicas);
    set.ready(replicas).build()
}

/// A typical pod: two labels, a node, an owner, ready.
pub(crate) fn pod(name: &str, owner: &str, version: u64) -> v1::Pod {
    let mut pod = objects::pod(name, owner).version(version).build();
    pod.labels
        .insert("pod-template-hash".to_owned(), "5f6a8b7c9d".to_owned());
    pod.uid = uid(name);
    pod
}

/// The uid of the pod with this name, in the format of an API server.
pub(crate) fn uid(name: &str) -> String {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let digits = hasher.finish();
    let (high, low) = (digits >> 48, digits & 0xffff_ffff_ffff);
    format!("0b5ae02a-{high:04x}-4d6e-b7d6-{low:012x}")
}

/// Creates `each` pods of each ReplicaSet.
pub(crate) fn pods(replica_sets: &[v1::ReplicaSet], each: i32) -> Vec<v1::Pod> {
    let names = replica_sets
        .iter()
        .flat_map(|set| (0..each).map(move |at| (format!("{}-{at}", set.name), &*set.name)));
    names.map(|(name, owner)| pod(&name, owner, 50)).collect()
}

impl Cluster {
    pub(crate) fn new(replica_sets: &[v1::ReplicaSet]) -> Self {
        let named = replica_sets
            .iter()
            .map(|set| (set.name.clone(), set.clone()));
        Self {
            replica_sets: named.collect(),
            version: 1_000,
        }
    }

    pub(crate) fn version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Makes `count` changes of these pods, in turn, that need no action.
    pub(crate) fn changes(&mut self, pods: &[v1::Pod], count: usize) -> Vec<Event> {
        let changed = |pod: &v1::Pod| {
            let mut pod = pod.clone();
            pod.resource_version = self.version().to_string();
            Event::PodApplied(pod)
        };
        pods.iter().cycle().take(count).map(changed).collect()
    }

    /// Sets the desired replicas.
    pub(crate) fn scale(&mut self, name: &str, replicas: i32) -> Event {
        let version = self.version();
        let set = self.replica_sets.get_mut(name).expect("it is there");
        set.replicas = Some(replicas);
        set.generation += 1;
        set.resource_version = version.to_string();
        Event::ReplicaSetApplied(set.clone())
    }

    /// Whether the status of every ReplicaSet reports `replicas` ready pods at its newest generation.
    pub(crate) fn is_settled(&self, replicas: i32) -> bool {
        self.replica_sets.values().all(|set| {
            set.status.as_ref().is_some_and(|status| {
                status.replicas == replicas
                    && status.ready_replicas == replicas
                    && status.observed_generation == set.generation
            })
        })
    }

    /// Executes a batch.
    pub(crate) fn follow(&mut self, batch: v1::Batch) -> Followed {
        let owner = batch
            .replica_set
            .expect("a batch names its ReplicaSet")
            .name;
        let done: Vec<_> = match batch.action.expect("a batch has an action") {
            Action::Create(create) => {
                let pods = create.names.iter().map(|name| {
                    let version = self.version();
                    Object::Pod(pod(name, &owner, version))
                });
                pods.collect()
            }
            Action::Delete(delete) => {
                let count = delete.victims.len();
                return Followed {
                    outcomes: objects::done(batch.id, vec![Object::Gone(true); count]),
                    events: None,
                    pods: count,
                };
            }
            Action::WriteStatus(write) => {
                let version = self.version();
                let set = self.replica_sets.get_mut(&owner).expect("it is there");
                set.status = write.status;
                set.resource_version = version.to_string();
                vec![Object::ReplicaSet(set.clone())]
            }
            other @ (Action::Claim(_) | Action::Advise(_)) => panic!("needs no {other:?}"),
        };
        let pods = done
            .iter()
            .filter(|it| matches!(it, Object::Pod(_)))
            .count();
        let shown = done.clone().into_iter().filter_map(|object| match object {
            Object::Pod(pod) => Some(Event::PodApplied(pod)),
            Object::ReplicaSet(set) => Some(Event::ReplicaSetApplied(set)),
            Object::Gone(_) => None,
        });
        Followed {
            events: Some(events(shown)),
            outcomes: objects::done(batch.id, done),
            pods,
        }
    }
}
