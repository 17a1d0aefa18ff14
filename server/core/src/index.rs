//! Everything the core knows of the cluster, indexed by name, owner, group and sibling, with counts that each change updates.
//!
//! **Invariant:** the cost of a change of one pod does not depend on the number of pods of its ReplicaSet.
//! **Invariant:** an object never goes back to an older version, and a deleted object never comes back. The index remembers a deleted
//! object until the stream has passed its end. After that, an unknown object of a passed version is a deleted one.

mod cost;
mod counting;
mod evictions;
pub(crate) mod forgetting;
mod group;
mod large;
pub(crate) mod ledger;
mod map;
mod namespaces;
mod nodes;
pub(crate) mod paid;
mod pod;
mod pods;
mod rewrites;
mod set;
mod sets;
mod slab;
mod tombstones;
mod unlisted;
mod walk;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    sync::Arc,
};

use self::{
    group::Groups, large::LargeObjects, map::Map, namespaces::Namespaces, nodes::Nodes, slab::Slab,
    tombstones::Tombstones,
};
pub(crate) use self::{
    group::{GroupId, PodGroup},
    ledger::{Ledger, Loss, Made},
    nodes::NodeId,
    pod::{Entry, PodId},
    set::{Counts, Set, SetId},
    unlisted::EndedList,
    walk::PodWalk,
};
use crate::{
    held::Held,
    labels::Labels,
    names::NameSeed,
    object::{Key, Kind, Pod, ReplicaSet, Timestamp, Uid},
    pod_view::{OwnerView, PodView},
    sync::advise::Advised,
    sync::asking::Questions,
};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// The maximum, in bytes.
    pub(crate) max: usize,
    /// What stays free beside objects that come back.
    pub(crate) spare: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    pods: Slab<Entry>,
    pub(crate) pod_count: usize,
    pub(crate) groups: Groups,
    pub(crate) namespaces: Namespaces,
    /// The deletion timestamps of pods that have one.
    deletions: BTreeMap<PodId, Timestamp>,
    /// The pods whose controller reference names an unknown ReplicaSet.
    owned_by_unknown: Map<Key, Vec<PodId>>,
    pub(crate) sets: BTreeMap<SetId, Box<Set>>,
    next_set: SetId,
    /// The largest number of pods that any ReplicaSet has had.
    pub(crate) largest_set: usize,
    /// ReplicaSets by the uid of their own controller (spec 3.1).
    siblings: BTreeSet<(Uid, SetId)>,
    pub(crate) nodes: Nodes,
    /// The waiting reasons of pods, shared as the names of nodes are.
    pub(crate) waiting: Nodes,
    pub(crate) tombstones: Tombstones,
    large: LargeObjects<SetId>,
    pub(crate) room: Room,
    /// The memory of pods and ReplicaSets, without shared data.
    bytes: usize,
    names: NameSeed,
    pub(crate) now: Timestamp,
    /// The number of the last snapshot that began, of either kind.
    pub(crate) snapshot: u32,
    /// The number of the last snapshot of pods that began.
    pod_list: u32,
    /// The pods that lists have added since the last complete list, although the stream had passed their versions.
    doubtful_pods: BTreeSet<PodId>,
    doubtful_sets: BTreeSet<SetId>,
    /// The lost creates; `None` if nothing limits creates.
    pub(crate) ledger: Option<Ledger>,
    /// The ReplicaSets with lost creates that people have resumed, by namespace and name.
    resumed: Vec<(Arc<str>, Arc<str>)>,
    /// The questions for the deletion costs of pods.
    pub(crate) questions: Questions,
    /// Whether the cluster does not store `terminatingReplicas`: a status was written with it, and came back without.
    pub(crate) drops_terminating: bool,
    /// The pods that were advised of late.
    pub(crate) advised: Advised,
    /// The active related pods, by node, of the one ReplicaSet that is decided from a snapshot. Its claims change none of them.
    pub(crate) related: Option<HashMap<Option<NodeId>, u32>>,
}

/// How to treat an object that is shown and not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfUnknown {
    New,
    /// A list shows the object, and the stream has passed its version. If the list is older than the stream, the object is gone; if not,
    /// the stream lost it.
    Doubtful,
    /// The object is gone: the stream shows old events again.
    Gone,
}

