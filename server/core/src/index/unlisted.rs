//! The objects that a complete list did not name.

use std::{collections::BTreeMap, sync::Arc};

use super::{Index, pod::PodId, pods::is_after, set::SetId};
use crate::object::ResourceVersion;

#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedList {
    pub(crate) number: u32,
    pub(crate) version: Option<ResourceVersion>,
    /// The version that the stream had shown when the list began, if the list is older.
    pub(crate) shown: Option<ResourceVersion>,
}

impl EndedList {
    /// Returns whether an object that list number `named` named last is gone: this list did not name it, and it is not newer than this
    /// list.
    fn omits(&self, named: u32, version: Option<ResourceVersion>) -> bool {
        named < self.number && !is_after(version, self.version)
    }

    /// Returns whether an object is gone that a list named, although it was unknown and the stream had passed its version.
    fn is_disproved(&self, version: Option<ResourceVersion>) -> bool {
        version.is_some() && version <= self.shown
    }

    /// Returns the pods that the list did not name, sorted by namespace and name.
    pub(crate) fn unlisted_pods(&self, index: &Index) -> Vec<PodId> {
        let unlisted = index.pods.iter().filter(|(id, entry)| {
            self.omits(entry.snapshot, entry.version)
                || self.is_disproved(entry.version) && index.doubtful_pods.contains(id)
        });
        let named = unlisted.map(|(id, entry)| {
            let namespace = &index.groups.at(entry.group).namespace;
            ((Arc::clone(namespace), Arc::clone(&entry.name)), id)
        });
        named.collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Returns the ReplicaSets that the list did not name, in the order of their arrival.
    pub(crate) fn unlisted_sets(&self, index: &Index) -> Vec<SetId> {
        let unlisted = index.sets.iter().filter(|(id, set)| {
            let version = set.object.version;
            self.omits(set.snapshot, version)
                || self.is_disproved(version) && index.doubtful_sets.contains(id)
        });
        unlisted.map(|(id, _)| *id).collect()
    }
}
