//! Which namespaces belong to a shard of a cluster, by rendezvous hashing.
//!
//! Each shard has a weight for a namespace, and the heaviest shard gets the namespace. An added shard takes namespaces from all others, and
//! no namespace moves between the other shards. The weights are a part of the protocol among agents. Agents that disagree would act twice
//! in a namespace, so the weights must not change between versions.

use std::num::NonZeroU16;

use crate::backoff::split_mix;

/// One of the shards into which a cluster is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    index: u16,
    count: NonZeroU16,
}

// === impl Shard ===

impl Shard {
    /// Returns the shard with number `index`, from 0 on, of `count`; `None` if there are not that many.
    #[must_use]
    pub fn new(index: u16, count: NonZeroU16) -> Option<Self> {
        (index < count.get()).then_some(Self { index, count })
    }

    /// Returns all shards of a cluster with `count` shards.
    pub fn all(count: NonZeroU16) -> impl Iterator<Item = Self> {
        (0..count.get()).map(move |index| Self { index, count })
    }

    /// Returns the shard of a namespace, in a cluster with `count` shards.
    #[must_use]
    pub fn of_namespace(namespace: &str, count: NonZeroU16) -> Self {
        let key = fnv1a(namespace);
        let heaviest =
            (0..count.get()).max_by_key(|index| split_mix(key ^ split_mix((*index).into())));
        Self {
            index: heaviest.unwrap_or(0),
            count,
        }
    }

    /// Returns whether the shard has a namespace.
    #[must_use]
    pub fn contains(self, namespace: &str) -> bool {
        Self::of_namespace(namespace, self.count) == self
    }

    /// Returns the number of the shard, from 0 on.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.index
    }

    /// Returns how many shards there are.
    #[must_use]
    pub const fn count(self) -> NonZeroU16 {
        self.count
    }
}

/// FNV-1a with 64 bits.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(count: u16) -> NonZeroU16 {
        NonZeroU16::new(count).expect("not 0")
    }

    fn names() -> impl Iterator<Item = String> {
        (0..10_000).map(|number| format!("team-{number}"))
    }

    #[test]
    fn shards_of_namespaces_are_the_same_in_every_version() {
        let of =
            |name: &str| [2, 4, 16, 256].map(|it| Shard::of_namespace(name, count(it)).index());
        assert_eq!(of("default"), [0, 0, 0, 0]);
        assert_eq!(of("kube-system"), [1, 1, 4, 184]);
        assert_eq!(of("a"), [0, 3, 15, 142]);
        assert_eq!(of(""), [0, 2, 4, 150]);
    }

    #[test]
    fn namespaces_are_spread_evenly() {
        let mut sizes = [0; 8];
        for name in names() {
            sizes[usize::from(Shard::of_namespace(&name, count(8)).index())] += 1;
        }
        let even = 1_100..1_400;
        assert!(sizes.iter().all(|it| even.contains(it)), "{sizes:?}");
    }

    #[test]
    fn more_shards_take_their_share_and_move_nothing_else() {
        let mut moved = 0;
        for name in names() {
            let [before, after] = [4, 5].map(|it| Shard::of_namespace(&name, count(it)).index());
            if before != after {
                assert_eq!(after, 4, "{name} moves between shards that were there");
                moved += 1;
            }
        }
        assert!((1_800..2_200).contains(&moved), "{moved} of 10,000");
    }

    #[test]
    fn each_namespace_is_in_exactly_one_shard() {
        for name in names().take(200) {
            let shards = Shard::all(count(7)).filter(|shard| shard.contains(&name));
            assert_eq!(shards.count(), 1);
        }
        assert_eq!(Shard::new(7, count(7)), None);
    }
}
