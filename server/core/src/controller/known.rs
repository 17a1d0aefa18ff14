//! Views of single objects, for shadow mode.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::Inspect;
use crate::{
    compact_uid::CompactUid,
    index::{Index, Set, SetId},
    object::{Key, Pod, PodState, ReplicaSet, Status, Timestamp, Uid},
    pod_view::OwnerView,
};

/// A ReplicaSet as a controller knows it at this moment, with its pods.
#[derive(Clone, Copy)]
pub struct KnownSet<'a> {
    index: &'a Index,
    id: SetId,
    set: &'a Set,
}

/// An active pod that a ReplicaSet owns and selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: CompactUid,
    /// Its node; `None` while it is unassigned.
    pub node: Option<Arc<str>>,
    /// Its plain values.
    pub state: PodState,
}

// === impl Inspect ===

impl<'a> Inspect<'a> {
    /// Returns a pod as it is known.
    #[must_use]
    pub fn pod(self, namespace: &str, name: &str) -> Option<Pod> {
        let (_, entry) = self.0.index.pod_named(namespace, name)?;
        Some(self.0.index.pod_object(entry))
    }

    /// Returns whether a pod is known to be gone.
    #[must_use]
    pub fn is_gone_pod(self, uid: &Uid) -> bool {
        self.0.index.is_gone_pod(uid)
    }

    /// Returns whether a namespace seems to end: it has pods, and all of them are on their way out. It takes a look from `looks` for each
    /// pod; where there are too few, it does not look.
    #[must_use]
    pub fn is_namespace_ending(self, namespace: &str, looks: &mut usize) -> bool {
        let names = self.0.index.names_in(namespace);
        let Some(left) = looks.checked_sub(names).filter(|_| names > 0) else {
            return false;
        };
        *looks = left;
        let mut pods = self.0.index.pods_in(namespace);
        pods.all(|pod| !pod.state.is_active())
    }

    /// Returns a ReplicaSet as it is known.
    #[must_use]
    pub fn replica_set(self, key: &Key) -> Option<KnownSet<'a>> {
        let id = self.0.index.set_named(&key.namespace, &key.name)?;
        self.known(id).filter(|known| known.object().key == *key)
    }

    /// Returns the ReplicaSet of a namespace that a controller reference resolves to.
    #[must_use]
    pub fn owner(self, namespace: &str, owner: OwnerView<'_>) -> Option<KnownSet<'a>> {
        self.known(self.0.index.resolve(namespace, owner)?)
    }

    fn known(self, id: SetId) -> Option<KnownSet<'a>> {
        let (index, set) = (&self.0.index, self.0.index.set(id)?);
        Some(KnownSet { index, id, set })
    }
}

// === impl KnownSet ===

impl<'a> KnownSet<'a> {
    /// Returns the ReplicaSet.
    #[must_use]
    pub const fn object(&self) -> &'a ReplicaSet {
        &self.set.object
    }

    /// Returns how many of its pods are active.
    #[must_use]
    pub const fn active(&self) -> i32 {
        self.set.counts.active
    }

    /// Returns how many pods are wanted.
    #[must_use]
    pub fn wanted(&self) -> i32 {
        self.set.wanted()
    }

    /// Returns how many active pods there are too many; negative if there are too few.
    #[must_use]
    pub fn surplus(&self) -> i64 {
        self.set.surplus()
    }

    /// Returns whether a pod that it owns counts as one of its replicas: it is active and selected.
    #[must_use]
    pub fn is_replica(&self, pod: &Pod) -> bool {
        let selector = self.set.selector();
        pod.state.is_active() && selector.is_some_and(|selector| selector.matches(&pod.labels))
    }

    /// Returns whether a pod of this name and uid is among its replicas.
    #[must_use]
    pub fn has_replica(&self, name: &str, uid: &Uid) -> bool {
        let key = &self.set.object.key;
        let pod = self.index.pod_named(&key.namespace, name);
        pod.is_some_and(|(_, pod)| {
            let owner = pod.controller.as_ref();
            pod.uid.is(&uid.0) && pod.counted.active && owner.is_some_and(|it| it.uid == key.uid)
        })
    }

    /// Returns the first by name of the orphans that it is to adopt. Costs a look at each orphan that it may select.
    #[must_use]
    pub fn first_to_adopt(&self) -> Option<&'a Arc<str>> {
        let adoptable = self.index.adoptable(self.id);
        Some(&self.index.pod(*adoptable.first()?)?.name)
    }

    /// Returns whether it is to adopt a pod of its namespace that is known like this.
    #[must_use]
    pub fn is_to_adopt(&self, pod: &Pod) -> bool {
        pod.controller.is_none() && self.is_replica(pod)
    }

    /// Returns whether it is to release a pod that it owns and that is known like this.
    #[must_use]
    pub fn is_to_release(&self, pod: &Pod) -> bool {
        let selector = self.set.selector();
        pod.state.is_active() && selector.is_some_and(|selector| !selector.matches(&pod.labels))
    }

    /// Returns the names of the pods that it is to release, sorted.
    pub fn releases(&self) -> impl Iterator<Item = &'a Arc<str>> {
        self.set.releases.iter().map(|(name, _)| name)
    }

    /// Returns its replicas, in no particular but always the same order.
    pub fn replicas(&self) -> impl Iterator<Item = Replica> + use<'a> {
        let index = self.index;
        index.active_pods(self.id).map(|(_, pod)| Replica {
            name: Arc::clone(&pod.name),
            uid: pod.uid.clone(),
            node: index.node_of(pod).cloned(),
            state: pod.state,
        })
    }

    /// Returns how many active related pods each node has, and how many are unassigned (spec 7.3).
    #[must_use]
    pub fn related_by_node(&self) -> BTreeMap<Option<Arc<str>>, u32> {
        let mut counts = BTreeMap::new();
        self.index.for_related(self.id, |node, pods| {
            let name = node.and_then(|node| self.index.node(node)).cloned();
            *counts.entry(name).or_default() += pods;
        });
        counts
    }

    /// Returns about how many looks [`Self::related_by_node`] costs.
    #[must_use]
    pub fn related_looks(&self) -> usize {
        self.index.related_looks(self.id)
    }

    /// Returns the status that its pods call for; `None` if it is there already.
    #[must_use]
    pub fn status_due(&self, now: Timestamp) -> Option<Status> {
        self.set.status_due(now)
    }
}

impl fmt::Debug for KnownSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownSet").field(self.object()).finish()
    }
}
