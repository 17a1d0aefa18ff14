//! The objects that a decision on one ReplicaSet reads, copied from its controller.

use std::{collections::BTreeSet, sync::Arc};

use super::Inspect;
use crate::{
    config::Config,
    decide::{Interrupted, decide_while},
    index::{Entry, PodGroup, Set},
    object::{OwnerReference, Pod, ReplicaSet, Timestamp},
    report::Decision,
};

/// The objects that a decision on one ReplicaSet reads, independent of its controller so that the decision can run elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    namespace: Arc<str>,
    name: Arc<str>,
    now: Timestamp,
    config: Config,
    replica_sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
}

// === impl Inspect ===

impl Inspect<'_> {
    /// Copies the objects that a decision on a ReplicaSet reads, also while a list is incomplete. It copies at most `pods_max` pods and one
    /// more.
    #[must_use]
    pub fn surroundings(
        self,
        now: Timestamp,
        namespace: &str,
        name: &str,
        pods_max: usize,
    ) -> Surroundings {
        let mut around = Surroundings {
            namespace: namespace.into(),
            name: name.into(),
            now: now.max(self.0.clock),
            config: self.0.config.clone(),
            ..Surroundings::default()
        };
        let Some(id) = self.0.index.set_named(namespace, name) else {
            return around;
        };
        let own = self.0.index.set(id).into_iter();
        let siblings = self.0.index.siblings(id).filter(|set| {
            let key = &set.object.key;
            (&*key.namespace, &*key.name) != (namespace, name)
        });
        let related: Vec<&Set> = own.chain(siblings).collect();
        let namespaces = related.iter().map(|set| &*set.object.key.namespace);
        let namespaces: BTreeSet<&str> = namespaces.collect();
        let namespaces = namespaces.into_iter();
        let pods = namespaces.flat_map(|namespace| self.0.index.pods_in(namespace));
        let read = pods.filter(|pod| {
            let group = self.0.index.groups.at(pod.group);
            related.iter().any(|set| is_read(set, group, pod))
        });
        let read = read.take(pods_max.saturating_add(1));
        around.pods = read.map(|pod| self.0.index.pod_object(pod)).collect();
        let copies = related.iter().map(|set| ReplicaSet {
            selector: set
                .quarantine()
                .map_or_else(|| set.object.selector.clone(), Err),
            ..set.object.clone()
        });
        around.replica_sets = copies.collect();
        around
    }
}

/// Whether a decision on a ReplicaSet reads a pod. The ReplicaSet or a sibling owns or selects it, or it has a name that the ReplicaSet
/// could choose.
fn is_read(set: &Set, group: &PodGroup, pod: &Entry) -> bool {
    let object = &set.object;
    let is_owner = |owner: &OwnerReference| owner.uid == object.key.uid;
    object.key.namespace == group.namespace
        && (pod.controller.as_deref().is_some_and(is_owner)
            || pod.name.starts_with(set.name_base())
            || set
                .selector()
                .zip(group.labels.as_ref())
                .is_some_and(|(selector, labels)| selector.matches(labels)))
}

// === impl Surroundings ===

impl Surroundings {
    /// The number of copied objects.
    #[must_use]
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
    #[must_use]
    pub fn replica_sets(&self) -> &[ReplicaSet] {
        &self.replica_sets
    }

    /// A pod of the namespace by its name, to change the pod before the decision.
    pub fn pod_mut(&mut self, name: &str) -> Option<&mut Pod> {
        let namespace = &*self.namespace;
        let mut pods = self.pods.iter_mut();
        pods.find(|pod| &*pod.namespace == namespace && &*pod.name == name)
    }

    /// Returns the decision for `replicas` desired pods, or for the current number, if all operations succeed. Returns `None` if the
    /// ReplicaSet does not exist.
    ///
    /// # Errors
    /// If `go_on` ended the computation.
    pub fn decide(
        self,
        replicas: Option<i32>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Decision>, Interrupted> {
        let (key, mut sets) = ((&*self.namespace, &*self.name), self.replica_sets);
        let mut known = sets.iter_mut();
        let asked = known.find(|set| (&*set.key.namespace, &*set.key.name) == key);
        if let (Some(set), Some(replicas)) = (asked, replicas) {
            set.replicas = replicas;
        }
        decide_while(self.now, self.config, key, sets, self.pods, go_on)
    }
}
