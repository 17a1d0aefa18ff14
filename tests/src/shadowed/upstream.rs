//! The other controller, after upstream: it claims, creates or deletes pods, writes the status, and waits until it sees its own
//! writes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use server_core::{Event, Key, Pod, ReplicaSet, Status, Timestamp, Uid};

use super::{
    cluster::{PodName, Write},
    fault::Fault,
    order::{Ranked, by_node, sort},
};
use crate::rng::Rng;

#[derive(Debug)]
pub(super) struct Upstream {
    pods: BTreeMap<Arc<str>, Pod>,
    sets: BTreeMap<Arc<str>, ReplicaSet>,
    syncs: BTreeMap<Arc<str>, Sync>,
    fault: Option<Fault>,
}

/// The state of the other controller for a ReplicaSet.
#[derive(Debug, Default)]
struct Sync {
    is_queued: bool,
    is_busy: bool,
    /// Whether there was an event since the start of the sync.
    again: bool,
    /// The number of created pods that the stream has not shown.
    unseen: usize,
    /// The deleted pods whose deletion the stream has not shown.
    going: BTreeSet<Uid>,
}

/// A ReplicaSet with its claimed pods.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    pub(super) set: ReplicaSet,
    pods: Vec<Pod>,
    terminating: i32,
    /// Whether the stream has shown all writes.
    is_due: bool,
}

/// The writes of a sync.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) creates: Vec<Write>,
    pub(super) deletes: Vec<Write>,
    pub(super) status: Option<Write>,
}

// === impl Upstream ===

impl Upstream {
    pub(super) fn new(sets: Vec<ReplicaSet>, fault: Option<Fault>) -> Self {
        let sets = sets.into_iter();
        Self {
            pods: BTreeMap::new(),
            sets: sets.map(|set| (Arc::clone(&set.key.name), set)).collect(),
            syncs: BTreeMap::new(),
            fault,
        }
    }

    /// Takes an event of a stream, and returns the affected ReplicaSets.
    pub(super) fn see(&mut self, event: Event) -> BTreeSet<Arc<str>> {
        match event {
            Event::PodApplied(pod) => {
                let before = self.pods.get(&pod.name).cloned();
                let mut concerned = self.concerned(&pod);
                if let Some(owner) = &pod.controller {
                    let sync = self.syncs.entry(Arc::clone(&owner.name)).or_default();
                    if before.is_none() {
                        sync.unseen = sync.unseen.saturating_sub(1);
                    }
                    if pod.state.deleting {
                        sync.going.remove(&pod.uid);
                    }
                }
                concerned.extend(before.iter().flat_map(|before| self.concerned(before)));
                self.pods.insert(Arc::clone(&pod.name), pod);
                concerned
            }
            Event::PodDeleted { name, .. } => {
                let Some(pod) = self.pods.remove(&name) else {
                    return BTreeSet::new();
                };
                let mut concerned = self.concerned(&pod);
                for (name, sync) in &mut self.syncs {
                    if sync.going.remove(&pod.uid) {
                        concerned.insert(Arc::clone(name));
                    }
                }
                concerned
            }
            Event::ReplicaSetApplied(set) => {
                let name = Arc::clone(&set.key.name);
                self.sets.insert(Arc::clone(&name), *set);
                [name].into()
            }
            Event::ReplicaSetDeleted { .. }
            | Event::SnapshotBegin(_)
            | Event::SnapshotEnd { .. }
            | Event::Bookmark { .. } => BTreeSet::new(),
        }
    }

    /// Queues a ReplicaSet. Returns whether its sync is due.
    pub(super) fn enqueue(&mut self, set: &Arc<str>) -> bool {
        let sync = self.syncs.entry(Arc::clone(set)).or_default();
        if sync.is_busy {
            sync.again = true;
            return false;
        }
        !std::mem::replace(&mut sync.is_queued, true)
    }

    /// Starts the sync of a ReplicaSet: returns the pods that it claims, and the writes for the claims.
    pub(super) fn sync(&mut self, name: &Arc<str>) -> Option<(Claimed, Vec<Write>)> {
        let set = self.sets.get(name)?.clone();
        let sync = self.syncs.entry(Arc::clone(name)).or_default();
        (sync.is_queued, sync.is_busy) = (false, true);
        let is_due = sync.unseen == 0 && sync.going.is_empty();
        let (mut pods, mut writes, mut terminating) = (Vec::new(), Vec::new(), 0);
        for pod in self.pods.values() {
            let owner = pod.controller.as_ref();
            let owned = owner.is_some_and(|owner| owner.uid == set.key.uid);
            terminating += i32::from(owned && pod.state.is_terminating());
            if !pod.state.is_active() || owner.is_some() && !owned {
                continue;
            }
            match (owned, self.selects(&set, pod)) {
                (true, false) => writes.push(Write::Release(PodName::of(pod))),
                (false, true) => {
                    writes.push(Write::Adopt(PodName::of(pod), set.key.clone()));
                    pods.push(pod.clone());
                }
                (true, true) => pods.push(pod.clone()),
                (false, false) => {}
            }
        }
        let claimed = Claimed {
            set,
            pods,
            terminating,
            is_due: is_due || self.fault == Some(Fault::Impatient),
        };
        Some((claimed, writes))
    }

