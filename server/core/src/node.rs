//! Nodes, as far as preferences read them, and the announcements of evictions.

use std::sync::Arc;

use crate::{labels::Labels, object::ReplicaSet, preferences::ScaleIn};

/// The maximum length of a node's name in a message.
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// The fields of a node that preferences read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The name.
    pub name: Arc<str>,
    /// Whether somebody has cordoned it.
    pub cordoned: bool,
    /// Whether it will be removed: its pods may be deleted once they have replacements.
    pub leaving: bool,
    /// The labels that the agent sends.
    pub labels: Labels,
}

/// A change of the nodes. Nodes have no versions: the newest change counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeChange {
    /// A node has this state.
    Applied(Node),
    /// The node with this name is gone.
    Deleted(Arc<str>),
    /// All nodes of the cluster have been shown.
    Complete,
}

/// Why a pod is expected to be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Its node is cordoned: the pod may be evicted, or not.
    CordonedNode,
    /// Its node will be removed.
    LeavingNode,
    /// Somebody has announced the eviction of the pod itself.
    LeavingPod,
}

impl Hint {
    pub(crate) fn of(is_leaving: bool, node: Option<&Node>) -> Option<Self> {
        let node = node.filter(|it| it.cordoned || it.leaving);
        match (node, is_leaving) {
            (Some(node), _) if node.leaving => Some(Self::LeavingNode),
            (_, true) => Some(Self::LeavingPod),
            (Some(_), false) => Some(Self::CordonedNode),
            (None, false) => None,
        }
    }

    /// Whether the server may delete the pod once it has a replacement.
    pub(crate) const fn is_leaving(self) -> bool {
        !matches!(self, Self::CordonedNode)
    }

    /// Says where the pod is, for people.
    pub(crate) fn words(self, node: Option<&str>) -> String {
        let node = node.unwrap_or_default();
        let node = &node[..node.floor_char_boundary(NAME_BYTES_MAX)];
        match self {
            Self::CordonedNode => format!("on cordoned {node}"),
            Self::LeavingNode => format!("on leaving {node}"),
            Self::LeavingPod => "that leaves".to_owned(),
        }
    }
}

impl ReplicaSet {
    pub(crate) fn prefers_surge(&self) -> bool {
        let preferences = self.preferences.as_deref();
        preferences.is_some_and(|it| it.surge > 0 || it.surge_percent > 0)
    }

    /// Whether a preference reads nodes.
    pub(crate) fn reads_nodes(&self) -> bool {
        let reads = |it: &ScaleIn| matches!(it, ScaleIn::LeavingNode | ScaleIn::Spread(_));
        self.prefers_surge() || self.scale_in().iter().any(reads)
    }
}
