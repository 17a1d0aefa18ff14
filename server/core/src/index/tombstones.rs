//! Remembers what is gone until the stream has passed it, so that an older event or list cannot bring it back.

use std::collections::{BTreeSet, HashMap};

use crate::object::{Kind, ResourceVersion, Uid};

/// Gone objects by uid, with the version of their going where it is known.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    gone: HashMap<(Kind, Uid), Option<ResourceVersion>>,
    by_version: BTreeSet<(Kind, Option<ResourceVersion>, Uid)>,
}

// === impl Tombstones ===

impl Tombstones {
    /// Notes that an object is gone.
    pub(crate) fn insert(&mut self, kind: Kind, uid: Uid, version: Option<ResourceVersion>) {
        self.remove(kind, &uid);
        self.gone.insert((kind, uid.clone()), version);
        self.by_version.insert((kind, version, uid));
    }

    /// Returns whether an object at this version is known to be gone.
    pub(crate) fn buries(&self, kind: Kind, uid: &Uid, version: Option<ResourceVersion>) -> bool {
        self.gone
            .get(&(kind, uid.clone()))
            .is_some_and(|gone| match (gone, version) {
                (Some(gone), Some(version)) => version <= *gone,
                (None, _) | (_, None) => true,
            })
    }

    /// Forgets one object.
    pub(crate) fn remove(&mut self, kind: Kind, uid: &Uid) {
        if let Some(version) = self.gone.remove(&(kind, uid.clone())) {
            self.by_version.remove(&(kind, version, uid.clone()));
        }
    }

    /// Forgets what is gone by a version up to `seen`; and at a complete list also what has no version.
    pub(crate) fn forget(&mut self, kind: Kind, seen: Option<ResourceVersion>) {
        let passed = |key: &(Kind, Option<ResourceVersion>, Uid)| match (key.1, seen) {
            (Some(version), Some(seen)) => version <= seen,
            _ => false,
        };
        while let Some(key) = self.first_versioned(kind) {
            if !passed(&key) {
                return;
            }
            self.remove(kind, &key.2);
        }
    }

    /// Forgets what has no version; the stream showed a list made after it.
    pub(crate) fn forget_unversioned(&mut self, kind: Kind) {
        while let Some(uid) = self.first_unversioned(kind) {
            self.remove(kind, &uid);
        }
    }

    fn first_versioned(&self, kind: Kind) -> Option<(Kind, Option<ResourceVersion>, Uid)> {
        let lowest = (kind, Some(ResourceVersion(0)), Uid("".into()));
        let key = self.by_version.range(lowest..).next()?;
        (key.0 == kind).then(|| key.clone())
    }

    fn first_unversioned(&self, kind: Kind) -> Option<Uid> {
        let lowest = (kind, None, Uid("".into()));
        let key = self.by_version.range(lowest..).next()?;
        (key.0 == kind && key.1.is_none()).then(|| key.2.clone())
    }
}
