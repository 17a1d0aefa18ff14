//! The objects that a decision on one ReplicaSet reads, copied from its controller. The copy takes many small steps, between which the
//! cluster may change: it has each pod that existed all the time, as it was at one of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::Arc,
    vec,
};

use super::Controller;
use crate::{
    config::{Config, Costs},
    decide::{Interrupted, Objects, decide_while},
    index::{Entry, GroupId, Index, PodGroup, PodId, PodWalk, Set, SetId},
    node::Node,
    object::{Key, Pod, ReplicaSet, Timestamp},
    preferences::ScaleIn,
    report::Decision,
};

const SETS_IN_A_STEP: usize = 64;

/// The objects that a decision on one ReplicaSet reads, independent of its controller so that the decision can run elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    namespace: Arc<str>,
    name: Arc<str>,
    now: Timestamp,
    config: Config,
    replica_sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    /// The nodes of `pods`, and the active pods on them that are not among these, if a preference reads them.
    nodes: BTreeMap<Arc<str>, Node>,
    others: BTreeMap<Arc<str>, i32>,
}

/// A copy that is being made.
#[derive(Clone, Debug)]
pub struct SurroundingsCopy {
    around: Surroundings,
    objects_max: usize,
    /// The ReplicaSet; `None` before the first step.
    own: Option<SetId>,
    related: Vec<SetId>,
    sets: vec::IntoIter<SetId>,
    /// The pods to look at; `None` before all ReplicaSets are copied.
    pods: Option<PodWalk>,
}

/// All pods in namespaces with ReplicaSets, in the orders in which decisions look for them.
#[derive(Clone, Debug)]
pub struct SurroundingsIndex<'a> {
    controller: &'a Controller,
    by_name: BTreeMap<(&'a str, &'a str), PodId>,
    by_group: BTreeMap<(&'a str, GroupId), Vec<PodId>>,
}

impl SurroundingsCopy {
    /// Begins with nothing. The copy ends early if it has more than `objects_max` objects.
    pub fn new(namespace: &str, name: &str, objects_max: usize) -> Self {
        let around = Surroundings {
            namespace: namespace.into(),
            name: name.into(),
            ..Surroundings::default()
        };
        Self {
            around,
            objects_max,
            own: None,
            related: Vec::new(),
            sets: Vec::new().into_iter(),
            pods: None,
        }
    }

    /// Looks at a few objects, and copies those that the decision reads, also while a list is incomplete. Returns the copy at its end,
    /// without a ReplicaSet if the controller does not know it.
    pub fn step(&mut self, now: Timestamp, controller: &Controller) -> Option<Surroundings> {
        let Some(own) = self.own else {
            return self.begin(now, controller);
        };
        let Surroundings {
            namespace, name, ..
        } = &self.around;
        if controller.index.set_named(namespace, name) != Some(own) {
            return Some(Surroundings::default());
        }
        let is_complete = match &mut self.pods {
            None => {
                self.copy_sets(controller);
                false
            }
            Some(_) => self.copy_pods(controller, own),
        };
        let is_too_large = self.around.objects() > self.objects_max;
        (is_complete || is_too_large).then(|| std::mem::take(&mut self.around))
    }

    fn begin(&mut self, now: Timestamp, controller: &Controller) -> Option<Surroundings> {
        let (index, around) = (&controller.index, &mut self.around);
        around.now = now.max(controller.clock);
        around.config = controller.config.clone();
        let Some(own) = index.set_named(&around.namespace, &around.name) else {
            return Some(std::mem::take(around));
        };
        let siblings = index.sibling_ids(own).filter(|id| *id != own);
        let sets: Vec<_> = [own].into_iter().chain(siblings).collect();
        self.related = sets.clone();
        self.sets = sets.into_iter();
        self.own = Some(own);
        None
    }

