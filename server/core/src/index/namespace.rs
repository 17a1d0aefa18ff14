//! What one namespace holds.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{orphans::Orphans, pod::PodId, selectors::Selectors, set::SetId};

/// The objects of one namespace by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespace {
    pub(super) pods: HashMap<Arc<str>, PodId>,
    pub(super) sets: BTreeMap<Arc<str>, SetId>,
    pub(super) orphans: Orphans,
    pub(super) selectors: Selectors,
    /// ReplicaSets by the base of their pods' names: they learn when a pod of such a name has been.
    pub(super) bases: BTreeMap<Arc<str>, BTreeSet<SetId>>,
    /// Names of pods that are being made, or were made and are not yet shown.
    pub(super) making: HashSet<Arc<str>>,
}

// === impl Namespace ===

impl Namespace {
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.sets.is_empty() && self.making.is_empty()
    }
}
