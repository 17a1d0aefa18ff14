//! Labels of an object, kept small: almost all objects have a few labels.

use std::{ops::Deref, sync::Arc};

/// A label: key and value.
pub type Label = (Arc<str>, Arc<str>);

/// Labels, sorted by key, each key once. A clone shares them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<[Label]>);

impl Labels {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Arc<str>> {
        self.get_label(key).map(|(_, value)| value)
    }

    /// Returns keys and values, in the order of the keys.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    pub(crate) fn get_label(&self, key: &str) -> Option<&Label> {
        let at = self.0.binary_search_by(|(known, _)| (**known).cmp(key));
        self.0.get(at.ok()?)
    }
}

impl Deref for Labels {
    type Target = [Label];

    /// The labels in the order of their keys.
    fn deref(&self) -> &[Label] {
        &self.0
    }
}

impl FromIterator<Label> for Labels {
    /// Collects labels in any order. Of several labels with the same key, the last counts.
    fn from_iter<I: IntoIterator<Item = Label>>(labels: I) -> Self {
        let mut labels: Vec<Label> = labels.into_iter().collect();
        // Most inputs are sorted already, with each key once.
        if !labels.is_sorted_by(|(left, _), (right, _)| left < right) {
            labels.reverse();
            labels.sort_by(|(left, _), (right, _)| left.cmp(right));
            labels.dedup_by(|(left, _), (right, _)| left == right);
        }
        if labels.is_empty() {
            return Self::default();
        }
        Self(labels.into())
    }
}

impl<const N: usize> From<[Label; N]> for Labels {
    fn from(labels: [Label; N]) -> Self {
        labels.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn labels_are_those_of_an_ordinary_map(pairs in proptest::collection::vec(("[a-e]{0,2}", "[a-c]"), 0..12)) {
            let pairs = pairs.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()));
            let pairs: Vec<Label> = pairs.collect();
            let labels: Labels = pairs.iter().cloned().collect();
            let expected: BTreeMap<_, _> = pairs.into_iter().collect();
            prop_assert!(labels.iter().map(|(key, value)| (key, value)).eq(&expected));
            prop_assert_eq!(labels.len(), expected.len());
            for key in ["", "a", "b", "cc", "ee"] {
                prop_assert_eq!(labels.get(key), expected.get(key));
            }
        }
    }
}