    fn copy_sets(&mut self, controller: &Controller) {
        let sets = self.sets.by_ref().take(SETS_IN_A_STEP);
        let sets = sets.filter_map(|id| controller.index.set(id));
        let sets = sets.map(|set| ReplicaSet {
            selector: set
                .quarantine()
                .map_or_else(|| set.object.selector.clone(), Err),
            ..set.object.clone()
        });
        self.around.replica_sets.extend(sets);
        if self.sets.len() == 0 {
            let keys = self.around.replica_sets.iter().map(|set| &set.key);
            let namespaces: BTreeSet<_> = keys.map(|key| Arc::clone(&key.namespace)).collect();
            self.pods = Some(PodWalk::new(namespaces));
        }
    }

    /// Copies the pods among the next ones that the decision reads: the ReplicaSet owns the pod, the ReplicaSet or a sibling selects it,
    /// or it has a name that the ReplicaSet could choose. Returns whether there are no more.
    fn copy_pods(&mut self, controller: &Controller, own: SetId) -> bool {
        let index = &controller.index;
        let walk = self.pods.as_mut().and_then(|pods| pods.step(index));
        let Some((pods, set)) = walk.zip(index.set(own)) else {
            return true;
        };
        let key = &set.object.key;
        let related = self.related.iter().filter_map(|id| index.set(*id));
        let related: Vec<_> = related.collect();
        let mut read = BTreeMap::new();
        for (_, pod) in pods {
            let group = index.groups.at(pod.group);
            let is_read = read
                .entry(pod.group)
                .or_insert_with(|| reads_group(group, key, &related));
            let is_named =
                || group.namespace == key.namespace && pod.name.starts_with(set.name_base());
            if *is_read || is_named() {
                self.around.copy(index, pod);
            }
        }
        false
    }
}

impl<'a> SurroundingsIndex<'a> {
    /// Looks at all pods in namespaces with ReplicaSets.
    pub fn new(controller: &'a Controller) -> Self {
        let index = &controller.index;
        let sets = index.sets_after(None);
        let sets = sets.filter_map(|id| Some(&index.set(id)?.object.key));
        let namespaces: BTreeSet<_> = sets.map(|key| Arc::clone(&key.namespace)).collect();
        let mut walk = PodWalk::new(namespaces);
        let mut found = Self {
            controller,
            by_name: BTreeMap::new(),
            by_group: BTreeMap::new(),
        };
        for (id, pod) in iter::from_fn(|| walk.step(index)).flatten() {
            let group = index.groups.at(pod.group);
            let namespace = &*group.namespace;
            found.by_name.insert((namespace, &*pod.name), id);
            let members = found.by_group.entry((namespace, pod.group)).or_default();
            members.push(id);
        }
        found
    }

    /// Copies what the decision on a ReplicaSet reads; without the ReplicaSet if the controller does not know it.
    pub fn of(&self, now: Timestamp, namespace: &str, name: &str) -> Surroundings {
        let index = &self.controller.index;
        let mut copy = SurroundingsCopy::new(namespace, name, usize::MAX);
        let unknown = copy.begin(now, self.controller);
        let (None, Some(set)) = (unknown, copy.own.and_then(|id| index.set(id))) else {
            return Surroundings::default();
        };
        while copy.pods.is_none() {
            copy.copy_sets(self.controller);
        }
        let related: Vec<_> = copy
            .related
            .iter()
            .filter_map(|id| index.set(*id))
            .collect();
        // Siblings are in other namespaces only where somebody has made them so.
        let namespaces = related.iter().map(|set| &*set.object.key.namespace);
        let namespaces: BTreeSet<&str> = namespaces.collect();
        let groups = namespaces.into_iter().flat_map(|of| {
            let groups = (of, GroupId::MIN)..=(of, GroupId::MAX);
            self.by_group.range(groups)
        });
        let groups = groups
            .filter(|((_, id), _)| reads_group(index.groups.at(*id), &set.object.key, &related));
        let base = set.name_base();
        let named = self.by_name.range((namespace, base)..);
        let named = named.take_while(|((of, name), _)| *of == namespace && name.starts_with(base));
        let named = named.map(|(_, id)| id);
        let pods: BTreeSet<_> = groups.flat_map(|(_, pods)| pods).chain(named).collect();
        let pods = pods.into_iter().filter_map(|id| index.pod(*id));
        pods.for_each(|pod| copy.around.copy(index, pod));
        copy.around
    }
}

