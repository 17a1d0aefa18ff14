//! Finds the ReplicaSets of a namespace that select given labels, without asking each of them.
//!
//! A selector that demands one exact value of a key can only match where that label is, and one that demands anything of a key only where
//! the key is; those that only forbid are asked each time.

use std::{collections::BTreeSet, hash::Hash, sync::Arc};

use super::{growing_map::GrowingMap, ids::Ids, set::SetId};
use crate::{
    labels::{Label, Labels},
    pieces::Pieces,
    selector::{Selector, Test},
};

/// The ReplicaSets of one namespace with a valid selector (spec 3.3).
#[derive(Clone, Debug, Default)]
pub(crate) struct Selectors {
    by_label: GrowingMap<Label, Ids<SetId>>,
    by_key: GrowingMap<Arc<str>, Ids<SetId>>,
    others: Ids<SetId>,
}

/// What an object must have so that a selector may match it: the sharpest of what the selector demands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Demand<'a> {
    /// A label.
    Label(&'a Arc<str>, &'a Arc<str>),
    /// A label of this key.
    Key(&'a Arc<str>),
    /// Nothing.
    Nothing,
}

// === impl Selectors ===

impl Selectors {
    /// Adds a ReplicaSet's selector.
    pub(crate) fn insert(&mut self, id: SetId, selector: &Selector) {
        match Demand::of(selector) {
            Demand::Label(key, value) => {
                let label = (Arc::clone(key), Arc::clone(value));
                self.by_label.or_default(label).insert(id)
            }
            Demand::Key(key) => self.by_key.or_default(Arc::clone(key)).insert(id),
            Demand::Nothing => self.others.insert(id),
        };
    }

    /// Removes a ReplicaSet's selector.
    pub(crate) fn remove(&mut self, id: SetId, selector: &Selector) {
        match Demand::of(selector) {
            Demand::Label(key, value) => {
                let label = (Arc::clone(key), Arc::clone(value));
                remove_from(&mut self.by_label, &label, id);
            }
            Demand::Key(key) => remove_from(&mut self.by_key, key, id),
            Demand::Nothing => {
                self.others.remove(id);
            }
        }
    }

    /// Returns all of it, to be freed a piece at a time.
    pub(super) fn into_pieces(self) -> Pieces {
        let demanding = self.by_label.into_values().chain(self.by_key.into_values());
        Box::new(demanding.chain([self.others]).flat_map(Ids::into_pieces))
    }

    /// Returns the ReplicaSets that may match, in the order of their ids.
    pub(crate) fn candidates(&self, labels: &Labels) -> BTreeSet<SetId> {
        self.candidates_behind(labels, None, usize::MAX)
    }

    /// Returns the first so many, in the order of their ids, of the ReplicaSets behind one that may match.
    pub(crate) fn candidates_behind(
        &self,
        labels: &Labels,
        last: Option<SetId>,
        limit: usize,
    ) -> BTreeSet<SetId> {
        let exact = labels.iter().filter_map(|label| self.by_label.get(label));
        let keyed = labels.iter().filter_map(|(key, _)| self.by_key.get(key));
        let lists = exact.chain(keyed).chain([&self.others]);
        let all = lists.flat_map(|ids| ids.behind(last).take(limit));
        let mut found: BTreeSet<SetId> = all.collect();
        if let Some(beyond) = found.iter().nth(limit).copied() {
            found.split_off(&beyond);
        }
        found
    }
}

// === impl Demand ===

impl<'a> Demand<'a> {
    pub(super) fn of(selector: &'a Selector) -> Self {
        let Selector::All(requirements) = selector else {
            return Self::Nothing;
        };
        let demands = requirements.demands();
        let exact = demands.iter().find_map(|one| match &one.test {
            Test::In(values) if values.len() == 1 => Some(Self::Label(&one.key, &values[0])),
            Test::In(_) | Test::NotIn(_) | Test::Exists | Test::DoesNotExist => None,
        });
        let keyed = || demands.first().map(|one| Self::Key(&one.key));
        exact.or_else(keyed).unwrap_or(Self::Nothing)
    }
}

/// Removes an id from what an index has under a key, and the key with the last one.
pub(super) fn remove_from<K: Hash + Eq, I: Copy + Ord>(
    index: &mut GrowingMap<K, Ids<I>>,
    key: &K,
    id: I,
) {
    if let Some(ids) = index.get_mut(key) {
        ids.remove(id);
        if ids.is_empty() {
            index.remove(key);
        }
    }
}