/// A change of one pod.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PodChange {
    /// `None` if the pod is gone.
    pub(crate) pod: Option<PodId>,
    /// The ReplicaSet that its controller reference resolved to before.
    pub(crate) former: Option<SetId>,
    /// The ReplicaSet that it resolves to now.
    pub(crate) owner: Option<SetId>,
    pub(crate) labels_changed: bool,
    pub(crate) owner_changed: bool,
}

/// The change of the index when a pod is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PodUpdate {
    Nothing,
    /// Only the resource version. Carries the owner, if the owner is known.
    Version(Option<SetId>),
    /// The pod changed; before it, an older pod of the same name was removed.
    Changed(Option<PodChange>, PodChange),
}

impl Index {
    /// Creates an empty index, whose ReplicaSets name their pods by this seed. If `limits_creates`, it counts lost creates.
    pub(crate) fn new(names: NameSeed, limits_creates: bool) -> Self {
        Self {
            names,
            ledger: limits_creates.then(Ledger::default),
            ..Self::default()
        }
    }

    pub(crate) fn begin_snapshot(&mut self, kind: Kind) -> u32 {
        self.snapshot = self.snapshot.saturating_add(1);
        if kind == Kind::Pod {
            self.pod_list = self.snapshot;
        }
        self.snapshot
    }

    pub(crate) fn end_doubts(&mut self, kind: Kind) {
        match kind {
            Kind::Pod => self.doubtful_pods = BTreeSet::new(),
            Kind::ReplicaSet => self.doubtful_sets = BTreeSet::new(),
        }
    }

    pub(crate) fn pod(&self, id: PodId) -> Option<&Entry> {
        self.pods.get(id)
    }

    pub(crate) fn pod_named(&self, namespace: &str, name: &str) -> Option<(PodId, &Entry)> {
        let id = self.namespaces.get(namespace)?.names.get(name)?.pod?;
        Some((id, self.pod(id)?))
    }

    pub(crate) fn set(&self, id: SetId) -> Option<&Set> {
        self.sets.get(&id).map(|set| &**set)
    }

    /// Returns a ReplicaSet, to change values that are not counted.
    pub(crate) fn set_mut(&mut self, id: SetId) -> Option<&mut Set> {
        self.sets.get_mut(&id).map(|set| &mut **set)
    }

    pub(crate) fn set_named(&self, namespace: &str, name: &str) -> Option<SetId> {
        self.namespaces.get(namespace)?.sets.get(name).copied()
    }

