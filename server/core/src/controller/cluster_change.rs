//! The effect of a change of the cluster on its ReplicaSets, from the counts of the index. An answer takes many small steps, between which
//! the cluster may change.

use std::{collections::BTreeSet, sync::Arc};

use super::Controller;
use crate::{
    index::{Entry, Index, PodId, PodWalk, Set, SetId},
    object::Key,
};

const NAMES_MAX: usize = 20;

/// The effect of a change on one ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impact {
    /// The ReplicaSet.
    pub key: Key,
    /// The number of desired pods.
    pub replicas: i32,
    /// The number of active pods before the change.
    pub active: i32,
    /// The number of active pods that the change deletes.
    pub deleted: usize,
    /// The names of these pods, sorted; 20 of them if there are more.
    pub deleted_pods: Vec<Arc<str>>,
    /// For a drain: the number of ready pods that it leaves.
    pub ready_left: Option<i32>,
    /// For a drain: the number of the deleted pods that get replacements in advance.
    pub in_advance: i32,
    /// The number of missing pods after the change. The server creates as many, if the cluster accepts them.
    pub creates: i64,
    /// The number of surplus pods after the change, which the server deletes.
    pub surplus: i64,
    /// The least and the most of these creates that a quota refuses. The order in which ReplicaSets create their pods is not defined.
    pub refused: (i64, i64),
}

/// Looks at one ReplicaSet after the other, in the order of namespace and name.
#[derive(Clone, Debug)]
pub struct ImpactWalk {
    scope: Scope,
    quota: Option<QuotaLimits>,
    after: (Arc<str>, Arc<str>),
    /// The orphans that earlier ReplicaSets adopt. Several may select the same orphan.
    adopted: BTreeSet<PodId>,
}

/// The ReplicaSets that a change concerns.
#[derive(Clone, Debug)]
enum Scope {
    /// Those with an active pod on a node.
    Node(Arc<str>),
    Namespace(Arc<str>),
}

/// The needs of a namespace, or of its part in one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The number of pods that a quota counts.
    pub pods: i64,
    /// The number of missing pods of all ReplicaSets.
    pub creates: i64,
    /// The number of surplus pods of all ReplicaSets, which the server deletes.
    pub surplus: i64,
}

/// What a quota leaves of the creates of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaLimits {
    /// The number of creates for which there is room after the surplus pods are gone.
    pub room: i64,
    /// The number of creates that the quota refuses. It does not depend on the order of the creates.
    pub refused: i64,
}

/// Adds up the needs of a namespace.
#[derive(Clone, Debug)]
pub struct NeedWalk {
    pods: PodWalk,
    replica_sets: ImpactWalk,
    need: Need,
}

impl ImpactWalk {
    /// Finds the ReplicaSets after a namespace and name that lose pods to a drain, which deletes all pods of a node.
    pub fn drain(node: &str, after: (&str, &str)) -> Self {
        Self::over(Scope::Node(node.into()), None, after)
    }

    /// Finds the ReplicaSets of a namespace after a namespace and name of which a quota refuses creates.
    pub fn quota(namespace: &str, limits: QuotaLimits, after: (&str, &str)) -> Self {
        let scope = Scope::Namespace(namespace.into());
        Self::over(scope, Some(limits), after.max((namespace, "")))
    }

    /// Finds the ReplicaSets of a namespace that lack pods or have surplus pods.
    pub fn namespace(namespace: &str) -> Self {
        Self::over(Scope::Namespace(namespace.into()), None, (namespace, ""))
    }

    fn over(scope: Scope, quota: Option<QuotaLimits>, (namespace, name): (&str, &str)) -> Self {
        Self {
            scope,
            quota,
            after: (namespace.into(), name.into()),
            adopted: BTreeSet::new(),
        }
    }

    /// Looks at the next ReplicaSet. Returns `None` after the last one, and `Some(None)` for a ReplicaSet that the change does not concern,
    /// or that needs nothing. The cost is a step for each of its pods.
    pub fn step(&mut self, controller: &Controller) -> Option<Option<Impact>> {
        let index = &controller.index;
        let after = (&*self.after.0, &*self.after.1);
        let id = index.sets_after(Some(after)).next()?;
        let set = index.set(id)?;
        let key = &set.object.key;
        if matches!(&self.scope, Scope::Namespace(namespace) if *namespace != key.namespace) {
            return None;
        }
        self.after = (Arc::clone(&key.namespace), Arc::clone(&key.name));
        Some(self.impact(index, id, set))
    }

