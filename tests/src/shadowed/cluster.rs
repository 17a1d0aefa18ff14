//! A cluster of a few ReplicaSets: writes change it, and pods take their steps.

use std::{collections::BTreeMap, sync::Arc};

use server_core::{
    Event, Key, Labels, OwnerReference, Parts, Phase, Pod, PodState, Ready, ReplicaSet,
    ResourceVersion, Selector, Status, Timestamp, Uid,
};

use crate::rng::Rng;

pub(super) const NAMESPACE: &str = "shadowed";
pub(super) const NODES: [&str; 4] = ["node-a", "node-b", "node-c", "node-d"];
/// The ReplicaSets, each with its Deployment and its initial replicas.
const SETS: [(&str, &str, i32); 7] = [
    ("shop-1", "shop", 6),
    ("shop-2", "shop", 0),
    ("cart-1", "cart", 4),
    ("cart-2", "cart", 0),
    ("web", "", 3),
    ("api", "", 5),
    ("queue", "", 2),
];

/// The deletion costs of new pods.
const COSTS: [i32; 6] = [0, 0, 0, 0, -5, 5];

#[derive(Debug)]
pub(super) struct Cluster {
    pods: BTreeMap<Arc<str>, Pod>,
    sets: BTreeMap<Arc<str>, ReplicaSet>,
    version: u64,
    made: u64,
}

/// A name of one pod, unique over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodName {
    pub(super) name: Arc<str>,
    pub(super) uid: Uid,
}

/// A write of the other controller.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Create(Box<ReplicaSet>),
    Delete(PodName),
    Adopt(PodName, Key),
    Release(PodName),
    /// The status of a ReplicaSet, if it still has this version.
    Status(Key, Option<ResourceVersion>, Box<Status>),
}

/// A step of scheduler and kubelet for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Assign,
    BecomeReady,
    Delete,
    Vanish,
}

/// The changes, and the next steps, each after a delay in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) events: Vec<Event>,
    pub(super) steps: Vec<(u64, PodName, Step)>,
}

// === impl Cluster ===

impl Cluster {
    pub(super) fn new() -> Self {
        let sets = SETS.map(|(name, deployment, replicas)| {
            let set = replica_set(name, deployment, replicas);
            (Arc::clone(&set.key.name), set)
        });
        Self {
            pods: BTreeMap::new(),
            sets: sets.into(),
            version: 1,
            made: 0,
        }
    }

    pub(super) fn sets(&self) -> Vec<ReplicaSet> {
        self.sets.values().cloned().collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.sets.keys()
    }

    pub(super) fn replicas(&self, set: &str) -> i32 {
        self.sets.get(set).map_or(0, |set| set.replicas)
    }

