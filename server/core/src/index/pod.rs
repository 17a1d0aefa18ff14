//! A pod in the form of the index. It notes its contribution to its ReplicaSet, so that a change can undo it.

use std::sync::Arc;

use super::{group::GroupId, ledger::Made, nodes::NodeId, slab::Slot};
use crate::{
    batch::PodRef,
    object::{PodState, ResourceVersion, Uid},
};

pub(crate) type PodId = Slot;

/// A pod. Its namespace, labels and controller are in its group, and repeated strings are shared.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) uid: Uid,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) group: GroupId,
    pub(crate) node: Option<NodeId>,
    /// The number of its waiting reason.
    pub(crate) waiting: Option<NodeId>,
    pub(crate) state: PodState,
    /// The number of the last snapshot that named the pod.
    pub(crate) snapshot: u32,
    /// The position of the pod in the list of its owner's pods.
    pub(crate) position: u32,
    pub(crate) counted: Contribution,
    /// When a create of its ReplicaSet in this session made it.
    pub(crate) made: Made,
    /// Whether this session has decided to delete it.
    pub(crate) is_victim: bool,
    /// Whether it was leaving already when it came to its node.
    pub(crate) came_leaving: bool,
    /// Whether its owner is known from the answer to an adoption alone: the object in the answer does not show it.
    pub(crate) is_presumed: bool,
}

/// What a pod adds to the counts of the ReplicaSet that owns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contribution {
    pub(crate) active: bool,
    /// Active, and without a node.
    pub(crate) unassigned: bool,
    pub(crate) fully_labeled: bool,
    pub(crate) ready: bool,
    pub(crate) available: bool,
    /// Ready since a known time, but not for long enough.
    pub(crate) pending: bool,
    pub(crate) terminating: bool,
    pub(crate) release: bool,
    pub(crate) unknown: bool,
}

impl Entry {
    pub(crate) fn pod_ref(&self) -> PodRef {
        PodRef {
            name: Arc::clone(&self.name),
            uid: self.uid.clone(),
        }
    }
}
