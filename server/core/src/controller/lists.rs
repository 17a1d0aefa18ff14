//! The progress of the lists of both kinds, and the ReplicaSets that wait for one. An outcome without an object says that a write was made,
//! but does not show its result. So the sync continues only after a list that began later.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    object::{ByKind, Kind},
    sync::batch_result::BatchResult,
};

/// The lists of one kind. The numbers count the lists of both kinds, in the order in which they began.
#[derive(Clone, Copy, Debug, Default)]
struct Lists {
    /// The number of the last complete list; 0 before the first.
    complete: u32,
    open: Option<u32>,
    /// Whether a list was requested and none has begun since. There is one request at a time, for any number of waiting syncs.
    requested: bool,
}

/// The lists of both kinds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress(ByKind<Lists>);

/// The effects that the outcomes of a batch did not show.
#[derive(Clone, Debug, Default)]
pub(super) struct Unseen {
    /// For each kind, the last list that had begun when such an outcome came.
    after: BTreeMap<Kind, u32>,
    /// The names of created pods that are not in the view.
    pub(super) names: Vec<Arc<str>>,
}

/// A sync whose batch has all its outcomes, and which waits for lists that show its writes.
#[derive(Clone, Debug)]
pub(super) struct ListWait {
    pub(super) unseen: Unseen,
    pub(super) namespace: Arc<str>,
    pub(super) result: BatchResult,
}

// === impl Progress ===

impl Progress {
    /// Whether both kinds have been listed.
    pub(super) const fn is_synced(&self) -> bool {
        self.is_listed(Kind::Pod) && self.is_listed(Kind::ReplicaSet)
    }

    /// Whether both kinds have been listed and no list is open.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_synced() && self.open(Kind::Pod).is_none() && self.open(Kind::ReplicaSet).is_none()
    }

    pub(super) const fn is_listed(&self, kind: Kind) -> bool {
        self.0.of(kind).complete > 0
    }

    /// Whether complete lists have shown the effects that the outcomes did not show.
    pub(super) fn show(&self, unseen: &Unseen) -> bool {
        self.missing(unseen).next().is_none()
    }

    /// Returns the kinds that still need a list.
    pub(super) fn missing(&self, unseen: &Unseen) -> impl Iterator<Item = Kind> {
        let missing = unseen.after.iter();
        missing.filter_map(|(kind, after)| (self.0.of(*kind).complete <= *after).then_some(*kind))
    }

    pub(super) const fn begin(&mut self, kind: Kind, number: u32) {
        let lists = self.0.of_mut(kind);
        (lists.open, lists.requested) = (Some(number), false);
    }

    pub(super) const fn open(&self, kind: Kind) -> Option<u32> {
        self.0.of(kind).open
    }

    pub(super) const fn complete(&mut self, kind: Kind, number: u32) {
        let lists = self.0.of_mut(kind);
        (lists.complete, lists.open) = (number, None);
    }

    pub(super) const fn request(&mut self, kind: Kind) {
        self.0.of_mut(kind).requested = true;
    }

    /// Whether a list is requested or open.
    pub(super) const fn is_coming(&self, kind: Kind) -> bool {
        self.0.of(kind).requested || self.0.of(kind).open.is_some()
    }
}

// === impl Unseen ===

impl Unseen {
    /// Adds a write whose outcome carried no object. `last` is the last list that had begun by then.
    pub(super) fn add(&mut self, kind: Kind, last: u32, created: Option<Arc<str>>) {
        self.after.insert(kind, last);
        self.names.extend(created);
    }
}
