//! The nodes of pods, by number. A name is kept once, while the node has a pod. Waiting reasons are kept in the same way.

use std::sync::Arc;

use super::{
    cost,
    map::{self, Map},
    slab::{Slab, Slot},
};
use crate::held::Held;

pub(crate) type NodeId = Slot;

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
    active: u32,
}

impl Nodes {
    pub(crate) fn join(&mut self, name: &str) -> NodeId {
        let id = self.find(name).unwrap_or_else(|| self.found(name.into()));
        if let Some(node) = self.nodes.get_mut(id) {
            node.pods += 1;
        }
        id
    }

    fn found(&mut self, name: Arc<str>) -> NodeId {
        self.bytes += cost::node(&name);
        let id = self.nodes.reserve();
        self.by_name.insert(Arc::clone(&name), id);
        let (pods, active) = (0, 0);
        self.nodes.put(id, Node { name, pods, active });
        id
    }

    /// Counts an active pod of a node in, or out with -1.
    pub(crate) fn count(&mut self, id: NodeId, by: i32) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.active = node.active.saturating_add_signed(by);
        }
    }

    pub(crate) fn leave(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id) else {
            return;
        };
        node.pods -= 1;
        if node.pods == 0 {
            self.bytes -= cost::node(&node.name);
            map::remove(&mut self.by_name, &node.name);
            self.nodes.take(id);
            self.nodes.release(id);
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn name(&self, id: NodeId) -> Option<&Arc<str>> {
        self.nodes.get(id).map(|node| &node.name)
    }

    /// Returns the number of active pods on a node, whoever owns them; 0 without a node.
    pub(crate) fn active_on(&self, id: Option<NodeId>) -> u32 {
        let node = id.and_then(|id| self.nodes.get(id));
        node.map_or(0, |node| node.active)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the nodes with active pods, and the numbers of these pods.
    pub(crate) fn active(&self) -> impl Iterator<Item = (&Arc<str>, u32)> {
        let nodes = self.nodes.iter();
        let nodes = nodes.map(|(_, node)| (&node.name, node.active));
        nodes.filter(|(_, active)| *active > 0)
    }
}

impl Held for Nodes {
    fn bytes(&self) -> usize {
        let Self {
            nodes,
            by_name: _,
            bytes,
        } = self;
        nodes.vacant_bytes() + bytes
    }
}
