//! The most recently used values, as many as there is room for.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

/// Values by key. A new value without room replaces the least recently used value.
#[derive(Clone, Debug)]
pub(super) struct Recent<K, V> {
    max: usize,
    values: HashMap<K, (u64, V)>,
    /// The keys by their last use.
    uses: BTreeMap<u64, K>,
    now: u64,
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            values: HashMap::new(),
            uses: BTreeMap::new(),
            now: 0,
        }
    }

    /// The value of a key, made if absent. The value becomes the most recently used.
    pub(super) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if !self.values.contains_key(&key)
            && self.values.len() >= self.max
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.values.remove(&oldest);
        }
        self.now += 1;
        self.uses.insert(self.now, key.clone());
        let (used, value) = self.values.entry(key).or_insert_with(|| (self.now, make()));
        if *used != self.now {
            self.uses.remove(used);
            *used = self.now;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes() {
        let mut recent = Recent::new(2);
        let mut get = |key: &'static str, value| *recent.get_or_insert_with(key, || value);
        assert_eq!([get("a", 1), get("b", 2), get("a", 9)], [1, 2, 1]);
        assert_eq!(get("c", 3), 3, "in the place of b");
        assert_eq!([get("a", 9), get("b", 4), get("c", 5)], [1, 4, 5]);
        assert_eq!((recent.values.len(), recent.uses.len()), (2, 2));
    }
}
