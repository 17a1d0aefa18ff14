//! Finds the ReplicaSets of a namespace that select given labels, without a test of each.
//!
//! A selector that requires one exact value of a key can match only where that label is. A selector that only requires the key can match
//! only where the key is. Selectors that only forbid are tested each time.

use std::{collections::BTreeSet, hash::Hash, sync::Arc};

use hashbrown::Equivalent;

use super::{
    ids::Ids,
    map::{self, Map},
    set::SetId,
};
use crate::{
    labels::{Label, Labels},
    selector::{Selector, Test},
};

/// The ReplicaSets of one namespace with a valid selector (spec 3.3).
#[derive(Clone, Debug, Default)]
pub(crate) struct Selectors {
    by_label: Map<Label, Ids<SetId>>,
    by_key: Map<Arc<str>, Ids<SetId>>,
    others: Ids<SetId>,
}

/// The strictest requirement of a selector, which an object must meet so that the selector can match it.
#[derive(Clone, Debug)]
pub(super) enum Demand<'a> {
    /// A label.
    Label(Label),
    /// A label of this key.
    Key(&'a Arc<str>),
    Nothing,
}

impl Selectors {
    pub(crate) fn insert(&mut self, id: SetId, selector: &Selector) {
        match Demand::of(selector) {
            Demand::Label(label) => self.by_label.entry(label).or_default().insert(id),
            Demand::Key(key) => {
                let by_key = self.by_key.entry(Arc::clone(key));
                by_key.or_default().insert(id);
            }
            Demand::Nothing => self.others.insert(id),
        }
    }

    pub(crate) fn remove(&mut self, id: SetId, selector: &Selector) {
        match Demand::of(selector) {
            Demand::Label(label) => remove_from(&mut self.by_label, &label, id),
            Demand::Key(key) => remove_from(&mut self.by_key, key, id),
            Demand::Nothing => self.others.remove(id),
        }
    }

    /// Returns the ReplicaSets that may match, in the order of their ids.
    pub(crate) fn candidates(&self, labels: &Labels) -> BTreeSet<SetId> {
        let exact = labels.iter().filter_map(|label| self.by_label.get(label));
        let keyed = labels.iter().filter_map(|(key, _)| self.by_key.get(key));
        let lists = exact.chain(keyed).chain([&self.others]);
        lists.flat_map(Ids::iter).collect()
    }
}

impl<'a> Demand<'a> {
    pub(super) fn of(selector: &'a Selector) -> Self {
        let Selector::All(requirements) = selector else {
            return Self::Nothing;
        };
        let demands = requirements.demands();
        let exact = demands.iter().find_map(|one| match &one.test {
            Test::In(values) if values.len() == 1 => {
                Some(Self::Label((Arc::clone(&one.key), Arc::clone(&values[0]))))
            }
            Test::In(_) | Test::NotIn(_) | Test::Exists | Test::DoesNotExist => None,
        });
        let keyed = || demands.first().map(|one| Self::Key(&one.key));
        exact.or_else(keyed).unwrap_or(Self::Nothing)
    }
}

/// Removes an id from the entry of a key, and the key with its last id.
pub(super) fn remove_from<K, Q, I: Copy + Ord>(index: &mut Map<K, Ids<I>>, key: &Q, id: I)
where
    K: Hash + Eq,
    Q: Hash + Equivalent<K> + ?Sized,
{
    if let Some(ids) = index.get_mut(key) {
        ids.remove(id);
        if ids.is_empty() {
            map::remove(index, key);
        }
    }
}
