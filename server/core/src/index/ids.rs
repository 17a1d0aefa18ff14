//! A set of ids that usually has one member: the ids of a selector, of a base of names, or of an owner of ReplicaSets.

use std::collections::BTreeSet;

/// A set of ids, stored inline while it has one.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::box_collection,
    reason = "there are as many of these as ReplicaSets, and few are of several"
)]
pub(crate) enum Ids<I> {
    #[default]
    None,
    One(I),
    Many(Box<BTreeSet<I>>),
}

impl<I: Copy + Ord> Ids<I> {
    pub(crate) fn insert(&mut self, id: I) {
        match self {
            Self::None => *self = Self::One(id),
            Self::One(one) if *one == id => {}
            Self::One(one) => *self = Self::Many(Box::new([*one, id].into())),
            Self::Many(many) => {
                many.insert(id);
            }
        }
    }

    pub(crate) fn remove(&mut self, id: I) {
        match self {
            Self::One(one) if *one == id => *self = Self::None,
            Self::None | Self::One(_) => {}
            Self::Many(many) => {
                many.remove(&id);
                if many.is_empty() {
                    *self = Self::None;
                }
            }
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(_) => 1,
            Self::Many(many) => many.len(),
        }
    }

    pub(crate) fn contains(&self, id: I) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => *one == id,
            Self::Many(many) => many.contains(&id),
        }
    }

    /// Returns the ids in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = I> + '_ {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(one) => (Some(*one), None),
            Self::Many(many) => (None, Some(many)),
        };
        let many = many.into_iter().flat_map(|many| many.iter().copied());
        one.into_iter().chain(many)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_those_of_an_ordinary_set(steps in proptest::collection::vec((0_u8..4, proptest::bool::ANY), 0..40)) {
            let (mut ids, mut expected) = (Ids::default(), BTreeSet::new());
            for (id, inserts) in steps {
                if inserts {
                    ids.insert(id);
                    expected.insert(id);
                } else {
                    ids.remove(id);
                    expected.remove(&id);
                }
                prop_assert_eq!(ids.len(), expected.len());
                prop_assert_eq!(ids.is_empty(), expected.is_empty());
                prop_assert!(ids.iter().eq(expected.iter().copied()));
                for last in 0..4 {
                    prop_assert_eq!(ids.contains(last), expected.contains(&last));
                }
            }
        }
    }
}
