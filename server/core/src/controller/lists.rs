//! How far the lists of both kinds are, and which ReplicaSets wait for one: an outcome that carries no object says that a write was
//! made and not what it led to, so the sync goes on only after a list that began later.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    object::{ByKind, Kind},
    sync::batch_result::BatchResult,
};

/// The lists of one kind. Lists of both kinds are numbered through, in the order in which they began.
#[derive(Clone, Copy, Debug, Default)]
struct Lists {
    /// The last complete list; 0 before the first.
    complete: u32,
    /// The list that is open.
    open: Option<u32>,
    /// Whether a list was asked for and none has begun since: there is one request at a time, however many wait.
    requested: bool,
}

/// The lists of both kinds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress(ByKind<Lists>);

/// What outcomes of a batch left open.
#[derive(Clone, Debug, Default)]
pub(super) struct Unseen {
    /// By kind the list that had begun last when such an outcome came.
    after: BTreeMap<Kind, u32>,
    /// The names of pods that were created and are not in the view.
    pub(super) names: Vec<Arc<str>>,
}

/// A sync whose batch is answered, and which waits for lists that show its writes.
#[derive(Clone, Debug)]
pub(super) struct ListWait {
    pub(super) unseen: Unseen,
    pub(super) namespace: Arc<str>,
    pub(super) result: BatchResult,
}

// === impl Progress ===

impl Progress {
    /// Returns whether both kinds have been listed.
    pub(super) const fn is_synced(&self) -> bool {
        self.is_listed(Kind::Pod) && self.is_listed(Kind::ReplicaSet)
    }

    /// Returns whether both kinds have been listed and no list is open.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_synced() && self.open(Kind::Pod).is_none() && self.open(Kind::ReplicaSet).is_none()
    }

    /// Returns whether the kind has been listed.
    pub(super) const fn is_listed(&self, kind: Kind) -> bool {
        self.0.of(kind).complete > 0
    }

    /// Returns whether complete lists have shown what a batch left open.
    pub(super) fn show(&self, unseen: &Unseen) -> bool {
        self.missing(unseen).next().is_none()
    }

    /// Returns the kinds of which a list is missing.
    pub(super) fn missing(&self, unseen: &Unseen) -> impl Iterator<Item = Kind> {
        let missing = unseen.after.iter();
        missing.filter_map(|(kind, after)| (self.0.of(*kind).complete <= *after).then_some(*kind))
    }

    /// Notes that a list begins.
    pub(super) const fn begin(&mut self, kind: Kind, number: u32) {
        let lists = self.0.of_mut(kind);
        (lists.open, lists.requested) = (Some(number), false);
    }

    /// Returns the number of the open list.
    pub(super) const fn open(&self, kind: Kind) -> Option<u32> {
        self.0.of(kind).open
    }

    /// Notes that the open list is complete.
    pub(super) const fn complete(&mut self, kind: Kind, number: u32) {
        let lists = self.0.of_mut(kind);
        (lists.complete, lists.open) = (number, None);
    }

    /// Notes that a list is asked for.
    pub(super) const fn request(&mut self, kind: Kind) {
        self.0.of_mut(kind).requested = true;
    }

    /// Returns whether a list is asked for or open.
    pub(super) const fn is_coming(&self, kind: Kind) -> bool {
        self.0.of(kind).requested || self.0.of(kind).open.is_some()
    }
}

// === impl Unseen ===

impl Unseen {
    /// Notes a write of which the outcome carried no object, when list number `last` had begun last.
    pub(super) fn add(&mut self, kind: Kind, last: u32, created: Option<Arc<str>>) {
        self.after.insert(kind, last);
        self.names.extend(created);
    }
}
