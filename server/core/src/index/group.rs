//! Pods with the same namespace and labels form a group. It keeps their labels once and counts their active pods by node, so that counting
//! related pods (spec 7.3) reads no pods.

use std::{collections::BTreeMap, sync::Arc};

use super::{cost, map::Map, nodes::NodeId, slab::Slab};
use crate::labels::Labels;

/// Pods that share namespace and labels.
#[derive(Clone, Debug)]
pub(crate) struct PodGroup {
    pub(crate) namespace: Arc<str>,
    pub(crate) labels: Labels,
    pods: u32,
    pub(super) active_by_node: BTreeMap<Option<NodeId>, u32>,
}

/// All groups, indexed by namespace and labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    groups: Slab<PodGroup>,
    by_namespace: Map<Arc<str>, Map<Labels, u32>>,
    bytes: usize,
}

// === impl Groups ===

impl Groups {
    /// Adds a pod to the group of the labels, and creates the group if it is new.
    pub(crate) fn join(&mut self, namespace: &Arc<str>, labels: Labels) -> u32 {
        let known = self
            .by_namespace
            .get(namespace)
            .and_then(|groups| groups.get(&labels));
        let id = match known {
            Some(id) => *id,
            None => self.found(namespace, labels),
        };
        self.rejoin(id)
    }

    pub(crate) fn rejoin(&mut self, id: u32) -> u32 {
        if let Some(group) = self.groups.get_mut(id) {
            group.pods += 1;
        }
        id
    }

    /// Moves one pod from its group to the group of other labels in the same namespace. Returns the new group.
    pub(crate) fn regroup(&mut self, id: u32, labels: Labels) -> u32 {
        let group = self.at(id);
        let namespace = Arc::clone(&group.namespace);
        let fresh = self.join(&namespace, labels);
        self.leave(id);
        fresh
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn found(&mut self, namespace: &Arc<str>, labels: Labels) -> u32 {
        self.bytes += cost::group(&labels);
        let group = PodGroup {
            namespace: Arc::clone(namespace),
            labels: labels.clone(),
            pods: 0,
            active_by_node: BTreeMap::new(),
        };
        let id = self.groups.reserve();
        self.groups.put(id, group);
        self.by_namespace
            .entry(Arc::clone(namespace))
            .or_default()
            .insert(labels, id);
        id
    }

    /// Removes one pod from the group, and the group with its last pod.
    pub(crate) fn leave(&mut self, id: u32) {
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        group.pods -= 1;
        if group.pods > 0 {
            return;
        }
        self.bytes -= cost::group(&group.labels);
        self.bytes -= group.active_by_node.len() * cost::NODE_OF_GROUP;
        if let Some(group) = self.groups.take(id)
            && let Some(groups) = self.by_namespace.get_mut(&group.namespace)
        {
            groups.remove(&group.labels);
            if groups.is_empty() {
                self.by_namespace.remove(&group.namespace);
            }
        }
        self.groups.release(id);
    }

    pub(crate) fn count_in(&self, namespace: &str) -> usize {
        self.by_namespace.get(namespace).map_or(0, Map::len)
    }

    /// Returns the groups of a namespace with an active pod on a node, in no order.
    pub(crate) fn with_active_on(
        &self,
        namespace: &str,
        node: NodeId,
    ) -> impl Iterator<Item = &PodGroup> {
        let groups = self.by_namespace.get(namespace);
        let groups = groups.into_iter().flat_map(Map::values);
        let groups = groups.map(|id| self.at(*id));
        groups.filter(move |group| group.active_by_node.contains_key(&Some(node)))
    }

    /// Returns a group, which must have a pod.
    pub(crate) fn at(&self, id: u32) -> &PodGroup {
        self.groups
            .get(id)
            .expect("a pod's group lives as long as the pod")
    }

    pub(crate) fn count(&mut self, id: u32, node: Option<NodeId>, counting: Counting) {
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        match counting {
            Counting::In => {
                let known = group.active_by_node.len();
                *group.active_by_node.entry(node).or_default() += 1;
                self.bytes += (group.active_by_node.len() - known) * cost::NODE_OF_GROUP;
            }
            Counting::Out => {
                if let Some(count) = group.active_by_node.get_mut(&node) {
                    *count -= 1;
                    if *count == 0 {
                        group.active_by_node.remove(&node);
                        self.bytes -= cost::NODE_OF_GROUP;
                    }
                }
            }
        }
    }

    /// Passes on the active pods by node, for all groups of the namespaces that `related` accepts.
    pub(crate) fn active_by_node<'a>(
        &'a self,
        namespaces: impl Iterator<Item = &'a str>,
        related: impl Fn(&PodGroup) -> bool,
        mut count: impl FnMut(Option<NodeId>, u32),
    ) {
        let groups = namespaces.filter_map(|namespace| self.by_namespace.get(namespace));
        for group in groups
            .flat_map(Map::values)
            .map(|id| self.at(*id))
            .filter(|group| related(group))
        {
            for (node, pods) in &group.active_by_node {
                count(*node, *pods);
            }
        }
    }
}

/// The direction in which a pod is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    In,
    Out,
}
