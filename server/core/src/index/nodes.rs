//! The nodes of pods, by number. A name is kept once, while the node has a pod. Active pods are counted by their readiness.

use std::sync::Arc;

use super::{
    cost,
    map::{self, Map},
    slab::{Slab, Slot},
};
use crate::held::Held;

pub(crate) type NodeId = Slot;

/// The minimum number of lapsed pods of a node that counts as [unready](Nodes::unready_pods).
const LAPSED_MIN: u32 = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    nodes: Slab<Node>,
    by_name: Map<Arc<str>, NodeId>,
    /// The number of ready active pods of all nodes.
    ready: u32,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Node {
    name: Arc<str>,
    pods: u32,
    /// The active pods by [`Readiness`].
    active: [u32; 3],
}

/// Whether a pod is ready, as far as its session has seen it. [`Node::active`] is in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// It was ready and is not now, or its node is reported as unresponsive.
    Lapsed,
    NeverReady,
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
        let (pods, active) = (0, [0; 3]);
        self.nodes.put(id, Node { name, pods, active });
        id
    }

    /// Counts an active pod of a node in, or out with -1.
    pub(crate) fn count(&mut self, id: NodeId, readiness: Readiness, by: i32) {
        let node = self.nodes.get_mut(id);
        let of_node = node.map(|node| &mut node.active[readiness as usize]);
        let of_all = (readiness == Readiness::Ready).then_some(&mut self.ready);
        for count in of_node.into_iter().chain(of_all) {
            *count = count.saturating_add_signed(by);
        }
    }

    /// Returns the number of active pods of a node, if none of them is ready and the node may be the cause. That is so if most of them were
    /// ready, and pods of other nodes are. A node whose pods are starting does not count.
    pub(crate) fn unready_pods(&self, id: NodeId) -> Option<u32> {
        let [ready, lapsed, never_ready] = self.nodes.get(id)?.active;
        let is_unready = ready == 0 && lapsed >= LAPSED_MIN.max(never_ready) && self.ready > 0;
        is_unready.then_some(lapsed.saturating_add(never_ready))
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

    /// Returns the nodes with active pods, and the numbers of these pods.
    pub(crate) fn active(&self) -> impl Iterator<Item = (&Arc<str>, u32)> {
        let nodes = self.nodes.iter();
        let nodes = nodes.map(|(_, node)| (&node.name, node.active.iter().sum::<u32>()));
        nodes.filter(|(_, active)| *active > 0)
    }
}

impl Held for Nodes {
    fn bytes(&self) -> usize {
        let Self {
            nodes,
            by_name: _,
            ready: _,
            bytes,
        } = self;
        nodes.vacant_bytes() + bytes
    }
}
