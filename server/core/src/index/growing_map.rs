//! A hash map that grows a little at a time.
//!
//! The standard map moves all its entries when it grows: a million of them take a tenth of a second. Here they lie in shards of about a
//! thousand, and what grows or is divided is one shard (linear hashing).

use std::{
    borrow::Borrow,
    hash::{BuildHasher as _, Hash, RandomState},
};

use hashbrown::{HashTable, hash_table::Entry};

use crate::pieces::{Pieces, pieces};

/// How many entries a shard has, on average, before one is divided.
const SHARD: usize = 1_024;

/// A hash map of which no insertion moves more than a few thousand entries. A key is hashed once for each call: the same hash says which
/// shard it is in, and where there.
#[derive(Clone, Debug)]
pub(crate) struct GrowingMap<K, V> {
    hasher: RandomState,
    /// The only shard of a small map.
    first: HashTable<(K, V)>,
    others: Vec<HashTable<(K, V)>>,
    entries: usize,
}

impl<K, V> Default for GrowingMap<K, V> {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            first: HashTable::new(),
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

    /// Returns all values, in no order. Its callers do not depend on the order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns all entries, in no order. Its callers do not depend on the order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        let others = self.others.iter().flat_map(HashTable::iter);
        self.first.iter().chain(others)
    }

    /// Returns the shard of this number: about a thousand of the entries, together all of them.
    pub(crate) fn shard(&self, at: usize) -> Option<&HashTable<(K, V)>> {
        match at.checked_sub(1) {
            None => Some(&self.first),
            Some(at) => self.others.get(at),
        }
    }

    fn shard_mut(&mut self, at: usize) -> &mut HashTable<(K, V)> {
        match at.checked_sub(1) {
            None => &mut self.first,
            Some(at) => &mut self.others[at],
        }
    }
}

impl<K: Eq + Hash, V> GrowingMap<K, V> {
    pub(crate) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(self.place(hash))?;
        let (_, value) = shard.find(hash, |(known, _)| known.borrow() == key)?;
        Some(value)
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
        self.get_key_value_mut(key).map(|(_, value)| value)
    }

    pub(crate) fn get_key_value_mut<Q>(&mut self, key: &Q) -> Option<(&K, &mut V)>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard_mut(self.place(hash));
        let (known, value) = shard.find_mut(hash, |(known, _)| known.borrow() == key)?;
        Some((known, value))
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(&key) {
            return Some(std::mem::replace(known, value));
        }
        self.grow();
        let hash = self.hasher.hash_one(&key);
        let (at, hasher) = (self.place(hash), self.hasher.clone());
        let rehash = |(key, _): &(K, V)| hasher.hash_one(key);
        self.shard_mut(at).insert_unique(hash, (key, value), rehash);
        self.entries += 1;
        None
    }

    pub(crate) fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard_mut(self.place(hash));
        let found = shard.find_entry(hash, |(known, _)| known.borrow() == key);
        let ((_, value), _) = found.ok()?.remove();
        self.entries -= 1;
        Some(value)
    }

    /// Returns the value of a key, which is the default where there was none.
    pub(crate) fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        // Before the place is looked up: a division may change it.
        self.grow();
        let hash = self.hasher.hash_one(&key);
        let at = self.place(hash);
        let Self {
            hasher,
            first,
            others,
            entries,
        } = self;
        let shard = match at.checked_sub(1) {
            None => first,
            Some(at) => &mut others[at],
        };
        let is_known = |(known, _): &(K, V)| *known == key;
        match shard.entry(hash, is_known, |(key, _)| hasher.hash_one(key)) {
            Entry::Occupied(known) => &mut known.into_mut().1,
            Entry::Vacant(vacant) => {
                *entries += 1;
                &mut vacant.insert((key, V::default())).into_mut().1
            }
        }
    }

    /// Returns the shard of a hash. The low and the highest bits are left to the shard.
    fn place(&self, hash: u64) -> usize {
        place(hash, self.others.len() + 1)
    }

    /// Divides the shard whose turn it is if there are many entries for so few shards.
    fn grow(&mut self) {
        let shards = self.others.len() + 1;
        if self.entries <= shards * SHARD {
            return;
        }
        let hasher = self.hasher.clone();
        let hash = |(key, _): &(K, V)| hasher.hash_one(key);
        let from = shards & (mask(shards + 1) >> 1);
        let mut divided = HashTable::new();
        let moved = self
            .shard_mut(from)
            .extract_if(|entry| place(hash(entry), shards + 1) == shards);
        for entry in moved {
            divided.insert_unique(hash(&entry), entry, hash);
        }
        self.others.push(divided);
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

/// Returns the shard of a hash among so many.
fn place(hash: u64, shards: usize) -> usize {
    let mask = mask(shards);
    let at = usize::try_from(hash >> 32).unwrap_or(0) & mask;
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
        let shards = map.others.iter().chain([&map.first]).map(HashTable::len);
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
            let all: BTreeMap<_, _> = map.iter().copied().collect();
            prop_assert_eq!(all, expected);
        }
    }
}
