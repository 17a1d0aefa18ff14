//! Views of single objects, for shadow mode.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::Inspect;
use crate::{
    compact_uid::CompactUid,
    index::{Index, Set, SetId},
    object::{Key, Kind, Pod, PodState, ReplicaSet, Status, Timestamp, Uid},
    pod_view::OwnerView,
};

/// A ReplicaSet with its pods, as a controller currently knows them.
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
    /// Its UID.
    pub uid: CompactUid,
    /// Its node; `None` while the pod is unassigned.
    pub node: Option<Arc<str>>,
    /// Its plain values.
    pub state: PodState,
}

// === impl Inspect ===

impl<'a> Inspect<'a> {
    /// The pod as the controller knows it.
    #[must_use]
    pub fn pod(self, namespace: &str, name: &str) -> Option<Pod> {
        let (_, entry) = self.0.index.pod_named(namespace, name)?;
        Some(self.0.index.pod_object(entry))
    }

    /// Whether the controller knows that a pod was deleted.
    #[must_use]
    pub fn is_gone_pod(self, uid: &Uid) -> bool {
        let tombstones = &self.0.index.tombstones;
        tombstones.covers(Kind::Pod, &uid.0, None)
    }

    /// Whether a namespace seems to terminate: it has pods, and all of them are terminating. The check takes one of `looks` for each pod,
    /// and does not look if too few are left.
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

    /// The ReplicaSet as the controller knows it.
    #[must_use]
    pub fn replica_set(self, key: &Key) -> Option<KnownSet<'a>> {
        let id = self.0.index.set_named(&key.namespace, &key.name)?;
        self.known(id).filter(|known| known.object().key == *key)
    }

    /// The ReplicaSet that a controller reference in a namespace resolves to.
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
    /// The ReplicaSet.
    #[must_use]
    pub const fn object(&self) -> &'a ReplicaSet {
        &self.set.object
    }

    /// The number of active pods.
    #[must_use]
    pub const fn active(&self) -> i32 {
        self.set.counts.active
    }

    /// The number of desired pods.
    #[must_use]
    pub fn wanted(&self) -> i32 {
        self.set.wanted()
    }

    /// The active pods minus the desired pods; negative if pods are missing.
    #[must_use]
    pub fn surplus(&self) -> i64 {
        self.set.surplus()
    }

    /// Whether it is quarantined.
    #[must_use]
    pub fn is_quarantined(&self) -> bool {
        self.set.quarantine().is_some()
    }

    /// Whether one of its pods is a replica: active and selected.
    #[must_use]
    pub fn is_replica(&self, pod: &Pod) -> bool {
        let selector = self.set.selector();
        pod.state.is_active() && selector.is_some_and(|selector| selector.matches(&pod.labels))
    }

    /// Whether a replica has this name and UID.
    #[must_use]
    pub fn has_replica(&self, name: &str, uid: &CompactUid) -> bool {
        let key = &self.set.object.key;
        let pod = self.index.pod_named(&key.namespace, name);
        pod.is_some_and(|(_, pod)| {
            let owner = pod.controller.as_ref();
            pod.uid == *uid && pod.counted.active && owner.is_some_and(|it| it.uid == key.uid)
        })
    }

    /// The first by name of the orphans to adopt. The cost is a step for each orphan that it may select.
    #[must_use]
    pub fn first_to_adopt(&self) -> Option<&'a Arc<str>> {
        let adoptable = self.index.adoptable(self.id);
        Some(&self.index.pod(*adoptable.first()?)?.name)
    }

    /// Whether it adopts a pod of its namespace in this state.
    #[must_use]
    pub fn is_to_adopt(&self, pod: &Pod) -> bool {
        pod.controller.is_none() && self.is_replica(pod)
    }

    /// Whether it releases one of its pods in this state.
    #[must_use]
    pub fn is_to_release(&self, pod: &Pod) -> bool {
        let selector = self.set.selector();
        pod.state.is_active() && selector.is_some_and(|selector| !selector.matches(&pod.labels))
    }

    /// The names of the pods to release, sorted.
    pub fn releases(&self) -> impl Iterator<Item = &'a Arc<str>> {
        self.set.releases.iter().map(|(name, _)| name)
    }

    /// The replicas, in an unspecified but stable order.
    pub fn replicas(&self) -> impl Iterator<Item = Replica> + use<'a> {
        let index = self.index;
        index.active_pods(self.id).map(|(_, pod)| Replica {
            name: Arc::clone(&pod.name),
            uid: pod.uid.clone(),
            node: index.node_of(pod).cloned(),
            state: pod.state,
        })
    }

    /// The number of active related pods on each node, and of unassigned ones under `None` (spec 7.3).
    #[must_use]
    pub fn related_by_node(&self) -> BTreeMap<Option<Arc<str>>, u32> {
        let mut counts = BTreeMap::new();
        self.index.for_related(self.id, |node, pods| {
            let name = node.and_then(|node| self.index.nodes.name(node)).cloned();
            *counts.entry(name).or_default() += pods;
        });
        counts
    }

    /// The approximate cost of [`Self::related_by_node`], in comparisons.
    #[must_use]
    pub fn related_looks(&self) -> usize {
        self.index.related_looks(self.id)
    }

    /// The status that its pods call for; `None` if the status is up to date.
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
