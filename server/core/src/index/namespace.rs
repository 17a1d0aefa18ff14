//! What one namespace holds.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{pod::PodId, selectors::Selectors, set::SetId};

/// The objects of one namespace by name.
#[derive(Debug, Default)]
pub(crate) struct Namespace {
    pub(crate) pods: HashMap<Arc<str>, PodId>,
    pub(crate) sets: BTreeMap<Arc<str>, SetId>,
    /// Pods without a controller.
    pub(crate) orphans: BTreeSet<PodId>,
    pub(crate) selectors: Selectors,
    /// ReplicaSets by the base of their pods' names: they learn when a name becomes free.
    pub(crate) bases: BTreeMap<Arc<str>, BTreeSet<SetId>>,
}

// === impl Namespace ===

impl Namespace {
    /// Returns whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.sets.is_empty()
    }
}
