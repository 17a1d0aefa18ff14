//! The nodes of pods, by number. A name is kept once, while the node has a pod or the agent shows the node. Waiting reasons are kept in the
//! same way.

use std::{mem, sync::Arc};

use super::{
    cost,
    map::{self, Map},
    slab::{Slab, Slot},
};
use crate::{held::Held, node::Node as Shown};

pub(crate) type NodeId = Slot;

#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    nodes: Slab<Node>,
    by_name: Map<Arc<str>, NodeId>,
    /// The number of nodes that the agent shows.
    pub(crate) shown: usize,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Node {
    name: Arc<str>,
    pods: u32,
    active: u32,
    /// The node as the agent shows it, or has shown it last.
    shown: Option<Box<Shown>>,
    is_gone: bool,
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
        let node = Node {
            name,
            pods: 0,
            active: 0,
            shown: None,
            is_gone: true,
        };
        self.nodes.put(id, node);
        id
    }

    /// Counts an active pod of a node in, or out with -1.
    pub(crate) fn count(&mut self, id: NodeId, by: i32) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.active = node.active.saturating_add_signed(by);
        }
    }

    pub(crate) fn leave(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.pods -= 1;
            self.drop_unused(id);
        }
    }

    fn drop_unused(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get(id)
            && node.pods == 0
            && node.is_gone
        {
            self.bytes -= cost::node(&node.name) + node.shown.as_deref().map_or(0, cost::shown);
            map::remove(&mut self.by_name, &node.name);
            self.nodes.take(id);
            self.nodes.release(id);
        }
    }

    /// Records a node as the agent shows it. Returns its number if its pods are expected to be evicted now and were not before, or the other
    /// way round.
    pub(crate) fn show(&mut self, shown: Shown) -> Option<NodeId> {
        let found = self.find(&shown.name);
        let id = found.unwrap_or_else(|| self.found(Arc::clone(&shown.name)));
        let node = self.nodes.get_mut(id)?;
        self.shown += usize::from(mem::take(&mut node.is_gone));
        self.bytes += cost::shown(&shown);
        let signals = (shown.cordoned, shown.leaving);
        let before = node.shown.replace(Box::new(shown));
        self.bytes -= before.as_deref().map_or(0, cost::shown);
        let before = before.map(|it| (it.cordoned, it.leaving));
        (before.unwrap_or_default() != signals).then_some(id)
    }

    /// Records that a node is gone. What it announced for its pods stays true until they are gone, too.
    pub(crate) fn hide(&mut self, name: &str) {
        if let Some(id) = self.find(name)
            && let Some(node) = self.nodes.get_mut(id)
        {
            self.shown -= usize::from(!mem::replace(&mut node.is_gone, true));
            self.drop_unused(id);
        }
    }

    /// Returns a node as the agent shows it, or has shown it last.
    pub(crate) fn shown(&self, id: Option<NodeId>) -> Option<&Shown> {
        self.nodes.get(id?)?.shown.as_deref()
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
            shown: _,
            bytes,
        } = self;
        nodes.vacant_bytes() + bytes
    }
}
