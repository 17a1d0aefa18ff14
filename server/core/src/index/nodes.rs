//! The nodes that pods are on, by number: a name is kept once, as long as a pod is there.

use std::{num::NonZeroU32, sync::Arc};

use super::{cost::Shared as _, map::Map, slab::Slab};

/// The number of a node, as long as it has a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(NonZeroU32);

/// All nodes with pods.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    nodes: Slab<Node>,
    by_name: Map<Arc<str>, NodeId>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Node {
    name: Arc<str>,
    pods: u32,
}

// === impl NodeId ===

impl NodeId {
    fn of(place: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(place))
    }
    const fn place(self) -> u32 {
        self.0.get() - 1
    }
}

// === impl Nodes ===

impl Nodes {
    /// Returns the node of a name, with one more pod.
    pub(crate) fn join(&mut self, name: &str) -> NodeId {
        let known = self.by_name.get(name).copied();
        let id = known.unwrap_or_else(|| self.found(name.into()));
        if let Some(node) = self.nodes.get_mut(id.place()) {
            node.pods += 1;
        }
        id
    }

    fn found(&mut self, name: Arc<str>) -> NodeId {
        self.bytes += name.cost();
        let place = self.nodes.reserve();
        let id = NodeId::of(place);
        self.by_name.insert(Arc::clone(&name), id);
        self.nodes.put(place, Node { name, pods: 0 });
        id
    }

    /// Takes one pod from a node, and the node away with its last.
    pub(crate) fn leave(&mut self, id: NodeId) {
        let place = id.place();
        let Some(node) = self.nodes.get_mut(place) else {
            return;
        };
        node.pods -= 1;
        if node.pods > 0 {
            return;
        }
        if let Some(Node { name, .. }) = self.nodes.take(place) {
            self.bytes -= name.cost();
            self.by_name.remove(&name);
        }
        self.nodes.release(place);
    }

    /// Returns the name of a node that has a pod.
    pub(crate) fn name(&self, id: NodeId) -> Option<&Arc<str>> {
        self.nodes.get(id.place()).map(|node| &node.name)
    }

    /// Returns about how many bytes all of it takes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}
