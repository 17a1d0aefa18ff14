//! A pod as the index keeps it: compact, with what it adds to its ReplicaSet noted, so that a change can take that back.

use std::sync::Arc;

use super::{
    create_back_off::Made,
    nodes::{NodeId, Readiness},
};
use crate::{
    batch::PodRef,
    compact_uid::CompactUid,
    object::{OwnerReference, Phase, PodState, ResourceVersion},
};

/// The place of a pod in the index.
pub(crate) type PodId = u32;

/// A pod. Labels live in its group, strings that repeat are shared.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) uid: CompactUid,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) group: u32,
    pub(crate) controller: Option<Arc<OwnerReference>>,
    pub(crate) node: Option<NodeId>,
    pub(crate) state: PodState,
    /// The last snapshot that named the pod.
    pub(crate) snapshot: u32,
    /// Where the pod stands in the list of its owner's pods.
    pub(crate) position: u32,
    pub(crate) counted: Contribution,
    /// When this session made it. A pod that this session has asked to go has no mark.
    pub(crate) made: Made,
    /// Whether this session has seen it ready, and it is not any more.
    pub(crate) has_lapsed: bool,
}

/// What a pod adds to the counts of the ReplicaSet that owns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contribution {
    pub(crate) active: bool,
    pub(crate) fully_labeled: bool,
    pub(crate) ready: bool,
    pub(crate) available: bool,
    /// Ready, but not for long enough, and it is known since when.
    pub(crate) pending: bool,
    pub(crate) terminating: bool,
    pub(crate) release: bool,
}

// === impl Entry ===

impl Entry {
    /// Names the pod for its lifetime.
    pub(crate) fn pod_ref(&self) -> PodRef {
        PodRef {
            name: Arc::clone(&self.name),
            uid: self.uid.clone(),
        }
    }

    /// Takes another state.
    pub(crate) fn change_state(&mut self, state: PodState) {
        let was_ready = self.state.ready.ready || self.has_lapsed;
        self.has_lapsed = was_ready && !state.ready.ready;
        self.state = state;
    }

    /// Returns whether the pod is ready, and if not, whether it was.
    pub(crate) fn readiness(&self) -> Readiness {
        if self.state.ready.ready {
            Readiness::Ready
        } else if self.has_lapsed || self.state.phase == Phase::Unknown {
            Readiness::Lapsed
        } else {
            Readiness::NeverReady
        }
    }
}
