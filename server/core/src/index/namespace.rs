//! What one namespace holds.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::{
    growing_map::GrowingMap, ids::Ids, orphans::Orphans, pod::PodId, selectors::Selectors,
    set::SetId,
};
use crate::pieces::{Pieces, pieces};

/// The objects of one namespace by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespace {
    pub(super) pods: GrowingMap<Arc<str>, PodId>,
    pub(super) sets: BTreeMap<Arc<str>, SetId>,
    pub(super) orphans: Orphans,
    pub(super) selectors: Selectors,
    /// ReplicaSets by the base of their pods' names: they learn when a pod of such a name has been.
    pub(super) bases: BTreeMap<Arc<str>, Ids<SetId>>,
    /// Names of pods that are being made, or were made and are not yet shown.
    pub(super) making: HashSet<Arc<str>>,
}

// === impl Namespace ===

impl Namespace {
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.sets.is_empty() && self.making.is_empty()
    }

    /// Returns all objects, to be freed a piece at a time.
    pub(super) fn into_pieces(self) -> Pieces {
        let Self {
            pods,
            sets,
            orphans,
            selectors,
            bases,
            making,
        } = self;
        let named = pods.into_pieces().chain(pieces(sets)).chain(pieces(bases));
        let named = named.chain(pieces(making));
        Box::new(
            named
                .chain(orphans.into_pieces())
                .chain(selectors.into_pieces()),
        )
    }
}