    pub(super) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values()
    }

    pub(super) fn write(&mut self, now: Timestamp, write: &Write, rng: &mut Rng) -> Done {
        match write {
            Write::Create(set) => self.create(now, (&set.key.name, Some(&set.key)), rng),
            Write::Delete(pod) => self.delete(pod, rng),
            Write::Adopt(pod, key) => self.change(pod, |pod| {
                if pod.controller.is_none() {
                    pod.controller = Some(reference(key));
                }
            }),
            Write::Release(pod) => self.change(pod, |pod| pod.controller = None),
            Write::Status(key, version, status) => {
                let known = self.sets.get(&key.name);
                if known.is_none_or(|known| known.version != *version) {
                    return Done::default();
                }
                self.change_set(&key.name, |set| set.status = (**status).clone())
            }
        }
    }

    pub(super) fn step(
        &mut self,
        now: Timestamp,
        pod: &PodName,
        step: Step,
        rng: &mut Rng,
    ) -> Done {
        match step {
            Step::Assign => {
                let node: Arc<str> = (*rng.pick(&NODES)).into();
                let mut done = self.change(pod, |pod| {
                    if pod.node.is_none() && pod.state.is_active() {
                        pod.node = Some(node);
                        pod.state.phase = Phase::Running;
                    }
                });
                let wait = slow(rng, 300, 4_000);
                done.steps.push((wait, pod.clone(), Step::BecomeReady));
                done
            }
            Step::BecomeReady => self.change(pod, |pod| {
                if pod.state.is_active() && pod.node.is_some() && !pod.state.ready.ready {
                    let since = Some(now.truncated());
                    pod.state.ready = Ready { ready: true, since };
                }
            }),
            Step::Delete => self.delete(pod, rng),
            Step::Vanish => self.remove(pod),
        }
    }

    /// Creates a pod with the labels of a ReplicaSet, with or without an owner.
    pub(super) fn create(
        &mut self,
        now: Timestamp,
        (app, owner): (&str, Option<&Key>),
        rng: &mut Rng,
    ) -> Done {
        self.made += 1;
        let uid = format!("{:016x}{:016x}", rng.next_u64(), rng.next_u64());
        let pod = Pod {
            namespace: NAMESPACE.into(),
            name: format!("{app}-{:06}", self.made).into(),
            uid: Uid(uid.into()),
            version: None,
            labels: labels(app),
            controller: owner.map(reference),
            node: None,
            state: PodState {
                created: Some(now.truncated()),
                deletion_cost: *rng.pick(&COSTS),
                ..PodState::default()
            },
        };
        let named = PodName::of(&pod);
        self.pods.insert(Arc::clone(&pod.name), pod);
        let mut done = self.change_always(&named, |_| ());
        let wait = slow(rng, 5, 700);
        done.steps.push((wait, named, Step::Assign));
        done
    }

    /// Requests the deletion of a pod. A pod without a node is gone at once.
    pub(super) fn delete(&mut self, pod: &PodName, rng: &mut Rng) -> Done {
        let Some(known) = self.known(pod).filter(|known| !known.state.deleting) else {
            return Done::default();
        };
        if known.node.is_none() || rng.chance(100) {
            return self.remove(pod);
        }
        let mut done = self.change(pod, |pod| pod.state.deleting = true);
        let wait = rng.between(100, 3_000);
        done.steps.push((wait, pod.clone(), Step::Vanish));
        done
    }

    /// Changes an existing pod.
    pub(super) fn change(&mut self, pod: &PodName, change: impl FnOnce(&mut Pod)) -> Done {
        let Some(known) = self.known(pod) else {
            return Done::default();
        };
        let mut changed = known.clone();
        change(&mut changed);
        if changed == *known {
            return Done::default();
        }
        self.change_always(pod, |known| *known = changed)
    }

    pub(super) fn change_set(&mut self, name: &str, change: impl FnOnce(&mut ReplicaSet)) -> Done {
        self.version += 1;
        let version = Some(ResourceVersion(self.version));
        let events = self.sets.get_mut(name).map(|set| {
            change(set);
            set.version = version;
            Event::ReplicaSetApplied(Box::new(set.clone()))
        });
        Done {
            events: events.into_iter().collect(),
            steps: Vec::new(),
        }
    }

    fn known(&self, pod: &PodName) -> Option<&Pod> {
        self.pods.get(&pod.name).filter(|it| it.uid == pod.uid)
    }

    fn change_always(&mut self, pod: &PodName, change: impl FnOnce(&mut Pod)) -> Done {
        self.version += 1;
        let version = Some(ResourceVersion(self.version));
        let events = self.pods.get_mut(&pod.name).map(|pod| {
            change(pod);
            pod.version = version;
            Event::PodApplied(pod.clone())
        });
        Done {
            events: events.into_iter().collect(),
            steps: Vec::new(),
        }
    }

    fn remove(&mut self, pod: &PodName) -> Done {
        if self.known(pod).is_none() {
            return Done::default();
        }
        self.pods.remove(&pod.name);
        self.version += 1;
        let event = Event::PodDeleted {
            namespace: NAMESPACE.into(),
            name: Arc::clone(&pod.name),
            uid: (&pod.uid).into(),
            version: Some(ResourceVersion(self.version)),
        };
        Done {
            events: vec![event],
            steps: Vec::new(),
        }
    }
}

// === impl PodName ===

impl PodName {
    pub(super) fn of(pod: &Pod) -> Self {
        Self {
            name: Arc::clone(&pod.name),
            uid: pod.uid.clone(),
        }
    }
}

// === impl Done ===

impl Done {
    pub(super) fn and(&mut self, other: Self) {
        self.events.extend(other.events);
        self.steps.extend(other.steps);
    }
}

/// Draws a duration in milliseconds; two in five are up to a minute.
fn slow(rng: &mut Rng, low: u64, high: u64) -> u64 {
    let high = if rng.chance(400) { 60_000 } else { high };
    rng.between(low, high)
}

pub(super) fn labels(app: &str) -> Labels {
    [(Arc::from("app"), Arc::from(app))].into_iter().collect()
}

fn replica_set(name: &str, deployment: &str, replicas: i32) -> ReplicaSet {
    let selector = Selector::parse(Some(Parts {
        match_labels: vec![("app", name)],
        match_expressions: Vec::new(),
    }));
    ReplicaSet {
        key: Key {
            namespace: NAMESPACE.into(),
            name: name.into(),
            uid: Uid(format!("uid-{name}").into()),
        },
        version: Some(ResourceVersion(1)),
        generation: 1,
        deleting: false,
        controller: (!deployment.is_empty()).then(|| owner("Deployment", deployment)),
        replicas,
        min_ready_seconds: 0,
        selector,
        template_labels: labels(name),
        status: Status::default(),
        resume: "".into(),
    }
}

fn reference(key: &Key) -> OwnerReference {
    owner("ReplicaSet", &key.name)
}

fn owner(kind: &str, name: &str) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".into(),
        kind: kind.into(),
        name: name.into(),
        uid: Uid(format!("uid-{name}").into()),
        block_owner_deletion: Some(true),
    }
}
