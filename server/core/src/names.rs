//! Names of new pods, chosen here so that a create that is repeated meets the pod that the first one made.
//!
//! A name is a base of at most 58 bytes and a suffix of 5 characters, as the API server forms them (spec 6.3). Suffix k of a
//! ReplicaSet is a permutation of all 27^5 suffixes, keyed by its uid: `index = (factor · k + offset) mod 27^5`. So the names
//! of one ReplicaSet never collide with each other, and a name tells its k back: what is free needs no table of what is taken.

use std::{
    collections::{BTreeSet, btree_set},
    sync::Arc,
};

use crate::object::Uid;

/// The API server's alphabet: no vowels, so no words; no digits that look like letters.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many characters of a name are the suffix.
const SUFFIX_LENGTH: usize = 5;

/// The API server cuts the rest so that the name fits 63 characters.
const BASE_LENGTH_MAX: usize = 58;

/// How many suffixes there are.
const SUFFIXES: u64 = 27_u64.pow(5);

/// Finds the lowest k whose name is free, in amortised constant time.
///
/// **Invariant:** every k below `low` that is not in `holes` was taken, or is burned, when it was last looked at; k from `low` on are
/// unknown. A taken name costs no memory; a hole lives until it is taken again or everything above it is gone.
#[derive(Clone, Debug)]
pub(crate) struct NameCursor {
    suffixes: Suffixes,
    low: u64,
    holes: BTreeSet<u32>,
    burned: BTreeSet<u32>,
}

/// The permutation of suffixes of one ReplicaSet.
#[derive(Clone, Copy, Debug)]
struct Suffixes {
    factor: u64,
    offset: u64,
    inverse: u64,
}

/// Returns what `generateName` is set to: the name and a dash, unless that cannot begin a pod's name (spec 6.3).
#[must_use]
pub(crate) fn generate_name(replica_set_name: &str) -> Arc<str> {
    let prefix = format!("{replica_set_name}-");
    if is_prefix(prefix.as_bytes()) { prefix.into() } else { replica_set_name.into() }
}

/// Returns the part of a `generateName` that stays in the name: at most 58 bytes, whole characters.
#[must_use]
pub(crate) fn base(generate_name: &str) -> &str {
    &generate_name[..generate_name.floor_char_boundary(BASE_LENGTH_MAX)]
}

/// Returns name `k` of the ReplicaSet with this uid; k counts round after 27^5.
#[must_use]
pub(crate) fn pod_name(base: &str, uid: &Uid, k: u64) -> Arc<str> {
    Name::new(base).with(Suffixes::new(uid).suffix(k)).into()
}

/// A name under construction, so that trying one costs no allocation.
struct Name {
    text: String,
    base_length: usize,
}

// === impl NameCursor ===

impl NameCursor {
    /// Returns a cursor that takes every name for free until told otherwise.
    #[must_use]
    pub(crate) fn new(uid: &Uid) -> Self {
        let suffixes = Suffixes::new(uid);
        Self { suffixes, low: 0, holes: BTreeSet::new(), burned: BTreeSet::new() }
    }

    /// Returns the name with the lowest k that is neither `taken` nor burned, or `None` if all 27^5 are.
    ///
    /// `taken` answers for the pods of the namespace in the view (whatever phase or owner) and for operations in flight. The name
    /// counts as taken from here on, because the caller has it in flight.
    pub(crate) fn next(&mut self, base: &str, taken: impl Fn(&str) -> bool) -> Option<Arc<str>> {
        let mut name = Name::new(base);
        while let Some(k) = self.holes.pop_first() {
            let text = name.with(self.suffixes.suffix(k.into()));
            if !taken(text) {
                return Some(text.into());
            }
        }
        while self.low < SUFFIXES {
            let k = self.low;
            self.low += 1;
            let text = name.with(self.suffixes.suffix(k));
            if !self.is_burned(k) && !taken(text) {
                return Some(text.into());
            }
        }
        None
    }

    /// Learns that no pod in the view, or no operation in flight, has the name any longer. Names of other bases do no harm.
    pub(crate) fn freed(&mut self, name: &str) {
        let Some(k) = self.suffixes.k(name) else { return };
        if !self.burned.contains(&k) {
            self.open(k);
        }
    }

    /// Passes over the name until [`Self::forgive`]: the cluster has it, though the view does not (`NAME_TAKEN`).
    pub(crate) fn burn(&mut self, name: &str) {
        let Some(k) = self.suffixes.k(name) else { return };
        self.holes.remove(&k);
        self.burned.insert(k);
    }

    /// Gives burned names another chance; those that the view shows by then are taken anyway.
    pub(crate) fn forgive(&mut self) {
        for k in std::mem::take(&mut self.burned) {
            self.open(k);
        }
    }

    fn is_burned(&self, k: u64) -> bool {
        u32::try_from(k).is_ok_and(|k| self.burned.contains(&k))
    }

    /// Makes k a hole, and gives the holes just below `low` back to the unknown.
    fn open(&mut self, k: u32) {
        if u64::from(k) >= self.low {
            return;
        }
        self.holes.insert(k);
        while let Some(&last) = self.holes.last()
            && u64::from(last) + 1 == self.low
        {
            self.holes.pop_last();
            self.low -= 1;
        }
    }
}
