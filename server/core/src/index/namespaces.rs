//! All namespaces, and the users of each pod name in them: a pod of the view, or an operation that creates one.

use std::{collections::BTreeMap, sync::Arc};

use hashbrown::hash_map::EntryRef;

use super::{
    cost,
    ids::Ids,
    namespace::{Holder, Namespace},
    pod::PodId,
    set::SetId,
};
use crate::names::{NameUse, SUFFIX_LENGTH};

/// The namespaces that have a pod, a ReplicaSet or a create in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespaces(BTreeMap<Arc<str>, Namespace>);

// === impl Namespaces ===

impl Namespaces {
    pub(crate) fn name_use(&self, namespace: &str, name: &str) -> NameUse {
        match self.holder(namespace, name) {
            Some(Holder::Pod(_) | Holder::Both(_)) => NameUse::Taken,
            Some(Holder::Making) => NameUse::InFlight,
            None => NameUse::Free,
        }
    }

    pub(crate) fn begin_making(&mut self, namespace: &Arc<str>, name: Arc<str>) {
        let holder = self.entry(namespace).names.entry(name);
        let holder = holder.or_insert(Holder::Making);
        *holder = holder.with_making();
    }

    pub(crate) fn end_making(&mut self, namespace: &str, name: &str) {
        let Some(content) = self.0.get_mut(namespace) else {
            return;
        };
        content.change(name, Holder::without_making);
        self.drop_empty(namespace);
    }

    pub(super) fn is_in_making(&self, namespace: &str, name: &str) -> bool {
        self.holder(namespace, name).is_some_and(Holder::is_making)
    }

    /// Gives a pod its name. Returns a copy of the name, shared with the operation that created the pod, if there is one.
    pub(super) fn name_pod(&mut self, namespace: &Arc<str>, name: &str, pod: PodId) -> Arc<str> {
        match self.entry(namespace).names.entry_ref(name) {
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

    /// Frees the name of a deleted pod. Returns the ReplicaSets with the same base of names, which must not use the name again.
    pub(super) fn unname_pod(
        &mut self,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = SetId> + use<'_> {
        if let Some(content) = self.0.get_mut(namespace) {
            content.change(name, Holder::without_pod);
        }
        self.drop_empty(namespace);
        let end = name.len().checked_sub(SUFFIX_LENGTH);
        let base = end.and_then(|end| name.get(..end));
        let sets = base.and_then(|base| self.get(namespace)?.bases.get(base));
        sets.into_iter().flat_map(Ids::iter)
    }

    fn holder(&self, namespace: &str, name: &str) -> Option<Holder> {
        self.get(namespace)?.names.get(name).copied()
    }

    pub(super) fn get(&self, namespace: &str) -> Option<&Namespace> {
        self.0.get(namespace)
    }

    /// Returns a namespace to change it. A caller that may empty the namespace must call [`Self::drop_empty`].
    pub(super) fn get_mut(&mut self, namespace: &str) -> Option<&mut Namespace> {
        self.0.get_mut(namespace)
    }

    /// Returns a namespace, and adds it if it is new.
    pub(super) fn entry(&mut self, namespace: &Arc<str>) -> &mut Namespace {
        self.0.entry(Arc::clone(namespace)).or_default()
    }

    /// Returns all namespaces in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Namespace)> {
        self.0.iter().map(|(name, content)| (&**name, content))
    }

    pub(super) fn shared_name(&self, name: &str) -> Arc<str> {
        let known = self.0.get_key_value(name);
        known.map_or_else(|| name.into(), |(name, _)| Arc::clone(name))
    }

    pub(super) fn drop_empty(&mut self, namespace: &str) {
        if self.0.get(namespace).is_some_and(Namespace::is_empty) {
            self.0.remove(namespace);
        }
    }

    /// The approximate memory of the namespaces in bytes, without their content.
    pub(super) fn bytes(&self) -> usize {
        self.0.len() * cost::NAMESPACE
    }
}
