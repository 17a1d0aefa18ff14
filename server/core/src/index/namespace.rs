//! The content of one namespace.

use std::{collections::BTreeMap, sync::Arc};

use hashbrown::hash_map::EntryRef;

use super::{ids::Ids, map::Map, orphans::Orphans, pod::PodId, selectors::Selectors, set::SetId};

/// The objects of one namespace by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespace {
    /// The names of pods that exist, that are being created, or that were created and are not yet shown.
    pub(super) names: Map<Arc<str>, Holder>,
    pub(super) sets: BTreeMap<Arc<str>, SetId>,
    pub(super) orphans: Orphans,
    pub(super) selectors: Selectors,
    /// ReplicaSets by the base of their pods' names. They learn when a pod of such a name has existed.
    pub(super) bases: BTreeMap<Arc<str>, Ids<SetId>>,
}

/// The holder of a pod's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// A pod.
    Pod(PodId),
    /// The operation that creates a pod of this name.
    Making,
    /// A pod, and an operation whose outcome has not come.
    Both(PodId),
}

// === impl Namespace ===

impl Namespace {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.sets.is_empty()
    }

    /// Replaces the holder of a name by the result of `change`; `None` frees the name.
    pub(super) fn change(&mut self, name: &str, change: impl FnOnce(Holder) -> Option<Holder>) {
        if let EntryRef::Occupied(mut known) = self.names.entry_ref(name) {
            match change(*known.get()) {
                Some(changed) => *known.get_mut() = changed,
                None => drop(known.remove()),
            }
        }
    }
}

// === impl Holder ===

impl Holder {
    pub(super) const fn pod(self) -> Option<PodId> {
        match self {
            Self::Pod(pod) | Self::Both(pod) => Some(pod),
            Self::Making => None,
        }
    }

    pub(super) const fn is_making(self) -> bool {
        matches!(self, Self::Making | Self::Both(_))
    }

    pub(super) const fn with_pod(self, pod: PodId) -> Self {
        match self {
            Self::Pod(_) => Self::Pod(pod),
            Self::Making | Self::Both(_) => Self::Both(pod),
        }
    }

    /// Returns the holder without the pod; `None` if the name is free.
    pub(super) const fn without_pod(self) -> Option<Self> {
        match self {
            Self::Pod(_) => None,
            Self::Making | Self::Both(_) => Some(Self::Making),
        }
    }

    pub(super) const fn with_making(self) -> Self {
        match self {
            Self::Pod(pod) | Self::Both(pod) => Self::Both(pod),
            Self::Making => Self::Making,
        }
    }

    /// Returns the holder without the operation; `None` if the name is free.
    pub(super) const fn without_making(self) -> Option<Self> {
        match self {
            Self::Pod(pod) | Self::Both(pod) => Some(Self::Pod(pod)),
            Self::Making => None,
        }
    }
}
