//! The shards of a cluster: their namespaces, by rendezvous hashing, and the Leases of their agents.
//!
//! Each shard has a weight for a namespace, and the heaviest shard gets the namespace. An added shard takes namespaces from all others, and
//! no namespace moves between the other shards. The weights are a part of the protocol among agents. Agents that disagree would act twice
//! in a namespace, so the weights must not change between versions.

use std::{num::NonZeroU16, str::FromStr};

use thiserror::Error;

use super::LeaseConfig;
use crate::pace::split_mix;

/// The most shards of a cluster.
const COUNT_MAX: u16 = 256;
/// The most digits of an ordinal. The pods of a DaemonSet end with five characters, so none of them has an ordinal by chance.
const DIGITS_MAX: usize = 4;

/// One of the shards into which a cluster is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    index: u16,
    count: NonZeroU16,
}

/// A text does not name a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "not a shard: write I/N, with N from 1 to {COUNT_MAX} and I from 0 to N-1, or POD/N, with the name of a pod of a StatefulSet"
)]
pub struct InvalidShard;

impl Shard {
    /// Returns the shard with number `index`, from 0 on, of `count`; `None` if there are not that many.
    pub fn new(index: u16, count: NonZeroU16) -> Option<Self> {
        (index < count.get()).then_some(Self { index, count })
    }

    /// Returns whether the shard has a namespace.
    pub fn contains(self, namespace: &str) -> bool {
        let key = fnv1a(namespace);
        let weight = |index: &u16| split_mix(key ^ split_mix((*index).into()));
        (0..self.count.get()).max_by_key(weight) == Some(self.index)
    }

    /// Returns the Lease that excludes agents of another number of shards, and agents of the whole cluster, whose Lease is `whole`. All
    /// agents with this number of shards hold it together, so none gives it back.
    pub fn layout_lease(self, whole: &LeaseConfig) -> LeaseConfig {
        LeaseConfig {
            identity: format!("{} shards", self.count),
            shared: true,
            ..whole.clone()
        }
    }

    /// Returns the Lease of the agent that serves the shard, where `whole` is the Lease of the whole cluster.
    pub fn lease(self, whole: &LeaseConfig) -> LeaseConfig {
        LeaseConfig {
            name: self.lease_name(&whole.name),
            ..whole.clone()
        }
    }

    /// Returns the name of that Lease.
    pub fn lease_name(self, whole: &str) -> String {
        format!("{whole}-{}", self.index)
    }

    /// Returns the number of the shard, from 0 on.
    pub const fn index(self) -> u16 {
        self.index
    }

    /// Returns how many shards there are.
    pub const fn count(self) -> NonZeroU16 {
        self.count
    }
}

impl FromStr for Shard {
    type Err = InvalidShard;

    /// Reads `I/N`; or `POD/N`, where the ordinal at the end of the name of the pod, modulo N, is the index.
    fn from_str(text: &str) -> Result<Self, InvalidShard> {
        let (place, count) = text.rsplit_once('/').ok_or(InvalidShard)?;
        let count = number(count).and_then(NonZeroU16::new);
        let count = count.filter(|count| count.get() <= COUNT_MAX);
        let count = count.ok_or(InvalidShard)?;
        let index = match place.rsplit_once('-') {
            Some((pod, ordinal)) if !pod.is_empty() => number(ordinal).map(|it| it % count),
            Some(_) | None => number(place),
        };
        let shard = index.and_then(|index| Self::new(index, count));
        shard.ok_or(InvalidShard)
    }
}

fn number(digits: &str) -> Option<u16> {
    let is_number = digits.len() <= DIGITS_MAX && digits.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
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

    /// The index of the only shard, of `count`, that has a namespace.
    fn index(namespace: &str, count: u16) -> u16 {
        let count = NonZeroU16::new(count).expect("not 0");
        let shards = (0..count.get()).filter_map(|index| Shard::new(index, count));
        let having: Vec<_> = shards.filter(|shard| shard.contains(namespace)).collect();
        assert_eq!(having.len(), 1, "{namespace}");
        having[0].index()
    }

    fn names() -> impl Iterator<Item = String> {
        (0..10_000).map(|number| format!("team-{number}"))
    }

    #[test]
    fn shards_of_namespaces_are_the_same_in_every_version() {
        let of = |name: &str| [2, 4, 16, 256].map(|count| index(name, count));
        assert_eq!(of("default"), [0, 0, 0, 0]);
        assert_eq!(of("kube-system"), [1, 1, 4, 184]);
        assert_eq!(of("a"), [0, 3, 15, 142]);
        assert_eq!(of(""), [0, 2, 4, 150]);
    }

    #[test]
    fn namespaces_are_spread_evenly() {
        let mut sizes = [0; 8];
        for name in names() {
            sizes[usize::from(index(&name, 8))] += 1;
        }
        let even = 1_100..1_400;
        assert!(sizes.iter().all(|it| even.contains(it)), "{sizes:?}");
    }

    #[test]
    fn shards_are_read_from_an_index_or_the_name_of_a_pod() {
        for (text, index, count) in [
            ("0/1", 0, 1),
            ("7/8", 7, 8),
            ("255/256", 255, 256),
            ("decree-agent-0/4", 0, 4),
            ("decree-agent-7/4", 3, 4),
            ("agent-9999/256", 9_999 % 256, 256),
        ] {
            let shard = text.parse::<Shard>().expect(text);
            assert_eq!(
                (shard.index(), shard.count().get()),
                (index, count),
                "{text}"
            );
        }
        let indices = ["4/4", "-1/4", "+1/4", "/4", "4", "1/4/", "east/4"];
        let counts = ["0/0", "0/257", "0/", "0/x", "0/+4"];
        // Of a DaemonSet, of a static pod, and of a pod that no workload made.
        let pods = [
            "agent-x7k2p/4",
            "agent-24567/4",
            "decree-control-plane/4",
            "agent-/4",
        ];
        for text in [&indices[..], &counts, &pods].concat() {
            assert_eq!(text.parse::<Shard>(), Err(InvalidShard), "{text}");
        }
    }
}