    /// Decides the creates, the victims, and the status.
    pub(super) fn manage(&mut self, now: Timestamp, claimed: &Claimed, rng: &mut Rng) -> Plan {
        let set = &claimed.set;
        let wanted = usize::try_from(set.replicas).unwrap_or(0);
        let mut plan = Plan {
            status: self.status(claimed),
            ..Plan::default()
        };
        let missing = wanted.saturating_sub(claimed.pods.len());
        let surplus = claimed.pods.len().saturating_sub(wanted);
        if claimed.is_due && missing > 0 {
            let creates = match self.fault {
                Some(Fault::MakesOneMore) => missing + 1,
                Some(Fault::MakesOneLess) => missing - 1,
                Some(_) | None => missing,
            };
            plan.creates = vec![Write::Create(Box::new(set.clone())); creates];
            self.syncs
                .entry(Arc::clone(&set.key.name))
                .or_default()
                .unseen = creates;
        } else if claimed.is_due && surplus > 0 {
            let count = match self.fault {
                Some(Fault::DeletesOneMore) => surplus + 1,
                Some(Fault::DeletesOneLess) => surplus - 1,
                Some(_) | None => surplus,
            };
            let victims = self.victims(now, claimed, count, rng);
            let going = victims.iter().filter(|victim| {
                let known = self.pods.get(&victim.name);
                known.is_some_and(|known| known.uid == victim.uid && !known.state.deleting)
            });
            let going = going.map(|victim| victim.uid.clone()).collect();
            self.syncs
                .entry(Arc::clone(&set.key.name))
                .or_default()
                .going = going;
            plan.deletes = victims.into_iter().map(Write::Delete).collect();
        }
        plan
    }

    /// Ends the sync of a ReplicaSet. Returns whether another sync is due.
    pub(super) fn end(&mut self, set: &Arc<str>) -> bool {
        let sync = self.syncs.entry(Arc::clone(set)).or_default();
        sync.is_busy = false;
        std::mem::take(&mut sync.again)
    }

    /// The ReplicaSets affected by a change of a pod: its owner, or for an orphan all that select it.
    fn concerned(&self, pod: &Pod) -> BTreeSet<Arc<str>> {
        if let Some(owner) = &pod.controller {
            return [Arc::clone(&owner.name)].into();
        }
        let selecting = self.sets.values().filter(|set| self.selects(set, pod));
        selecting.map(|set| Arc::clone(&set.key.name)).collect()
    }

    fn selects(&self, set: &ReplicaSet, pod: &Pod) -> bool {
        let is_stranger = pod.labels.get("app").is_none_or(|app| **app == *"away");
        if is_stranger && self.fault == Some(Fault::AdoptsStrangers) {
            return *set.key.name == *"web";
        }
        set.selector
            .as_ref()
            .is_ok_and(|selector| selector.matches(&pod.labels))
    }

    fn victims(
        &self,
        now: Timestamp,
        claimed: &Claimed,
        count: usize,
        rng: &mut Rng,
    ) -> Vec<PodName> {
        let related = by_node(self.related(&claimed.set).into_iter());
        let pods = claimed.pods.iter().map(|pod| Ranked {
            pod,
            rank: related.get(&pod.node).copied().unwrap_or(0),
        });
        let mut pods: Vec<_> = pods.collect();
        if count < pods.len() {
            sort(&mut pods, now, self.fault, rng);
        }
        pods.iter()
            .take(count)
            .map(|ranked| PodName::of(ranked.pod))
            .collect()
    }

    /// The pods that the ReplicaSets of the same Deployment select; none without a Deployment.
    fn related(&self, set: &ReplicaSet) -> Vec<&Pod> {
        if set.controller.is_none() {
            return Vec::new();
        }
        let siblings = self
            .sets
            .values()
            .filter(|it| it.controller == set.controller);
        let siblings: Vec<_> = siblings.collect();
        let pods = self.pods.values();
        pods.filter(|pod| siblings.iter().any(|it| self.selects(it, pod)))
            .collect()
    }

    fn status(&self, claimed: &Claimed) -> Option<Write> {
        let Claimed {
            set,
            pods,
            terminating,
            is_due: _,
        } = claimed;
        let count = |is: fn(&Pod) -> bool| {
            let count = pods.iter().filter(|pod| is(pod)).count();
            i32::try_from(count).unwrap_or(i32::MAX)
        };
        let all = count(|_| true);
        let ready = match self.fault {
            Some(Fault::StatusTooGood) => all + 1,
            Some(_) | None => count(|pod| pod.state.ready.ready),
        };
        let status = Status {
            replicas: all,
            fully_labeled_replicas: all,
            ready_replicas: ready,
            available_replicas: ready,
            terminating_replicas: Some(*terminating),
            observed_generation: set.generation,
            conditions: Vec::new(),
        };
        let write = |key: &Key| Write::Status(key.clone(), set.version, Box::new(status.clone()));
        (status != set.status).then(|| write(&set.key))
    }
}
