//! Pods with the same namespace, labels and controller form a group. It keeps these once and counts its active pods by node, so that
//! counting related pods (spec 7.3) reads no pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    cost,
    large::LargeObjects,
    map::{self, Map},
    nodes::NodeId,
    slab::{Slab, Slot},
};
use crate::{
    held::Held,
    labels::Labels,
    object::OwnerReference,
    pod_view::{OwnerView, PodView},
    selector::Selector,
};

pub(crate) type GroupId = Slot;

#[derive(Clone, Debug)]
pub(crate) struct PodGroup {
    pub(crate) namespace: Arc<str>,
    /// `None` if they are forgotten.
    pub(crate) labels: Option<Labels>,
    pub(crate) controller: Option<Arc<OwnerReference>>,
    pods: u32,
    pub(super) active_by_node: BTreeMap<Option<NodeId>, u32>,
    /// The active pods by name, if the group has no controller and its labels are known.
    orphans: BTreeSet<(Arc<str>, Slot)>,
}

/// What the pods of a group have in common beside their namespace.
type Common = (Labels, Option<Arc<OwnerReference>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    groups: Slab<PodGroup>,
    /// The groups whose labels are known.
    by_namespace: Map<Arc<str>, Map<Common, GroupId>>,
    with_orphans: BTreeSet<(Arc<str>, GroupId)>,
    pub(super) large: LargeObjects<GroupId>,
    bytes: usize,
}

impl Groups {
    pub(crate) fn join(
        &mut self,
        namespace: &Arc<str>,
        labels: Labels,
        controller: Option<OwnerReference>,
    ) -> GroupId {
        let common = (labels, controller.map(Arc::new));
        let groups = self.by_namespace.get(namespace);
        let known = groups.and_then(|groups| groups.get(&common)).copied();
        let id = known.unwrap_or_else(|| self.found(namespace, common));
        self.rejoin(id)
    }

    pub(crate) fn rejoin(&mut self, id: GroupId) -> GroupId {
        if let Some(group) = self.groups.get_mut(id) {
            group.pods += 1;
        }
        id
    }

    /// Moves one pod from its group to another group of the same namespace. Returns the new group.
    pub(crate) fn regroup(&mut self, id: GroupId, pod: &PodView<'_>) -> GroupId {
        let namespace = Arc::clone(&self.at(id).namespace);
        let controller = pod.controller.map(OwnerView::to_owner);
        let fresh = self.join(&namespace, pod.to_labels(), controller);
        self.leave(id);
        fresh
    }

    fn found(&mut self, namespace: &Arc<str>, common: Common) -> GroupId {
        let (labels, controller) = common.clone();
        let size = cost::labels(labels.texts());
        self.bytes += cost::group(controller.as_deref()) + size;
        let group = PodGroup {
            namespace: Arc::clone(namespace),
            labels: Some(labels),
            controller,
            pods: 0,
            active_by_node: BTreeMap::new(),
            orphans: BTreeSet::new(),
        };
        let id = self.groups.reserve();
        self.groups.put(id, group);
        self.large.weigh(id, size);
        let groups = self.by_namespace.entry(Arc::clone(namespace));
        groups.or_default().insert(common, id);
        id
    }

    pub(crate) fn leave(&mut self, id: GroupId) {
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        group.pods -= 1;
        if group.pods > 0 {
            return;
        }
        self.bytes -= cost::group(group.controller.as_deref());
        self.take_labels(id);
        self.large.remove(id);
        self.groups.take(id);
        self.groups.release(id);
    }

    /// Forgets the labels of a group, which have this size, and returns its namespace. No further pod joins the group.
    pub(super) fn forget(&mut self, id: GroupId, size: usize) -> Option<Arc<str>> {
        self.large.forget(id, size);
        self.take_labels(id)
    }

