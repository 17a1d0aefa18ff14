//! What a complete list did not name.

use std::{collections::BTreeMap, sync::Arc};

use super::{Index, pod::PodId, pods::is_after, set::SetId};
use crate::object::ResourceVersion;

/// A list that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    pub(crate) number: u32,
    pub(crate) version: Option<ResourceVersion>,
    /// What the stream had shown when the list began, if the list is older.
    pub(crate) shown: Option<ResourceVersion>,
}

// === impl Listed ===

impl Listed {
    /// Returns whether an object is gone that list number `named` named last: this list did not name it, and it is not newer than the list.
    fn omits(&self, named: u32, version: Option<ResourceVersion>) -> bool {
        named < self.number && !is_after(version, self.version)
    }

    /// Returns whether an object of this version is gone that was not known, and that the stream had passed, when a list named it.
    fn is_disproved(&self, version: Option<ResourceVersion>) -> bool {
        version.is_some() && version <= self.shown
    }
}

// === impl Index ===

impl Index {
    /// Returns the pods that a list did not name, by namespace and name.
    pub(crate) fn unlisted_pods(&self, list: &Listed) -> Vec<PodId> {
        let unlisted = self.pods.iter().filter(|(id, entry)| {
            list.omits(entry.snapshot, entry.version)
                || list.is_disproved(entry.version) && self.doubtful_pods.contains(id)
        });
        let named = unlisted.map(|(id, entry)| {
            let namespace = &self.groups.at(entry.group).namespace;
            ((Arc::clone(namespace), Arc::clone(&entry.name)), id)
        });
        named.collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Returns the ReplicaSets that a list did not name, in the order in which they came.
    pub(crate) fn unlisted_sets(&self, list: &Listed) -> Vec<SetId> {
        let unlisted = self.sets.iter().filter(|(id, set)| {
            let version = set.object.version;
            list.omits(set.snapshot, version)
                || list.is_disproved(version) && self.doubtful_sets.contains(id)
        });
        unlisted.map(|(id, _)| *id).collect()
    }
}
