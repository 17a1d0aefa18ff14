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

/// A collection that counts the memory of its values. Reads are those of the collection inside.
#[derive(Clone, Debug, Default)]
pub struct Counted<C> {
    values: C,
    bytes: usize,
}

/// A map that counts the memory of its values.
pub type HeldMap<K, V> = Counted<BTreeMap<K, V>>;

/// A queue that counts the memory of its values.
pub type HeldQueue<V> = Counted<VecDeque<V>>;

fn entry(value: &impl Held) -> usize {
    ENTRY + value.bytes()
}

impl<K: Ord, V: Held> HeldMap<K, V> {
    /// Replaces the value of a key, and returns the value before it.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.bytes += entry(&value);
        let before = self.values.insert(key, value);
        self.bytes -= before.as_ref().map_or(0, entry);
        before
    }

    /// Removes the value of a key.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let removed = self.values.remove(key);
        self.bytes -= removed.as_ref().map_or(0, entry);
        removed
    }

    /// Changes the value of a key, if there is one.
    pub fn change<T>(&mut self, key: &K, change: impl FnOnce(&mut V) -> T) -> Option<T> {
        let value = self.values.get_mut(key)?;
        self.bytes -= entry(value);
        let changed = change(value);
        self.bytes += entry(value);
        Some(changed)
    }
}

impl<V: Held> HeldQueue<V> {
    /// Adds a value at the back.
    pub fn push_back(&mut self, value: V) {
        self.bytes += entry(&value);
        self.values.push_back(value);
    }

    /// Removes the value at the front. An empty queue gives back the memory of many values.
    pub fn pop_front(&mut self) -> Option<V> {
        let value = self.values.pop_front()?;
        self.bytes -= entry(&value);
        if self.values.is_empty() && self.values.capacity() > FEW {
            self.values = VecDeque::new();
        }
        Some(value)
    }
}

impl<C> Deref for Counted<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.values
    }
}

impl<C> Held for Counted<C> {
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

impl<N: Copy, V: Held> Held for (N, V) {
    fn bytes(&self) -> usize {
        self.1.bytes()
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
                    _ => drop(queue.pop_front()),
                }
                prop_assert_eq!(map.bytes(), map.values().map(entry).sum::<usize>());
                prop_assert_eq!(queue.bytes(), queue.iter().map(entry).sum::<usize>());
            }
        }
    }
}