/// Whether a decision on a ReplicaSet reads the pods of a group, whatever their names: it owns them, or a related ReplicaSet selects them.
fn reads_group(group: &PodGroup, key: &Key, related: &[&Set]) -> bool {
    let owner = group.controller.as_ref();
    let is_owner = group.namespace == key.namespace && owner.is_some_and(|it| it.uid == key.uid);
    is_owner || related.iter().any(|set| set.selects(group))
}

impl Surroundings {
    fn copy(&mut self, index: &Index, entry: &Entry) {
        let pod = index.pod_object(entry);
        let own = self.replica_sets.first();
        if own.is_some_and(|set| set.scale_in().contains(&ScaleIn::EmptiestNode))
            && pod.state.is_active()
            && let Some(node) = &pod.node
        {
            let all = || index.nodes.active_on(entry.node).cast_signed();
            let others = self.others.entry(Arc::clone(node)).or_insert_with(all);
            *others -= 1;
        }
        if own.is_some_and(ReplicaSet::reads_nodes)
            && let Some(node) = index.nodes.shown(entry.node)
        {
            let known = self.nodes.entry(Arc::clone(&node.name));
            known.or_insert_with(|| node.clone());
        }
        self.pods.push(pod);
    }

    /// Lets the decision assume that pods with these names have answered so for their costs.
    pub fn give_costs(&mut self, costs: Costs) {
        self.config.costs = costs;
    }

    /// The number of copied objects.
    pub fn objects(&self) -> usize {
        self.replica_sets.len() + self.pods.len()
    }

    /// The copied pods that name the ReplicaSet as their controller.
    pub fn owned(&self) -> impl Iterator<Item = &Pod> {
        let own = self.replica_sets.first().map(|set| &set.key.uid);
        self.pods.iter().filter(move |pod| {
            let owner = pod.controller.as_ref();
            owner.is_some_and(|owner| Some(&owner.uid) == own)
        })
    }

    /// The ReplicaSet itself, if it exists, and then the ReplicaSets with the same owner.
    pub fn replica_sets(&self) -> &[ReplicaSet] {
        &self.replica_sets
    }

    /// The pods of the namespace, to change them before the decision.
    pub fn pods_mut(&mut self) -> impl Iterator<Item = &mut Pod> {
        let namespace = &*self.namespace;
        let pods = self.pods.iter_mut();
        pods.filter(move |pod| &*pod.namespace == namespace)
    }

    /// Returns the decision for `replicas` desired pods, or for the current number, if all operations succeed. If another controller acts
    /// by our advice, it is that controller's decision, with the costs that are written. Returns `None` if the ReplicaSet does not exist.
    ///
    /// # Errors
    /// If `go_on` ended the computation.
    pub fn decide(
        self,
        replicas: Option<i32>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Decision>, Interrupted> {
        let (key, mut sets) = ((&*self.namespace, &*self.name), self.replica_sets);
        let mut config = self.config;
        if std::mem::take(&mut config.advises) {
            // The other controller knows no preferences.
            sets.iter_mut().for_each(|set| set.preferences = None);
        }
        let mut known = sets.iter_mut();
        let asked = known.find(|set| (&*set.key.namespace, &*set.key.name) == key);
        if let (Some(set), Some(replicas)) = (asked, replicas) {
            set.replicas = replicas;
        }
        let objects = Objects {
            replica_sets: sets,
            pods: self.pods,
            nodes: self.nodes.into_values().collect(),
            others: self.others,
        };
        decide_while(self.now, config, key, objects, go_on)
    }
}