    fn impact(&mut self, index: &Index, id: SetId, set: &Set) -> Option<Impact> {
        let node = match &self.scope {
            Scope::Node(node) => Some(index.nodes.find(node)?),
            Scope::Namespace(_) => None,
        };
        let leaves = |pod: &Entry| node.is_some() && pod.node == node;
        let mut impact = Impact {
            key: set.object.key.clone(),
            replicas: set.wanted(),
            active: set.counts.active,
            deleted: 0,
            deleted_pods: Vec::new(),
            ready_left: node.map(|_| set.counts.ready),
            in_advance: 0,
            creates: 0,
            surplus: 0,
            refused: (0, 0),
        };
        let mut hinted = 0;
        if node.is_some() {
            let leaving = index.active_pods(id).filter(|(_, pod)| leaves(pod));
            for (_, pod) in leaving {
                impact.deleted += 1;
                hinted += i32::from(index.hint_of(pod).is_some());
                impact.ready_left = impact
                    .ready_left
                    .map(|it| it - i32::from(pod.counted.ready));
                if impact.deleted <= NAMES_MAX {
                    impact.deleted_pods.push(Arc::clone(&pod.name));
                }
            }
            impact.deleted_pods.sort_unstable();
            let deleted = i32::try_from(impact.deleted).unwrap_or(i32::MAX);
            impact.in_advance = set.surge().min(deleted);
            if impact.deleted == 0 {
                return None;
            }
        }
        if !set.object.deleting && set.selector().is_some() {
            let orphans = index.adoptable(id).into_iter();
            let orphans = orphans.filter(|id| !index.pod(*id).is_some_and(leaves));
            let adopts = orphans.filter(|id| self.adopted.insert(*id)).count();
            let surplus = i64::from(set.counts.active) - i64::from(set.target_without(hinted));
            let surplus = surplus - int(impact.deleted) + int(adopts);
            impact.creates = (-surplus).max(0);
            impact.surplus = surplus.max(0);
        }
        let is_concerned = if let Some(QuotaLimits { room, refused }) = self.quota {
            let creates = impact.creates;
            impact.refused = ((creates - room).max(0), creates.min(refused));
            impact.refused.1 > 0
        } else {
            impact.deleted > 0 || impact.creates > 0 || impact.surplus > 0
        };
        is_concerned.then_some(impact)
    }
}

impl Need {
    /// Adds the needs of another shard.
    pub const fn add(&mut self, other: Self) {
        self.pods += other.pods;
        self.creates += other.creates;
        self.surplus += other.surplus;
    }

    /// Returns what a quota of this number of pods leaves of the creates.
    pub fn under(self, quota: i32) -> QuotaLimits {
        let room = (i64::from(quota) - (self.pods - self.surplus)).max(0);
        let refused = (self.creates - room).max(0);
        QuotaLimits { room, refused }
    }
}

impl NeedWalk {
    /// Begins with nothing.
    pub fn new(namespace: &str) -> Self {
        Self {
            pods: PodWalk::new([namespace.into()]),
            replica_sets: ImpactWalk::namespace(namespace),
            need: Need::default(),
        }
    }

    /// Looks at a few pods or at the next ReplicaSet. Returns the needs at the end.
    pub fn step(&mut self, controller: &Controller) -> Option<Need> {
        if let Some(pods) = self.pods.step(&controller.index) {
            let (index, now) = (&controller.index, controller.clock);
            let counted = pods
                .iter()
                .filter(|(id, pod)| index.is_charged(*id, pod, now));
            self.need.pods += int(counted.count());
        } else {
            match self.replica_sets.step(controller) {
                None => return Some(self.need),
                Some(None) => {}
                Some(Some(Impact {
                    creates, surplus, ..
                })) => {
                    self.need.creates += creates;
                    self.need.surplus += surplus;
                }
            }
        }
        None
    }
}

fn int(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
