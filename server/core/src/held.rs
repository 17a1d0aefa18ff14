//! Collections that know how much memory they hold, so that no value in them is left out of an account.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Deref,
};

/// The memory of an entry of a collection in bytes, with its key and without its value.
const ENTRY: usize = 64;
/// An empty queue keeps the memory of this number of values.
const FEW: usize = 16;

/// A value that knows how much memory it holds.
pub trait Held {
    /// The approximate memory in bytes that the value keeps, itself included. It changes only where the value does.
    fn bytes(&self) -> usize;
}

/// A map that counts the memory of its values. Reads are those of the map inside.
#[derive(Clone, Debug)]
pub struct HeldMap<K, V> {
    map: BTreeMap<K, V>,
    bytes: usize,
}

/// A queue that counts the memory of its values.
#[derive(Clone, Debug)]
pub struct HeldQueue<V> {
    /// The values, each with its memory.
    queue: VecDeque<(usize, V)>,
    bytes: usize,
}

fn entry(value: &impl Held) -> usize {
    ENTRY + value.bytes()
}

impl<K: Ord, V: Held> HeldMap<K, V> {
    /// Replaces the value of a key, and returns the value before it.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.bytes += entry(&value);
        let before = self.map.insert(key, value);
        self.bytes -= before.as_ref().map_or(0, entry);
        before
    }

    /// Removes the value of a key.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let removed = self.map.remove(key);
        self.bytes -= removed.as_ref().map_or(0, entry);
        removed
    }

    /// Changes the value of a key, if there is one.
    pub fn change<T>(&mut self, key: &K, change: impl FnOnce(&mut V) -> T) -> Option<T> {
        let value = self.map.get_mut(key)?;
        self.bytes -= entry(value);
        let changed = change(value);
        self.bytes += entry(value);
        Some(changed)
    }
}

impl<K, V> Default for HeldMap<K, V> {
    fn default() -> Self {
        let map = BTreeMap::new();
        Self { map, bytes: 0 }
    }
}

impl<K, V> Deref for HeldMap<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl<K, V> Held for HeldMap<K, V> {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<V: Held> HeldQueue<V> {
    /// Adds a value at the front.
    pub fn push_front(&mut self, value: V) {
        let bytes = entry(&value);
        self.bytes += bytes;
        self.queue.push_front((bytes, value));
    }

    /// Adds a value at the back.
    pub fn push_back(&mut self, value: V) {
        let bytes = entry(&value);
        self.bytes += bytes;
        self.queue.push_back((bytes, value));
    }
}

impl<V> HeldQueue<V> {
    /// Removes the value at the front. An empty queue gives back the memory of many values.
    pub fn pop_front(&mut self) -> Option<V> {
        let (bytes, value) = self.queue.pop_front()?;
        self.bytes -= bytes;
        if self.bytes == 0 && self.queue.capacity() > FEW {
            self.queue = VecDeque::new();
        }
        Some(value)
    }

    /// Keeps only the values that pass a test.
    pub fn retain(&mut self, keeps: impl Fn(&V) -> bool) {
        self.queue.retain(|(_, value)| keeps(value));
        self.bytes = self.queue.iter().map(|(bytes, _)| bytes).sum();
    }

    /// The value at the front.
    #[must_use]
    pub fn front(&self) -> Option<&V> {
        self.queue.front().map(|(_, value)| value)
    }

    /// The values from the front to the back.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.queue.iter().map(|(_, value)| value)
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl<V> Default for HeldQueue<V> {
    fn default() -> Self {
        let queue = VecDeque::new();
        Self { queue, bytes: 0 }
    }
}

impl<V> Held for HeldQueue<V> {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<V: Held> Extend<V> for HeldQueue<V> {
    fn extend<I: IntoIterator<Item = V>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push_back(value));
    }
}

impl<V: Held> Held for Option<V> {
    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, Held::bytes)
    }
}

impl Held for String {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.capacity()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn memory_is_that_of_the_values_inside(steps in proptest::collection::vec((0_u8..4, "[a-z]{0,9}", 0_u8..5), 0..60)) {
            let (mut map, mut queue) = (HeldMap::default(), HeldQueue::default());
            for (key, text, step) in steps {
                match step {
                    0 => drop(map.insert(key, text)),
                    1 => drop(map.remove(&key)),
                    2 => drop(map.change(&key, |value| value.push_str(&text))),
                    3 => queue.push_back(text),
                    _ => {
                        queue.pop_front();
                        queue.push_front(text.clone());
                        queue.retain(|value| *value >= text);
                    }
                }
                prop_assert_eq!(map.bytes(), map.values().map(entry).sum::<usize>());
                prop_assert_eq!(queue.bytes(), queue.iter().map(entry).sum::<usize>());
            }
        }
    }
}
