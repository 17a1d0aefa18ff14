//! All namespaces, and the users of each pod name in them: a pod of the view, or an operation that creates one.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use hashbrown::hash_map::EntryRef;

use super::{
    cost,
    map::{self, Map},
    pod::PodId,
    set::SetId,
};
use crate::{
    held::Held,
    names::{self, NameUse},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Namespace {
    /// The names of pods that exist, that are being created, or that were created and are not yet shown.
    pub(super) names: Map<Arc<str>, NameUsers>,
    pub(super) sets: BTreeMap<Arc<str>, SetId>,
}

/// The users of a pod's name: at least one of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NameUsers {
    pub(super) pod: Option<PodId>,
    /// Whether the outcome of an operation that creates a pod of this name has not come.
    pub(super) is_in_making: bool,
    /// Whether a pod of this name has ended meanwhile.
    pub(super) has_gone: bool,
}

/// The namespaces that have a pod, a ReplicaSet or a create in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespaces(BTreeMap<Arc<str>, Namespace>);

impl Namespaces {
    pub(crate) fn name_use(&self, namespace: &str, name: &str) -> NameUse {
        match self.users(namespace, name) {
            Some(users) if users.pod.is_some() => NameUse::Taken,
            Some(_) => NameUse::InFlight,
            None => NameUse::Free,
        }
    }

    pub(crate) fn begin_making(&mut self, namespace: &Arc<str>, name: Arc<str>) {
        let users = self.entry(namespace).names.entry(name);
        users.or_default().is_in_making = true;
    }

    /// Frees the name of an operation. Returns whether a pod of this name has come and gone before the outcome.
    pub(crate) fn end_making(&mut self, namespace: &str, name: &str) -> bool {
        let mut has_gone = false;
        self.change(namespace, name, |users| {
            has_gone = std::mem::take(&mut users.has_gone);
            users.is_in_making = false;
        });
        has_gone
    }

    pub(super) fn is_in_making(&self, namespace: &str, name: &str) -> bool {
        let users = self.users(namespace, name);
        users.is_some_and(|users| users.is_in_making)
    }

    /// Gives a pod its name. Returns a copy of the name, shared with the operation that created the pod, if there is one.
    pub(super) fn name_pod(&mut self, namespace: &Arc<str>, name: &str, pod: PodId) -> Arc<str> {
        match self.entry(namespace).names.entry_ref(name) {
            EntryRef::Occupied(mut known) => {
                known.get_mut().pod = Some(pod);
                Arc::clone(known.key())
            }
            EntryRef::Vacant(free) => {
                let users = NameUsers {
                    pod: Some(pod),
                    ..NameUsers::default()
                };
                let named = free.insert_entry_with_key(name.into(), users);
                Arc::clone(named.key())
            }
        }
    }

    /// Frees the name of a deleted pod.
    pub(super) fn unname_pod(&mut self, namespace: &str, name: &str) {
        self.change(namespace, name, |users| {
            users.has_gone = users.is_in_making;
            users.pod = None;
        });
    }

    /// Returns the ReplicaSets whose pods may have names of this base, and perhaps some others.
    pub(super) fn of_base(&self, namespace: &str, base: &str) -> impl Iterator<Item = SetId> {
        let sets = self.get(namespace).map(|content| &content.sets);
        let dashed = base.strip_suffix('-');
        let dashed = dashed.and_then(|name| sets?.get(name));
        let from = (Bound::Included(base), Bound::Unbounded);
        let from = sets
            .into_iter()
            .flat_map(move |sets| sets.range::<str, _>(from));
        let is_cut = names::may_be_cut(base);
        let alike = from
            .take_while(move |(name, _)| ***name == *base || (is_cut && name.starts_with(base)));
        dashed.into_iter().chain(alike.map(|(_, id)| id)).copied()
    }

    fn change(&mut self, namespace: &str, name: &str, change: impl FnOnce(&mut NameUsers)) {
        if let Some(content) = self.0.get_mut(namespace)
            && let Some(known) = content.names.get_mut(name)
        {
            change(known);
            if *known == NameUsers::default() {
                map::remove(&mut content.names, name);
            }
        }
        self.drop_empty(namespace);
    }

    fn users(&self, namespace: &str, name: &str) -> Option<NameUsers> {
        self.get(namespace)?.names.get(name).copied()
    }

    pub(super) fn get(&self, namespace: &str) -> Option<&Namespace> {
        self.0.get(namespace)
    }

    /// Returns a namespace to change it. A caller that may empty the namespace must call [`Self::drop_empty`].
    pub(super) fn get_mut(&mut self, namespace: &str) -> Option<&mut Namespace> {
        self.0.get_mut(namespace)
    }

    pub(super) fn entry(&mut self, namespace: &Arc<str>) -> &mut Namespace {
        self.0.entry(Arc::clone(namespace)).or_default()
    }

    pub(super) fn from(&self, first: &str) -> impl Iterator<Item = (&str, &Namespace)> {
        let range = (Bound::Included(first), Bound::Unbounded);
        let namespaces = self.0.range::<str, _>(range);
        namespaces.map(|(name, content)| (&**name, content))
    }

    pub(super) fn shared_name(&self, name: &str) -> Arc<str> {
        let known = self.0.get_key_value(name);
        known.map_or_else(|| name.into(), |(name, _)| Arc::clone(name))
    }

    pub(super) fn drop_empty(&mut self, namespace: &str) {
        let is_empty = |it: &Namespace| it.names.is_empty() && it.sets.is_empty();
        if self.0.get(namespace).is_some_and(is_empty) {
            self.0.remove(namespace);
        }
    }
}

impl Held for Namespaces {
    /// Pods and ReplicaSets count for themselves.
    fn bytes(&self) -> usize {
        self.0.len() * cost::NAMESPACE
    }
}