    fn take_labels(&mut self, id: GroupId) -> Option<Arc<str>> {
        let group = self.groups.get_mut(id)?;
        let namespace = Arc::clone(&group.namespace);
        group.orphans.clear();
        self.with_orphans.remove(&(Arc::clone(&namespace), id));
        if let Some(labels) = group.labels.take()
            && let Some(groups) = self.by_namespace.get_mut(&namespace)
        {
            self.bytes -= cost::labels(labels.texts());
            map::remove(groups, &(labels, group.controller.clone()));
            if groups.is_empty() {
                map::remove(&mut self.by_namespace, &namespace);
            }
        }
        Some(namespace)
    }

    pub(crate) fn count_in(&self, namespace: &str) -> usize {
        self.by_namespace.get(namespace).map_or(0, Map::len)
    }

    /// Returns the groups of a namespace whose labels are known, in no order.
    pub(crate) fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = &PodGroup> {
        let groups = self.by_namespace.get(namespace);
        let groups = groups.into_iter().flat_map(Map::values);
        groups.map(|id| self.at(*id))
    }

    /// Returns a group, which must have a pod.
    pub(crate) fn at(&self, id: GroupId) -> &PodGroup {
        self.groups
            .get(id)
            .expect("a pod's group lives as long as the pod")
    }

    /// Counts an active pod on a node in, or out with -1.
    pub(crate) fn count(&mut self, id: GroupId, node: Option<NodeId>, by: i32) {
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        self.bytes -= group.active_by_node.len() * cost::NODE_OF_GROUP;
        let count = group.active_by_node.entry(node).or_default();
        *count = count.saturating_add_signed(by);
        if *count == 0 {
            group.active_by_node.remove(&node);
        }
        self.bytes += group.active_by_node.len() * cost::NODE_OF_GROUP;
    }

    /// Adds an active pod to the orphans of its group, unless the group has a controller, or its labels are forgotten.
    pub(super) fn add_orphan(&mut self, id: GroupId, name: &Arc<str>, pod: Slot) {
        let group = self.groups.get_mut(id);
        let group = group.filter(|it| it.controller.is_none() && it.labels.is_some());
        if let Some(group) = group {
            group.orphans.insert((Arc::clone(name), pod));
            self.with_orphans.insert((Arc::clone(&group.namespace), id));
        }
    }

    /// Undoes [`Self::add_orphan`].
    pub(super) fn remove_orphan(&mut self, id: GroupId, name: &Arc<str>, pod: Slot) {
        if let Some(group) = self.groups.get_mut(id)
            && group.controller.is_none()
            && group.orphans.remove(&(Arc::clone(name), pod))
            && group.orphans.is_empty()
        {
            let place = (Arc::clone(&group.namespace), id);
            self.with_orphans.remove(&place);
        }
    }

    /// Returns the orphans of a namespace that a selector matches, sorted by name. The cost is a test for each group of orphans.
    pub(crate) fn orphans(&self, namespace: &Arc<str>, selector: &Selector) -> Vec<Slot> {
        let place = |id| (Arc::clone(namespace), id);
        let range = place(GroupId::MIN)..=place(GroupId::MAX);
        let groups = self.with_orphans.range(range).map(|(_, id)| self.at(*id));
        let selected = groups.filter(|group| group.is_selected_by(selector));
        let mut found: Vec<_> = selected.flat_map(|group| &group.orphans).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| *id).collect()
    }
}

impl PodGroup {
    pub(super) fn is_selected_by(&self, selector: &Selector) -> bool {
        let labels = self.labels.as_ref();
        labels.is_some_and(|labels| selector.matches(labels))
    }

    pub(super) fn has_labels_of(&self, pod: &PodView<'_>) -> bool {
        self.labels.as_ref().is_some_and(|it| pod.has_labels(it))
    }

    pub(super) fn has_owner_of(&self, pod: &PodView<'_>) -> bool {
        pod.controller == self.controller.as_deref().map(OwnerReference::view)
    }
}

impl Held for Groups {
    fn bytes(&self) -> usize {
        let Self {
            groups,
            // `bytes` counts the groups with their places, and each pod counts its place among the orphans.
            by_namespace: _,
            with_orphans: _,
            large,
            bytes,
        } = self;
        groups.vacant_bytes() + large.bytes() + bytes
    }
}
