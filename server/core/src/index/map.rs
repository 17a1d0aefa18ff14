//! The hash map of the index.

use std::hash::{Hash, RandomState};

use hashbrown::Equivalent;

/// After a removal, at least one part in this many of a collection is in use.
pub(super) const SPARSE: usize = 4;
/// A map with room for this number of entries gives nothing back.
const SMALL: usize = 64;

/// A map by keys that clients choose, such as names. Its hash has a random key, so that nobody can make entries collide. Entries are
/// removed with [`remove`].
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, RandomState>;

/// Removes an entry. A map that has become too large for its entries gives back memory; the removals before pay for that.
pub(crate) fn remove<K, Q, V>(map: &mut Map<K, V>, key: &Q) -> Option<V>
where
    K: Hash + Eq,
    Q: Hash + Equivalent<K> + ?Sized,
{
    let removed = map.remove(key);
    if map.capacity() > SMALL && map.len() < map.capacity() / SPARSE {
        map.shrink_to(2 * map.len());
    }
    removed
}
