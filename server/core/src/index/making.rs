//! Which names of pods are taken: used by a pod of the view, or being made.

use std::sync::Arc;

use super::{Index, ids::Ids, namespace::Namespace};
use crate::names::NameUse;

/// How long the end of a name is that distinguishes the pods of one base (spec 6.3).
const SUFFIX_LENGTH: usize = 5;

// === impl Index ===

impl Index {
    /// Returns whether a pod, or an operation in flight, has the name.
    pub(crate) fn is_taken(&self, namespace: &str, name: &str) -> bool {
        self.name_use(namespace, name) != NameUse::Free
    }

    /// Returns who uses a name.
    pub(crate) fn name_use(&self, namespace: &str, name: &str) -> NameUse {
        match self.namespaces.get(namespace) {
            Some(content) if content.pods.contains_key(name) => NameUse::Taken,
            Some(content) if content.making.contains(name) => NameUse::InFlight,
            Some(_) | None => NameUse::Free,
        }
    }

    /// Returns whether a pod of this name is being made.
    pub(crate) fn is_in_making(&self, namespace: &str, name: &str) -> bool {
        self.namespaces
            .get(namespace)
            .is_some_and(|content| content.making.contains(name))
    }

    /// Returns a copy of a pod's name, shared with the operation that made the pod if there is one.
    pub(super) fn pod_name(&self, namespace: &str, name: &str) -> Arc<str> {
        let content = self.namespaces.get(namespace);
        let made = content.and_then(|content| content.making.get(name));
        made.map_or_else(|| name.into(), Arc::clone)
    }

    /// Notes that a pod of this name is being made.
    pub(crate) fn begin_making(&mut self, namespace: &Arc<str>, name: Arc<str>) {
        self.namespaces
            .entry(Arc::clone(namespace))
            .or_default()
            .making
            .insert(name);
    }

    /// Notes that no operation has the name any more.
    pub(crate) fn end_making(&mut self, namespace: &str, name: &str) {
        let Some(content) = self.namespaces.get_mut(namespace) else {
            return;
        };
        content.making.remove(name);
        self.drop_empty_namespace(namespace);
    }

    /// Lets the ReplicaSets that make names on this base know that a pod of this name was there, and is gone.
    pub(super) fn retire_name(&mut self, namespace: &str, name: &str) {
        let Some(base) = name
            .len()
            .checked_sub(SUFFIX_LENGTH)
            .and_then(|end| name.get(..end))
        else {
            return;
        };
        let sets = self
            .namespaces
            .get(namespace)
            .and_then(|content| content.bases.get(base));
        for id in sets.into_iter().flat_map(Ids::iter) {
            if let Some(set) = self.sets.get_mut(&id) {
                set.cursor.mark_gone(name);
            }
        }
    }

    /// Returns the shared copy of a namespace's name.
    pub(super) fn namespace_name(&self, name: &str) -> Arc<str> {
        let known = self.namespaces.get_key_value(name);
        known.map_or_else(|| name.into(), |(name, _)| Arc::clone(name))
    }

    pub(super) fn drop_empty_namespace(&mut self, namespace: &str) {
        if self
            .namespaces
            .get(namespace)
            .is_some_and(Namespace::is_empty)
        {
            self.namespaces.remove(namespace);
        }
    }
}
