//! What a decision on one ReplicaSet reads, taken out of its controller.

use std::{collections::BTreeSet, sync::Arc};

use super::Inspect;
use crate::{
    config::Config,
    decide::{Interrupted, decide_while},
    index::{Entry, PodGroup, Set},
    object::{Key, OwnerReference, Pod, ReplicaSet, Timestamp},
    report::Decision,
};

/// What a decision on one ReplicaSet reads, apart from its controller so that it can be made elsewhere.
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
    /// Returns what a decision on a ReplicaSet reads, also while a list is not complete: of more than `pods_max` pods only so many, and one
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
            let Key {
                namespace, name, ..
            } = &set.object.key;
            (&**namespace, &**name) != (&*around.namespace, &*around.name)
        });
        let related: Vec<&Set> = own.chain(siblings).collect();
        let namespaces = related.iter().map(|set| &*set.object.key.namespace);
        let namespaces: BTreeSet<&str> = namespaces.collect();
        let pods = namespaces
            .into_iter()
            .flat_map(|namespace| self.0.index.pods_in(namespace));
        let read = pods.filter(|pod| {
            let group = self.0.index.group_of(pod);
            related.iter().any(|set| is_read(set, group, pod))
        });
        let read = read.take(pods_max.saturating_add(1));
        around.pods = read.map(|pod| self.0.index.pod_object(pod)).collect();
        around.replica_sets = related.iter().map(|set| set.object.clone()).collect();
        around
    }
}

/// Returns whether a decision on a ReplicaSet or one of its siblings reads a pod: it is theirs, their selector matches it, or it has
/// a name that the ReplicaSet could choose.
fn is_read(set: &Set, group: &PodGroup, pod: &Entry) -> bool {
    let object = &set.object;
    let is_owner = |owner: &OwnerReference| owner.uid == object.key.uid;
    object.key.namespace == group.namespace
        && (pod.controller.as_deref().is_some_and(is_owner)
            || pod.name.starts_with(set.name_base())
            || set
                .selector()
                .is_some_and(|selector| selector.matches(&group.labels)))
}

// === impl Surroundings ===

impl Surroundings {
    /// Returns how many objects have been gathered.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.replica_sets.len() + self.pods.len()
    }

    /// Returns the pods that name the ReplicaSet as their controller, among those that have been gathered.
    pub fn owned(&self) -> impl Iterator<Item = &Pod> {
        let own = self.replica_sets.first().map(|set| &set.key.uid);
        self.pods.iter().filter(move |pod| {
            let owner = pod.controller.as_ref();
            owner.is_some_and(|owner| Some(&owner.uid) == own)
        })
    }

    /// Returns the ReplicaSet itself, if it is there, and then those with the same owner.
    #[must_use]
    pub fn replica_sets(&self) -> &[ReplicaSet] {
        &self.replica_sets
    }

    /// Returns a pod of its namespace by its name, for a decision on a pod that is otherwise.
    pub fn pod_mut(&mut self, name: &str) -> Option<&mut Pod> {
        let namespace = &*self.namespace;
        let mut pods = self.pods.iter_mut();
        pods.find(|pod| &*pod.namespace == namespace && &*pod.name == name)
    }

    /// Returns the decision if `replicas` pods were wanted, or as many as are, all operations taken to succeed; `None` if there is no such
    /// ReplicaSet.
    ///
    /// # Errors
    /// If `go_on` ended it.
    pub fn decide(
        self,
        replicas: Option<i32>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Decision>, Interrupted> {
        let Self {
            namespace,
            name,
            now,
            config,
            mut replica_sets,
            pods,
        } = self;
        let mut asked = replica_sets.iter_mut();
        let asked = asked.find(|set| set.key.name == name && set.key.namespace == namespace);
        if let (Some(set), Some(replicas)) = (asked, replicas) {
            set.replicas = replicas;
        }
        decide_while(now, config, (&namespace, &name), replica_sets, pods, go_on)
    }
}
