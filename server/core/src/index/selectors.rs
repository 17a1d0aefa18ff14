//! Finds the ReplicaSets of a namespace that select given labels, without a test of each.
//!
//! A selector that requires one exact value of a key can match only where that label is. A selector that only requires the key can match
//! only where the key is. Selectors that only forbid are tested each time.

use std::{collections::BTreeSet, sync::Arc};

use super::set::{SetId, SetsBy, sets_of};
use crate::{
    labels::{Label, Labels},
    selector::{Selector, Test},
};

/// The ReplicaSets of one namespace with a valid selector (spec 3.3).
#[derive(Clone, Debug, Default)]
pub(crate) struct Selectors(SetsBy<Demand>);

/// The strictest requirement of a selector, which an object must meet so that the selector can match it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Demand {
    Label(Label),
    /// A label of this key.
    Key(Arc<str>),
    Nothing,
}

impl Selectors {
    pub(crate) fn insert(&mut self, id: SetId, selector: &Selector) {
        self.0.insert((Demand::of(selector), id));
    }

    pub(crate) fn remove(&mut self, id: SetId, selector: &Selector) {
        self.0.remove(&(Demand::of(selector), id));
    }

    /// Returns the ReplicaSets that may match, in the order of their ids.
    pub(crate) fn candidates(&self, labels: &Labels) -> BTreeSet<SetId> {
        let met = labels.iter().flat_map(|label| {
            let key = Arc::clone(&label.0);
            [Demand::Label(label.clone()), Demand::Key(key)]
        });
        let met = met.chain([Demand::Nothing]);
        met.flat_map(|demand| sets_of(&self.0, demand)).collect()
    }
}

impl Demand {
    pub(super) fn of(selector: &Selector) -> Self {
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
        let keyed = || demands.first().map(|one| Self::Key(Arc::clone(&one.key)));
        exact.or_else(keyed).unwrap_or(Self::Nothing)
    }
}
