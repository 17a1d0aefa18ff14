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
        let hash = self.hasher.hash_one(&key);
        match self.entry(hash, |known| *known == key) {
            (Entry::Occupied(mut known), _) => {
                Some(std::mem::replace(&mut known.get_mut().1, value))
            }
            (Entry::Vacant(vacant), entries) => {
                *entries += 1;
                vacant.insert((key, value));
                None
            }
        }
    }

    /// Returns the key and the value of a key, which `make` makes where there were none.
    pub(crate) fn or_insert_with<Q>(
        &mut self,
        key: &Q,
        make: impl FnOnce() -> (K, V),
    ) -> (&K, &mut V)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let (known, value) = match self.entry(hash, |known| known.borrow() == key) {
            (Entry::Occupied(known), _) => known.into_mut(),
            (Entry::Vacant(vacant), entries) => {
                *entries += 1;
                vacant.insert(make()).into_mut()
            }
        };
        (known, value)
    }

    /// Lets a value be what `change` makes of it, and removes it where that is nothing. Returns what it was.
    pub(crate) fn update<Q>(&mut self, key: &Q, change: impl FnOnce(V) -> Option<V>) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
        V: Copy,
    {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard_mut(self.place(hash));
        let found = shard.find_entry(hash, |(known, _)| known.borrow() == key);
        let mut found = found.ok()?;
        let value = found.get().1;
        match change(value) {
            Some(changed) => found.get_mut().1 = changed,
            None => {
                found.remove();
                self.entries -= 1;
            }
        }
        Some(value)
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
        let hash = self.hasher.hash_one(&key);
        match self.entry(hash, |known| *known == key) {
            (Entry::Occupied(known), _) => &mut known.into_mut().1,
            (Entry::Vacant(vacant), entries) => {
                *entries += 1;
                &mut vacant.insert((key, V::default())).into_mut().1
            }
        }
    }

    /// Returns the place of a key of this hash, and how many entries there are.
    fn entry(
        &mut self,
        hash: u64,
        mut is_key: impl FnMut(&K) -> bool,
    ) -> (Entry<'_, (K, V)>, &mut usize) {
        // Before the place is looked up: a division may change it.
        self.grow();
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
        let rehash = |(key, _): &(K, V)| hasher.hash_one(key);
        let entry = shard.entry(hash, |(known, _)| is_key(known), rehash);
        (entry, entries)
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
        fn entries_are_those_of_an_ordinary_map(steps in proptest::collection::vec((0_u16..6_000, 0_u8..6), 0..9_000)) {
            let (mut map, mut expected) = (GrowingMap::default(), BTreeMap::new());
            for (key, step) in steps {
                match step {
                    0 => prop_assert_eq!(map.remove(&key), expected.remove(&key)),
                    1 => {
                        *map.or_default(key) += 1;
                        *expected.entry(key).or_default() += 1;
                    }
                    2 => {
                        *map.or_insert_with(&key, || (key, 3)).1 += 1;
                        *expected.entry(key).or_insert(3) += 1;
                    }
                    3 => {
                        let halved = |value: i32| (value > 1).then_some(value / 2);
                        prop_assert_eq!(map.update(&key, halved), expected.get(&key).copied());
                        if let Some(value) = expected.get_mut(&key) {
                            *value /= 2;
                        }
                        expected.retain(|_, value| *value > 0);
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
