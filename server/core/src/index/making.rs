//! Which names of pods are taken: used by a pod of the view, or being made.

use std::sync::Arc;

use hashbrown::hash_map::EntryRef;

use super::{
    Index,
    ids::Ids,
    namespace::{Holder, Namespace},
    pod::PodId,
};
use crate::names::NameUse;

/// How long the end of a name is that distinguishes the pods of one base (spec 6.3).
const SUFFIX_LENGTH: usize = 5;

// === impl Index ===

impl Index {
    /// Returns who uses a name.
    pub(crate) fn name_use(&self, namespace: &str, name: &str) -> NameUse {
        match self.holder(namespace, name) {
            Some(Holder::Pod(_) | Holder::Both(_)) => NameUse::Taken,
            Some(Holder::Making) => NameUse::InFlight,
            None => NameUse::Free,
        }
    }

    /// Returns whether a pod of this name is being made.
    pub(crate) fn is_in_making(&self, namespace: &str, name: &str) -> bool {
        self.holder(namespace, name).is_some_and(Holder::is_making)
    }

    /// Notes that a pod of this name is being made.
    pub(crate) fn begin_making(&mut self, namespace: &Arc<str>, name: Arc<str>) {
        let content = self.namespaces.entry(Arc::clone(namespace)).or_default();
        let holder = content.names.entry(name).or_insert(Holder::Making);
        *holder = holder.with_making();
    }

    /// Notes that no operation has the name any more.
    pub(crate) fn end_making(&mut self, namespace: &str, name: &str) {
        let Some(content) = self.namespaces.get_mut(namespace) else {
            return;
        };
        content.change(name, Holder::without_making);
        self.drop_empty_namespace(namespace);
    }

    /// Gives a pod its name, and returns a copy of it, shared with the operation that made the pod if there is one.
    pub(super) fn name_pod(&mut self, namespace: &Arc<str>, name: &str, pod: PodId) -> Arc<str> {
        let content = self.namespaces.entry(Arc::clone(namespace)).or_default();
        match content.names.entry_ref(name) {
            EntryRef::Occupied(mut known) => {
                let holder = known.get_mut();
                *holder = holder.with_pod(pod);
                Arc::clone(known.key())
            }
            EntryRef::Vacant(free) => {
                let named = free.insert_entry_with_key(name.into(), Holder::Pod(pod));
                Arc::clone(named.key())
            }
        }
    }

    /// Takes its name from a pod that goes.
    pub(super) fn unname_pod(&mut self, namespace: &str, name: &str) {
        if let Some(content) = self.namespaces.get_mut(namespace) {
            content.change(name, Holder::without_pod);
        }
        self.drop_empty_namespace(namespace);
        self.retire_name(namespace, name);
    }

    fn holder(&self, namespace: &str, name: &str) -> Option<Holder> {
        self.namespaces.get(namespace)?.names.get(name).copied()
    }

    /// Lets the ReplicaSets that make names on this base know that a pod of this name was there, and is gone.
    fn retire_name(&mut self, namespace: &str, name: &str) {
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
