//! Remembers deleted objects until the stream has passed their deletion, so that no older event, list or outcome brings them back.

use std::collections::BTreeSet;

use super::{
    cost,
    map::{self, Map},
};
use crate::{
    held::Held,
    object::{ByKind, Kind, ResourceVersion, Uid},
};

/// When an object was deleted, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gone {
    /// Before list *n* + 1 began; holds *n*.
    BeforeList(u32),
    At(ResourceVersion),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    by_kind: ByKind<OfKind>,
    bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct OfKind {
    gone: Map<Uid, Gone>,
    in_order: BTreeSet<(Gone, Uid)>,
}

impl Tombstones {
    /// Records the deletion of an object at `version`. If the version is unknown, the deletion was after list number `list` began.
    pub(crate) fn insert(
        &mut self,
        kind: Kind,
        uid: Uid,
        version: Option<ResourceVersion>,
        list: u32,
    ) {
        let gone = version.map_or(Gone::BeforeList(list), Gone::At);
        let of_kind = self.by_kind.of_mut(kind);
        match of_kind.gone.insert(uid.clone(), gone) {
            Some(before) => drop(of_kind.in_order.remove(&(before, uid.clone()))),
            None => self.bytes += cost::tombstone(&uid),
        }
        of_kind.in_order.insert((gone, uid));
    }

    pub(crate) fn covers(&self, kind: Kind, uid: &str, version: Option<ResourceVersion>) -> bool {
        match (self.by_kind.of(kind).gone.get(uid), version) {
            (Some(Gone::At(gone)), Some(version)) => version <= *gone,
            (Some(Gone::At(_) | Gone::BeforeList(_)), _) => true,
            (None, _) => false,
        }
    }

    pub(crate) fn remove(&mut self, kind: Kind, uid: &Uid) {
        let of_kind = self.by_kind.of_mut(kind);
        if let Some(gone) = map::remove(&mut of_kind.gone, uid) {
            self.bytes -= cost::tombstone(uid);
            of_kind.in_order.remove(&(gone, uid.clone()));
        }
    }

    pub(crate) fn remove_unversioned(&mut self, kind: Kind, uid: &str) {
        let gone = &self.by_kind.of(kind).gone;
        if let Some((uid, Gone::BeforeList(_))) = gone.get_key_value(uid) {
            let uid = uid.clone();
            self.remove(kind, &uid);
        }
    }

    /// Forgets objects that were deleted at versions up to `seen`.
    pub(crate) fn forget(&mut self, kind: Kind, seen: ResourceVersion) {
        let first = Gone::At(ResourceVersion(0));
        self.forget_between(kind, first, Gone::At(seen));
    }

    /// Forgets objects that were deleted at an unknown version before list number `list` began: that list is complete and did not name
    /// them.
    pub(crate) fn forget_unversioned(&mut self, kind: Kind, list: u32) {
        if let Some(last) = list.checked_sub(1) {
            self.forget_between(kind, Gone::BeforeList(0), Gone::BeforeList(last));
        }
    }

    fn forget_between(&mut self, kind: Kind, first: Gone, last: Gone) {
        let from = (first, Uid::default());
        while let Some((gone, uid)) = self.by_kind.of(kind).in_order.range(&from..).next()
            && *gone <= last
        {
            let uid = uid.clone();
            self.remove(kind, &uid);
        }
    }
}

impl Held for Tombstones {
    fn bytes(&self) -> usize {
        let Self { by_kind: _, bytes } = self;
        *bytes
    }
}
