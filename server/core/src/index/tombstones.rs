//! Remembers what is gone until the stream has passed it, so that an older event, list or outcome cannot bring it back.

use std::collections::BTreeSet;

use super::{cost, growing_map::GrowingMap};
use crate::{
    object::{Kind, ResourceVersion, Uid},
    pieces::{Pieces, pieces},
    work::Work,
};

/// When an object went, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gone {
    /// Before the list after this one began.
    BeforeList(u32),
    /// At this version.
    At(ResourceVersion),
}

/// Gone objects by uid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    gone: GrowingMap<(Kind, Uid), Gone>,
    in_order: BTreeSet<(Kind, Gone, Uid)>,
    bytes: usize,
}

// === impl Tombstones ===

impl Tombstones {
    /// Notes that an object is gone, at `version` or, where that is unknown, after list number `list` began.
    pub(crate) fn insert(
        &mut self,
        kind: Kind,
        uid: Uid,
        version: Option<ResourceVersion>,
        list: u32,
    ) {
        self.remove(kind, &uid);
        let gone = version.map_or(Gone::BeforeList(list), Gone::At);
        self.bytes += cost::tombstone(&uid);
        self.gone.insert((kind, uid.clone()), gone);
        self.in_order.insert((kind, gone, uid));
    }

    /// Returns whether an object at this version is known to be gone.
    pub(crate) fn covers(&self, kind: Kind, uid: &Uid, version: Option<ResourceVersion>) -> bool {
        if self.gone.is_empty() {
            return false;
        }
        match (self.gone.get(&(kind, uid.clone())), version) {
            (Some(Gone::At(gone)), Some(version)) => version <= *gone,
            (Some(Gone::At(_) | Gone::BeforeList(_)), _) => true,
            (None, _) => false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }

    /// Returns all of it, to be freed a piece at a time.
    pub(crate) fn into_pieces(self) -> Pieces {
        Box::new(self.gone.into_pieces().chain(pieces(self.in_order)))
    }

    /// Returns about how many bytes all of it takes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets one object.
    pub(crate) fn remove(&mut self, kind: Kind, uid: &Uid) {
        if self.gone.is_empty() {
            return;
        }
        if let Some(gone) = self.gone.remove(&(kind, uid.clone())) {
            self.bytes -= cost::tombstone(uid);
            self.in_order.remove(&(kind, gone, uid.clone()));
        }
    }

    /// Forgets one object that went at an unknown version.
    pub(crate) fn remove_unversioned(&mut self, kind: Kind, uid: &Uid) {
        if matches!(
            self.gone.get(&(kind, uid.clone())),
            Some(Gone::BeforeList(_))
        ) {
            self.remove(kind, uid);
        }
    }

    /// Forgets what is gone at versions up to `seen`. Returns whether that is all, or the work is spent.
    pub(crate) fn forget(&mut self, kind: Kind, seen: ResourceVersion, work: &mut Work) -> bool {
        let first = Gone::At(ResourceVersion(0));
        self.forget_between(kind, (first, Gone::At(seen)), work)
    }

    /// Forgets what went at an unknown version before list number `list` began: that list is complete and did not name it. Returns as
    /// [`Self::forget`].
    pub(crate) fn forget_unversioned(&mut self, kind: Kind, list: u32, work: &mut Work) -> bool {
        let Some(last) = list.checked_sub(1) else {
            return true;
        };
        let lists = (Gone::BeforeList(0), Gone::BeforeList(last));
        self.forget_between(kind, lists, work)
    }

    fn forget_between(&mut self, kind: Kind, (first, last): (Gone, Gone), work: &mut Work) -> bool {
        if self.gone.is_empty() {
            return true;
        }
        let lowest = (kind, first, Uid("".into()));
        while let Some(oldest) = self.in_order.range(&lowest..).next()
            && oldest.0 == kind
            && oldest.1 <= last
        {
            if work.is_spent() {
                return false;
            }
            work.spend(1);
            let uid = oldest.2.clone();
            self.remove(kind, &uid);
        }
        true
    }
}
