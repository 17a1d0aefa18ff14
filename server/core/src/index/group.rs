//! Pods with the same namespace and labels form a group. It keeps their labels once and counts their active pods by node, so that counting
//! related pods (spec 7.3) reads no pods.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    cost,
    large::LargeObjects,
    map::{self, Map},
    nodes::NodeId,
    slab::{Slab, Slot},
};
use crate::{held::Held, labels::Labels};

pub(crate) type GroupId = Slot;

#[derive(Clone, Debug)]
pub(crate) struct PodGroup {
    pub(crate) namespace: Arc<str>,
    /// `None` if they are forgotten.
    pub(crate) labels: Option<Labels>,
    pods: u32,
    pub(super) active_by_node: BTreeMap<Option<NodeId>, u32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    groups: Slab<PodGroup>,
    /// The groups whose labels are known.
    by_namespace: Map<Arc<str>, Map<Labels, GroupId>>,
    pub(super) large: LargeObjects<GroupId>,
    bytes: usize,
}

impl Groups {
    pub(crate) fn join(&mut self, namespace: &Arc<str>, labels: Labels) -> GroupId {
        let groups = self.by_namespace.get(namespace);
        let known = groups.and_then(|groups| groups.get(&labels)).copied();
        let id = known.unwrap_or_else(|| self.found(namespace, labels));
        self.rejoin(id)
    }

    pub(crate) fn rejoin(&mut self, id: GroupId) -> GroupId {
        if let Some(group) = self.groups.get_mut(id) {
            group.pods += 1;
        }
        id
    }

    /// Moves one pod from its group to the group of other labels in the same namespace. Returns the new group.
    pub(crate) fn regroup(&mut self, id: GroupId, labels: Labels) -> GroupId {
        let namespace = Arc::clone(&self.at(id).namespace);
        let fresh = self.join(&namespace, labels);
        self.leave(id);
        fresh
    }

    fn found(&mut self, namespace: &Arc<str>, labels: Labels) -> GroupId {
        let size = cost::labels(labels.texts());
        self.bytes += cost::GROUP + size;
        let group = PodGroup {
            namespace: Arc::clone(namespace),
            labels: Some(labels.clone()),
            pods: 0,
            active_by_node: BTreeMap::new(),
        };
        let id = self.groups.reserve();
        self.groups.put(id, group);
        self.large.weigh(id, size);
        let groups = self.by_namespace.entry(Arc::clone(namespace));
        groups.or_default().insert(labels, id);
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
        self.bytes -= cost::GROUP + group.active_by_node.len() * cost::NODE_OF_GROUP;
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
        if let Some(labels) = group.labels.take()
            && let Some(groups) = self.by_namespace.get_mut(&namespace)
        {
            self.bytes -= cost::labels(labels.texts());
            map::remove(groups, &labels);
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
}

impl Held for Groups {
    fn bytes(&self) -> usize {
        let Self {
            groups,
            by_namespace: _,
            large,
            bytes,
        } = self;
        groups.vacant_bytes() + large.bytes() + bytes
    }
}