    /// Returns the ReplicaSets after a name, in the order of namespace and name.
    pub(crate) fn sets_after<'a>(
        &'a self,
        after: Option<(&'a str, &'a str)>,
    ) -> impl Iterator<Item = SetId> + 'a {
        let (first, last_name) = after.unwrap_or_default();
        let namespaces = self.namespaces.from(first);
        namespaces.flat_map(move |(namespace, content)| {
            // A namespace begins after the empty name in it.
            let after = if namespace == first { last_name } else { "" };
            let after = (Bound::Excluded(after), Bound::Unbounded);
            content.sets.range::<str, _>(after).map(|(_, id)| *id)
        })
    }

    /// Returns the ReplicaSet that a controller reference resolves to (spec 3.3).
    pub(crate) fn resolve(&self, namespace: &str, owner: OwnerView<'_>) -> Option<SetId> {
        let named = || self.set_named(namespace, owner.name);
        let id = owner.is_replica_set().then(named)??;
        let is_same = *self.set(id)?.object.key.uid.0 == *owner.uid;
        is_same.then_some(id)
    }

    fn set_of(&self, entry: &Entry) -> Option<SetId> {
        let group = self.groups.at(entry.group);
        self.resolve(&group.namespace, group.controller.as_ref()?.view())
    }

    /// Returns the ReplicaSets that may adopt a pod with these labels, in the order of their ids. Their selectors are valid, not empty, and
    /// match (spec 3.3). A pod without labels has none.
    pub(crate) fn selecting(&self, namespace: &str, labels: &Labels) -> Vec<SetId> {
        if labels.is_empty() {
            return Vec::new();
        }
        let sets = self.namespaces.get(namespace).into_iter();
        let sets = sets.flat_map(|content| content.sets.values().copied());
        let selecting = sets.filter(|id| {
            let selector = self.set(*id).and_then(Set::selector);
            selector.is_some_and(|it| !it.is_empty() && it.matches(labels))
        });
        let mut selecting: Vec<_> = selecting.collect();
        selecting.sort_unstable();
        selecting
    }

    pub(crate) fn adoptable(&self, id: SetId) -> Vec<PodId> {
        let set = self.set(id);
        let Some((set, selector)) = set.and_then(|set| Some((set, set.selector()?))) else {
            return Vec::new();
        };
        self.groups.orphans(&set.object.key.namespace, selector)
    }

    /// Returns the ReplicaSets under the same controller, this one included; none for a ReplicaSet without a controller (spec 7.3).
    pub(crate) fn siblings(&self, id: SetId) -> impl Iterator<Item = &Set> {
        self.sibling_ids(id).filter_map(|id| self.set(id))
    }

    pub(crate) fn sibling_ids(&self, id: SetId) -> impl Iterator<Item = SetId> {
        let owner = self.set(id).and_then(|set| set.object.controller.as_ref());
        let of = |id| owner.map(|owner| (owner.uid.clone(), id));
        let siblings = of(SetId::MIN).zip(of(SetId::MAX));
        let siblings = siblings.map(|(first, last)| self.siblings.range(first..=last));
        siblings.into_iter().flatten().map(|(_, id)| *id)
    }

    /// Returns the numbers of active related pods by node (spec 7.3).
    pub(crate) fn related_by_node(&self, id: SetId) -> HashMap<Option<NodeId>, u32> {
        let counted = || self.count_related(id, &|| true);
        self.related.clone().or_else(counted).unwrap_or_default()
    }

    /// Counts active related pods by node, while `go_on` returns `true`. The cost is a test of each group by each sibling.
    pub(crate) fn count_related(
        &self,
        id: SetId,
        go_on: &dyn Fn() -> bool,
    ) -> Option<HashMap<Option<NodeId>, u32>> {
        let mut counts = HashMap::new();
        let siblings: Vec<_> = self.siblings(id).collect();
        let namespaces = siblings.iter().map(|set| &*set.object.key.namespace);
        for namespace in namespaces.collect::<BTreeSet<&str>>() {
            for group in self.groups.of_namespace(namespace) {
                if !go_on() {
                    return None;
                }
                if siblings.iter().any(|set| set.selects(group)) {
                    for (node, pods) in &group.active_by_node {
                        *counts.entry(*node).or_default() += pods;
                    }
                }
            }
        }
        Some(counts)
    }

    /// The approximate number of comparisons of a sibling with a group in [`Self::count_related`]. Counts no further than `max` siblings.
    pub(crate) fn related_looks(&self, id: SetId, max: usize) -> usize {
        let groups = |set: &Set| self.groups.count_in(&set.object.key.namespace);
        let groups = self.set(id).map_or(0, groups);
        let siblings = self.sibling_ids(id).take(max.saturating_add(1));
        siblings.count().saturating_mul(groups.max(1))
    }

    /// Returns the active pods that the ReplicaSet owns and selects, in an unspecified but stable order.
    pub(crate) fn active_pods(&self, id: SetId) -> impl Iterator<Item = (PodId, &Entry)> {
        let owned = self.set(id).into_iter().flat_map(|set| &set.owned);
        let pods = owned.filter_map(|id| Some((*id, self.pod(*id)?)));
        pods.filter(|(_, pod)| pod.counted.active)
    }

    pub(crate) fn node_of(&self, entry: &Entry) -> Option<&Arc<str>> {
        self.nodes.name(entry.node?)
    }

    pub(crate) fn waiting_of(&self, entry: &Entry) -> Option<&Arc<str>> {
        self.waiting.name(entry.waiting?)
    }

    /// The number of pods of a namespace, including pods whose create is in flight.
    pub(crate) fn names_in(&self, namespace: &str) -> usize {
        let content = self.namespaces.get(namespace);
        content.map_or(0, |it| it.names.len())
    }

    /// Returns the pods of a namespace, in no order. Callers must not depend on the order.
    pub(crate) fn pod_ids_in(&self, namespace: &str) -> impl Iterator<Item = PodId> {
        let names = self.namespaces.get(namespace).map(|it| it.names.values());
        names.into_iter().flatten().filter_map(|it| it.pod)
    }

    /// Whether a ResourceQuota counts a pod: it has not ended, and its grace period is not over.
    pub(crate) fn is_charged(&self, id: PodId, pod: &Entry, now: Timestamp) -> bool {
        let is_over = self.deletions.get(&id).is_some_and(|end| *end < now);
        !pod.state.phase.has_ended() && !is_over
    }

    /// Returns a pod as it was last shown, without its deletion timestamp, which no decision reads.
    pub(crate) fn pod_object(&self, entry: &Entry) -> Pod {
        let group = self.groups.at(entry.group);
        Pod {
            namespace: Arc::clone(&group.namespace),
            name: Arc::clone(&entry.name),
            uid: entry.uid.clone(),
            version: entry.version,
            labels: group.labels.clone().unwrap_or_default(),
            controller: group.controller.as_deref().cloned(),
            node: self.node_of(entry).cloned(),
            waiting: self.waiting_of(entry).cloned(),
            deleted: None,
            state: entry.state,
        }
    }

    pub(crate) fn let_become_available(&mut self, id: SetId) {
        let Some(set) = self.sets.get_mut(&id) else {
            return;
        };
        while let Some(pod) = set.pop_available(self.now) {
            if let Some(entry) = self.pods.get_mut(pod) {
                entry.counted.available = true;
                entry.counted.pending = false;
            }
        }
    }

    /// Returns whether the content of a ReplicaSet was forgotten, and has room now.
    fn can_have_back(&self, id: SetId, object: &ReplicaSet) -> bool {
        self.large.is_forgotten(id) && self.has_room(cost::content(object))
    }

    /// Returns whether the labels of a pod of this group were forgotten, and have room now.
    fn can_have_labels_back(&self, id: GroupId, pod: &PodView<'_>) -> bool {
        let labels = || cost::labels(pod.labels.iter().copied());
        self.groups.large.is_forgotten(id) && self.has_room(labels())
    }

    fn has_room(&self, bytes: usize) -> bool {
        let Room { max, spare } = self.room;
        self.bytes() + bytes + spare <= max
    }

    pub(crate) fn has_room_again(&self, kind: Kind) -> bool {
        let smallest = match kind {
            Kind::Pod => self.groups.large.smallest_forgotten(),
            Kind::ReplicaSet => self.large.smallest_forgotten(),
        };
        smallest.is_some_and(|size| self.has_room(size))
    }

    /// The number of ReplicaSets, and of groups of pods with the same labels, whose content is forgotten.
    pub(crate) fn forgotten(&self) -> usize {
        self.large.forgotten() + self.groups.large.forgotten()
    }
}

impl Held for Index {
    fn bytes(&self) -> usize {
        let Self {
            // `bytes` counts the pods, with their places in all lists, and the ReplicaSets, with theirs.
            pods,
            pod_count: _,
            groups,
            namespaces,
            owned_by_unknown: _,
            sets: _,
            next_set: _,
            largest_set: _,
            siblings: _,
            nodes,
            waiting,
            tombstones,
            deletions,
            large,
            room: _,
            bytes,
            names: _,
            now: _,
            snapshot: _,
            pod_list: _,
            doubtful_pods: _,
            doubtful_sets: _,
            ledger,
            // Empty after each event.
            resumed: _,
            questions,
            drops_terminating: _,
            advised,
            // Only in a decision from a snapshot.
            related: _,
        } = self;
        let shared = groups.bytes() + namespaces.bytes() + nodes.bytes() + waiting.bytes();
        let deletions = deletions.len() * cost::DELETION;
        let beside = tombstones.bytes() + deletions + large.bytes() + ledger.bytes();
        let beside = beside + questions.bytes() + advised.bytes();
        bytes + pods.vacant_bytes() + shared + beside
    }
}
