//! What one namespace holds.

use std::{collections::BTreeMap, sync::Arc};

use hashbrown::hash_map::EntryRef;

use super::{ids::Ids, map::Map, orphans::Orphans, pod::PodId, selectors::Selectors, set::SetId};

/// The objects of one namespace by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespace {
    /// The names of pods that are there, are being made, or were made and are not yet shown.
    pub(super) names: Map<Arc<str>, Holder>,
    pub(super) sets: BTreeMap<Arc<str>, SetId>,
    pub(super) orphans: Orphans,
    pub(super) selectors: Selectors,
    /// ReplicaSets by the base of their pods' names: they learn when a pod of such a name has been.
    pub(super) bases: BTreeMap<Arc<str>, Ids<SetId>>,
}

/// Who has the name of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// A pod.
    Pod(PodId),
    /// The operation that makes a pod of this name.
    Making,
    /// A pod, and an operation whose outcome has not come.
    Both(PodId),
}

// === impl Namespace ===

impl Namespace {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.sets.is_empty()
    }

    /// Lets the holder of a name be what `change` makes of it; the name is free where that is nothing.
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
    /// Returns the pod, if there is one.
    pub(super) const fn pod(self) -> Option<PodId> {
        match self {
            Self::Pod(pod) | Self::Both(pod) => Some(pod),
            Self::Making => None,
        }
    }

    /// Returns whether an operation has the name.
    pub(super) const fn is_making(self) -> bool {
        matches!(self, Self::Making | Self::Both(_))
    }

    /// Returns who has the name once the pod is there.
    pub(super) const fn with_pod(self, pod: PodId) -> Self {
        match self {
            Self::Pod(_) => Self::Pod(pod),
            Self::Making | Self::Both(_) => Self::Both(pod),
        }
    }

    /// Returns who has the name once the pod is gone.
    pub(super) const fn without_pod(self) -> Option<Self> {
        match self {
            Self::Pod(_) => None,
            Self::Making | Self::Both(_) => Some(Self::Making),
        }
    }

    /// Returns who has the name once an operation has it.
    pub(super) const fn with_making(self) -> Self {
        match self {
            Self::Pod(pod) | Self::Both(pod) => Self::Both(pod),
            Self::Making => Self::Making,
        }
    }

    /// Returns who has the name once no operation has it.
    pub(super) const fn without_making(self) -> Option<Self> {
        match self {
            Self::Pod(pod) | Self::Both(pod) => Some(Self::Pod(pod)),
            Self::Making => None,
        }
    }
}
