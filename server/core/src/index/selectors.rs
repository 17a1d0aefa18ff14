//! Finds the ReplicaSets of a namespace that select given labels, without asking each of them.
//!
//! A selector that demands one exact value of a key can only match where that label is; the others are asked each time.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::set::SetId;
use crate::{
    selector::Labels,
    selector::{Selector, Test},
};

/// The ReplicaSets of one namespace with a valid, non-empty selector (spec 3.3).
#[derive(Clone, Debug, Default)]
pub(crate) struct Selectors {
    by_label: HashMap<(Arc<str>, Arc<str>), BTreeSet<SetId>>,
    others: BTreeSet<SetId>,
}

impl Selectors {
    /// Adds a ReplicaSet's selector.
    pub(crate) fn insert(&mut self, id: SetId, selector: &Selector) {
        match exact_label(selector) {
            Some(label) => self.by_label.entry(label).or_default().insert(id),
            None => self.others.insert(id),
        };
    }

    /// Removes a ReplicaSet's selector.
    pub(crate) fn remove(&mut self, id: SetId, selector: &Selector) {
        let Some(label) = exact_label(selector) else {
            self.others.remove(&id);
            return;
        };
        if let Some(ids) = self.by_label.get_mut(&label) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_label.remove(&label);
            }
        }
    }

    /// Returns the ReplicaSets that may match, in the order of their ids.
    pub(crate) fn candidates(&self, labels: &Labels) -> BTreeSet<SetId> {
        let exact = labels
            .iter()
            .filter_map(|(key, value)| self.by_label.get(&(Arc::clone(key), Arc::clone(value))));
        exact.flatten().chain(&self.others).copied().collect()
    }
}

fn exact_label(selector: &Selector) -> Option<(Arc<str>, Arc<str>)> {
    let Selector::All(requirements) = selector else {
        return None;
    };
    requirements
        .iter()
        .find_map(|requirement| match &requirement.test {
            Test::In(values) if values.len() == 1 => {
                Some((Arc::clone(&requirement.key), Arc::clone(&values[0])))
            }
            Test::In(_) | Test::NotIn(_) | Test::Exists | Test::DoesNotExist => None,
        })
}
