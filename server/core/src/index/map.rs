//! The hash map of the index.

use std::hash::RandomState;

/// A map by keys that clients choose, such as names. Its hash has a random key, so that nobody can make entries collide.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, RandomState>;
