//! The nodes of pods, by number. A name is kept once, while the node has a pod. Active pods are counted by their readiness.

use std::{num::NonZeroU32, sync::Arc};

use super::{cost, map::Map, slab::Slab};

/// The number of a node, while the node has a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(NonZeroU32);

/// The minimum number of lapsed pods of a node that counts as [unready](Nodes::unready_pods).
const LAPSED_MIN: u32 = 2;

/// All nodes with pods.
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
    active: ActivePods,
}

/// The active pods of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ActivePods {
    ready: u32,
    lapsed: u32,
    never_ready: u32,
}

/// Whether a pod is ready, as far as its session has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// It was ready and is not now, or its node is reported as unresponsive.
    Lapsed,
    NeverReady,
}

// === impl NodeId ===

impl NodeId {
    fn of(slot: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(slot))
    }
    const fn slot(self) -> u32 {
        self.0.get() - 1
    }
}

// === impl Nodes ===

impl Nodes {
    /// Adds a pod to the node of this name.
    pub(crate) fn join(&mut self, name: &str) -> NodeId {
        let known = self.by_name.get(name).copied();
        let id = known.unwrap_or_else(|| self.found(name.into()));
        if let Some(node) = self.nodes.get_mut(id.slot()) {
            node.pods += 1;
        }
        id
    }

    fn found(&mut self, name: Arc<str>) -> NodeId {
        self.bytes += cost::node(&name);
        let slot = self.nodes.reserve();
        let id = NodeId::of(slot);
        self.by_name.insert(Arc::clone(&name), id);
        let node = Node {
            name,
            pods: 0,
            active: ActivePods::default(),
        };
        self.nodes.put(slot, node);
        id
    }

    /// Counts an active pod of a node in, or out with -1.
    pub(crate) fn count(&mut self, id: NodeId, readiness: Readiness, by: i32) {
        let Some(Node { active, .. }) = self.nodes.get_mut(id.slot()) else {
            return;
        };
        let count = match readiness {
            Readiness::Ready => {
                self.ready = self.ready.saturating_add_signed(by);
                &mut active.ready
            }
            Readiness::Lapsed => &mut active.lapsed,
            Readiness::NeverReady => &mut active.never_ready,
        };
        *count = count.saturating_add_signed(by);
    }

    /// Returns the number of active pods of a node, if none of them is ready and the node may be the cause. That is so if most of them were
    /// ready, and pods of other nodes are. A node whose pods are starting does not count.
    pub(crate) fn unready_pods(&self, id: NodeId) -> Option<u32> {
        let ActivePods {
            ready,
            lapsed,
            never_ready,
        } = self.nodes.get(id.slot())?.active;
        let is_unready = ready == 0 && lapsed >= LAPSED_MIN.max(never_ready) && self.ready > 0;
        is_unready.then_some(lapsed.saturating_add(never_ready))
    }

    /// Removes one pod from a node, and the node with its last pod.
    pub(crate) fn leave(&mut self, id: NodeId) {
        let slot = id.slot();
        let Some(node) = self.nodes.get_mut(slot) else {
            return;
        };
        node.pods -= 1;
        if node.pods > 0 {
            return;
        }
        if let Some(Node { name, .. }) = self.nodes.take(slot) {
            self.bytes -= cost::node(&name);
            self.by_name.remove(&name);
        }
        self.nodes.release(slot);
    }

    /// Returns the node of a name, if it has a pod.
    pub(crate) fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn name(&self, id: NodeId) -> Option<&Arc<str>> {
        self.nodes.get(id.slot()).map(|node| &node.name)
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates two nodes: the first has pods of this readiness, and the second has `ready` ready pods.
    fn nodes(pods: &[Readiness], ready: usize) -> (Nodes, NodeId) {
        let mut nodes = Nodes::default();
        let mut add = |name, readiness| {
            let id = nodes.join(name);
            nodes.count(id, readiness, 1);
            id
        };
        let ids: Vec<_> = pods.iter().map(|pod| add("node-a", *pod)).collect();
        (0..ready).for_each(|_| {
            add("node-b", Readiness::Ready);
        });
        (nodes, ids[0])
    }

    #[test]
    fn node_is_unready_if_most_of_its_pods_were_ready_and_others_are() {
        use Readiness::{Lapsed, NeverReady, Ready};
        let cases: [(&[Readiness], usize, Option<u32>); 8] = [
            (&[Lapsed, Lapsed], 1, Some(2)),
            (&[Lapsed, Lapsed, NeverReady, NeverReady], 1, Some(4)),
            (
                &[Lapsed, Lapsed, NeverReady, NeverReady, NeverReady],
                1,
                None,
            ),
            (&[NeverReady], 1, None),
            (&[NeverReady, NeverReady, NeverReady], 1, None),
            (&[Lapsed], 1, None),
            (&[Lapsed, Lapsed, Ready], 1, None),
            // If no pod of the cluster is ready, the node is not the cause.
            (&[Lapsed, Lapsed], 0, None),
        ];
        for (pods, ready, expected) in cases {
            let (nodes, id) = nodes(pods, ready);
            assert_eq!(nodes.unready_pods(id), expected, "{pods:?} {ready}");
        }
    }

    #[test]
    fn pods_that_leave_are_not_counted() {
        let (mut nodes, id) = nodes(&[Readiness::Lapsed; 3], 1);
        nodes.count(id, Readiness::Lapsed, -1);
        nodes.leave(id);
        assert_eq!(nodes.unready_pods(id), Some(2));
        nodes.count(id, Readiness::Lapsed, -1);
        nodes.leave(id);
        assert_eq!(nodes.unready_pods(id), None);
    }
}
