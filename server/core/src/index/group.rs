//! Pods with the same namespace and labels form a group: their labels are kept once, and their active pods are counted by node, so
//! that related pods (spec 7.3) are counted without looking at pods.

use std::{collections::HashMap, sync::Arc};

use super::{cost, growing_map::GrowingMap};
use crate::{
    pieces::{Pieces, pieces},
    selector::Labels,
};

/// Pods that share namespace and labels.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) namespace: Arc<str>,
    pub(crate) labels: Arc<Labels>,
    pods: u32,
    pub(super) active_by_node: GrowingMap<Option<Arc<str>>, u32>,
}

/// All groups, found by namespace and labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    groups: Vec<Option<Group>>,
    vacant: Vec<u32>,
    by_namespace: GrowingMap<Arc<str>, GrowingMap<Arc<Labels>, u32>>,
    bytes: usize,
}

// === impl Groups ===

impl Groups {
    /// Returns the group of the labels, made if there is none, with one more pod.
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

    /// Adds one more pod to a group.
    pub(crate) fn rejoin(&mut self, id: u32) -> u32 {
        if let Some(group) = self.groups[id as usize].as_mut() {
            group.pods += 1;
        }
        id
    }

    /// Moves one pod from its group to the group of `labels` in the same namespace, and returns that.
    pub(crate) fn regroup(&mut self, id: u32, labels: Labels) -> u32 {
        let group = self.at(id);
        if *group.labels == labels {
            return id;
        }
        let namespace = Arc::clone(&group.namespace);
        let fresh = self.join(&namespace, labels);
        self.leave(id);
        fresh
    }

    /// Returns about how many bytes all groups take.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns all groups, to be freed a piece at a time.
    pub(crate) fn into_pieces(self) -> Pieces {
        let groups = self.groups.into_iter().flatten();
        let groups = groups.flat_map(|group| {
            group
                .active_by_node
                .into_pieces()
                .chain(pieces([group.labels]))
        });
        let by_labels = self.by_namespace.into_values();
        Box::new(groups.chain(by_labels.flat_map(GrowingMap::into_pieces)))
    }

    fn found(&mut self, namespace: &Arc<str>, labels: Labels) -> u32 {
        self.bytes += cost::group(&labels);
        let labels = Arc::new(labels);
        let group = Group {
            namespace: Arc::clone(namespace),
            labels: Arc::clone(&labels),
            pods: 0,
            active_by_node: GrowingMap::default(),
        };
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.groups.push(None);
            u32::try_from(self.groups.len() - 1).expect("fewer than 2^32 groups fit in memory")
        });
        self.groups[id as usize] = Some(group);
        self.by_namespace
            .or_default(Arc::clone(namespace))
            .insert(labels, id);
        id
    }

    /// Takes one pod out of the group, and the group away with its last.
    pub(crate) fn leave(&mut self, id: u32) {
        let slot = &mut self.groups[id as usize];
        let Some(group) = slot.as_mut() else { return };
        group.pods -= 1;
        if group.pods > 0 {
            return;
        }
        self.bytes -= cost::group(&group.labels);
        self.bytes -= group.active_by_node.len() * cost::NODE_OF_GROUP;
        if let Some(group) = slot.take()
            && let Some(groups) = self.by_namespace.get_mut(&group.namespace)
        {
            groups.remove(&group.labels);
            if groups.is_empty() {
                self.by_namespace.remove(&group.namespace);
            }
        }
        self.vacant.push(id);
    }

    /// Returns how many groups a namespace has.
    pub(crate) fn count_in(&self, namespace: &str) -> usize {
        self.by_namespace.get(namespace).map_or(0, GrowingMap::len)
    }

    /// Returns the group at a place, if there is one; nothing behind the last place.
    pub(crate) fn place(&self, at: usize) -> Option<Option<&Group>> {
        self.groups.get(at).map(Option::as_ref)
    }

    /// Returns a group that has a pod.
    pub(crate) fn at(&self, id: u32) -> &Group {
        self.groups[id as usize]
            .as_ref()
            .expect("a pod's group lives as long as the pod")
    }

    /// Counts an active pod of the group in or out on its node.
    pub(crate) fn count(&mut self, id: u32, node: Option<&Arc<str>>, counting: Counting) {
        let Some(group) = self.groups[id as usize].as_mut() else {
            return;
        };
        let node = node.cloned();
        match counting {
            Counting::In => {
                let known = group.active_by_node.len();
                *group.active_by_node.or_default(node) += 1;
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

    /// Counts the active pods by node over all groups of the namespaces that `related` accepts.
    pub(crate) fn active_by_node<'a>(
        &'a self,
        namespaces: impl Iterator<Item = &'a str>,
        related: impl Fn(&Group) -> bool,
    ) -> HashMap<Option<&'a str>, u32> {
        let mut counts = HashMap::new();
        let groups = namespaces.filter_map(|namespace| self.by_namespace.get(namespace));
        for group in groups
            .flat_map(GrowingMap::values)
            .map(|id| self.at(*id))
            .filter(|group| related(group))
        {
            for (node, count) in group.active_by_node.iter() {
                *counts.entry(node.as_deref()).or_default() += count;
            }
        }
        counts
    }
}

/// Which way a pod is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    In,
    Out,
}
