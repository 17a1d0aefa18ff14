//! The hash map of the index.

use std::hash::RandomState;

/// A map by what strangers choose, such as names: its hash has a key of its own, so that nobody can make entries collide.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, RandomState>;
