//! A hash map that grows a little at a time.
//!
//! The standard map moves all its entries when it grows: a million of them take a tenth of a second. Here they lie in shards of about a
//! thousand, and what grows or is divided is one shard (linear hashing).

use std::{
    borrow::Borrow,
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasher as _, Hash, RandomState},
};

use crate::pieces::{Pieces, pieces};

/// How many entries a shard has, on average, before one is divided.
const SHARD: usize = 1_024;

/// A hash map of which no insertion moves more than a few thousand entries.
#[derive(Clone, Debug)]
pub(crate) struct GrowingMap<K, V> {
    /// The only shard of a small map. Its hasher also says which shard a key is in.
    first: HashMap<K, V>,
    others: Vec<HashMap<K, V>>,
    entries: usize,
}

impl<K, V> Default for GrowingMap<K, V> {
    fn default() -> Self {
        Self {
            first: HashMap::default(),
            others: Vec::new(),
            entries: 0,
        }
    }
}

// === impl GrowingMap ===

impl<K, V> GrowingMap<K, V> {
    pub(crate) const fn len(&self) -> usize {
        self.entries
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Returns all values, in no order.
    #[expect(
        clippy::disallowed_methods,
        reason = "its callers do not depend on the order"
    )]
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        let others = self.others.iter().flat_map(HashMap::values);
        self.first.values().chain(others)
    }

    /// Returns all entries, in no order.
    #[expect(
        clippy::disallowed_methods,
        reason = "its callers do not depend on the order"
    )]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let others = self.others.iter().flat_map(HashMap::iter);
        self.first.iter().chain(others)
    }

    /// Returns the shard of this number: about a thousand of the entries, together all of them.
    pub(crate) fn shard(&self, at: usize) -> Option<&HashMap<K, V>> {
        match at.checked_sub(1) {
            None => Some(&self.first),
            Some(at) => self.others.get(at),
        }
    }

    fn shard_mut(&mut self, at: usize) -> &mut HashMap<K, V> {
        match at.checked_sub(1) {
            None => &mut self.first,
            Some(at) => &mut self.others[at],
        }
    }
}

impl<K: Eq + Hash, V> GrowingMap<K, V> {
    pub(crate) fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.shard(self.place(key))?.get_key_value(key)
    }

    pub(crate) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    pub(crate) fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.get(key).is_some()
    }

    pub(crate) fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let at = self.place(key);
        self.shard_mut(at).get_mut(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let at = self.place(&key);
        let old = self.shard_mut(at).insert(key, value);
        self.grow(usize::from(old.is_none()));
        old
    }

    pub(crate) fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let at = self.place(key);
        let removed = self.shard_mut(at).remove(key)?;
        self.entries -= 1;
        Some(removed)
    }

    /// Returns the value of a key, which is the default where there was none.
    pub(crate) fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        // Before the place is looked up: a division may change it.
        self.grow(0);
        let at = self.place(&key);
        let Self {
            first,
            others,
            entries,
        } = self;
        let shard = match at.checked_sub(1) {
            None => first,
            Some(at) => &mut others[at],
        };
        match shard.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                *entries += 1;
                vacant.insert(V::default())
            }
        }
    }

    fn place<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        if self.others.is_empty() {
            return 0;
        }
        place(self.first.hasher(), key, self.others.len() + 1)
    }

    /// Counts new entries, and divides the shard whose turn it is if there are many for so few shards.
    fn grow(&mut self, new: usize) {
        self.entries += new;
        let shards = self.others.len() + 1;
        if self.entries <= shards * SHARD {
            return;
        }
        let hasher = self.first.hasher().clone();
        let moves = |key: &K| place(&hasher, key, shards + 1) == shards;
        let from = shards & (mask(shards + 1) >> 1);
        let moved = self
            .shard_mut(from)
            .extract_if(|key, _| moves(key))
            .collect();
        self.others.push(moved);
    }
}

impl<K: Send + 'static, V: Send + 'static> GrowingMap<K, V> {
    /// Returns all values, in no particular order.
    pub(crate) fn into_values(self) -> impl Iterator<Item = V> + Send {
        let shards = [self.first].into_iter().chain(self.others);
        shards.flatten().map(|(_, value)| value)
    }

    /// Returns all entries, to be freed a piece at a time.
    pub(crate) fn into_pieces(self) -> Pieces {
        let others = self.others.into_iter().flat_map(pieces);
        Box::new(pieces(self.first).chain(others))
    }
}

/// Returns the shard of a key among so many. The low bits of the hash are left to the shard.
fn place<K: Hash + ?Sized>(hasher: &RandomState, key: &K, shards: usize) -> usize {
    let mask = mask(shards);
    let at = usize::try_from(hasher.hash_one(key) >> 32).unwrap_or(0) & mask;
    if at < shards { at } else { at & (mask >> 1) }
}

const fn mask(shards: usize) -> usize {
    shards.next_power_of_two() - 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shards_stay_small_however_many_entries_there_are() {
        let mut map = GrowingMap::default();
        for number in 0..50_000_u32 {
            map.insert(number, number);
        }
        assert_eq!(map.len(), 50_000);
        assert!((0..50_000).all(|number| map.get(&number) == Some(&number)));
        let shards = map.others.iter().chain([&map.first]).map(HashMap::len);
        let largest = shards.max().expect("there is one");
        assert!(largest < 3 * SHARD, "{largest}");
        assert_eq!(map.into_pieces().count(), 50_000);
    }

    proptest! {
        #[test]
        fn entries_are_those_of_an_ordinary_map(steps in proptest::collection::vec((0_u16..6_000, 0_u8..4), 0..9_000)) {
            let (mut map, mut expected) = (GrowingMap::default(), BTreeMap::new());
            for (key, step) in steps {
                match step {
                    0 => prop_assert_eq!(map.remove(&key), expected.remove(&key)),
                    1 => {
                        *map.or_default(key) += 1;
                        *expected.entry(key).or_default() += 1;
                    }
                    _ => prop_assert_eq!(map.insert(key, 7), expected.insert(key, 7)),
                }
                prop_assert_eq!(map.get(&key), expected.get(&key));
            }
            prop_assert_eq!(map.len(), expected.len());
            let all: BTreeMap<_, _> = map.iter().map(|(key, value)| (*key, *value)).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
