//! Changes of nodes, which queue only the ReplicaSets that prefer replacements before evictions.

use std::mem;

use super::Controller;
use crate::{node::NodeChange, object::Timestamp, queue::Priority};

impl Controller {
    /// Records a change of the nodes, without a decision.
    pub fn handle_node(&mut self, now: Timestamp, change: NodeChange) {
        self.tick(now);
        let nodes = &mut self.index.nodes;
        match change {
            NodeChange::Applied(node) => self.changed_nodes.extend(nodes.show(node)),
            NodeChange::Deleted(name) => nodes.hide(&name),
            NodeChange::Complete => self.nodes_awaited = false,
        }
    }

    /// Whether the agent shows nodes.
    pub const fn takes_nodes(&self) -> bool {
        self.config.nodes
    }

    pub(super) fn queue_evicted(&mut self) {
        if self.changed_nodes.is_empty() {
            return;
        }
        let changed = mem::take(&mut self.changed_nodes);
        for id in self.index.evicted_from(&changed) {
            self.queue.add(id, Priority::Live);
        }
    }
}
