//! Names of new pods, chosen here so that a create that is repeated meets the pod that the first one made.
//!
//! A name is a base of at most 58 bytes and a suffix of 5 characters, as the API server forms them (spec 6.3). Suffix k of a
//! ReplicaSet is a permutation of all 27^5 suffixes, keyed by its uid: `index = (factor · k + offset) mod 27^5`. So the names
//! of one ReplicaSet never collide with each other, and a name tells its k back: what is free needs no table of what is taken.

use std::{collections::BTreeSet, mem, sync::Arc};

use crate::{object::Uid, syntax::is_subdomain};

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
/// **Invariant:** every k below `low` that is not in `holes` was taken, or is burned or doubtful, when it was last looked at; k from
/// `low` on are unknown. A taken name costs no memory; a hole lives until it is taken again or everything above it is gone.
#[derive(Clone, Debug)]
pub(crate) struct NameCursor {
    suffixes: Suffixes,
    low: u64,
    holes: BTreeSet<u32>,
    burned: BTreeSet<u32>,
    /// Tried in vain, perhaps: such a create may take effect yet, so each comes before every other name.
    doubtful: BTreeSet<u32>,
}

/// The permutation of suffixes of one ReplicaSet.
#[derive(Clone, Copy, Debug)]
struct Suffixes {
    factor: u64,
    offset: u64,
    inverse: u64,
}

/// A name under construction, so that trying one costs no allocation.
struct Name {
    text: String,
    base_length: usize,
}

/// Returns what `generateName` is set to: the name and a dash, unless that cannot begin a pod's name (spec 6.3).
#[must_use]
pub(crate) fn generate_name(replica_set_name: &str) -> Arc<str> {
    let prefix = format!("{replica_set_name}-");
    if is_prefix(prefix.as_bytes()) {
        prefix.into()
    } else {
        replica_set_name.into()
    }
}

/// Returns the part of a `generateName` that stays in the name: at most 58 bytes, whole characters.
#[must_use]
pub(crate) fn base(generate_name: &str) -> &str {
    &generate_name[..generate_name.floor_char_boundary(BASE_LENGTH_MAX)]
}

// === impl NameCursor ===

impl NameCursor {
    /// Returns a cursor that takes every name for free until told otherwise.
    #[must_use]
    pub(crate) fn new(uid: &Uid) -> Self {
        let suffixes = Suffixes::new(uid);
        Self {
            suffixes,
            low: 0,
            holes: BTreeSet::new(),
            burned: BTreeSet::new(),
            doubtful: BTreeSet::new(),
        }
    }

    /// Returns a doubtful name that is not `taken`, else the name with the lowest k that is neither taken nor burned, or `None` if
    /// all 27^5 are.
    ///
    /// `taken` answers for the pods of the namespace in the view (whatever phase or owner) and for operations in flight. The name
    /// counts as taken from here on, because the caller has it in flight.
    pub(crate) fn next(&mut self, base: &str, taken: impl Fn(&str) -> bool) -> Option<Arc<str>> {
        let mut name = Name::new(base);
        while let Some(k) = self.doubtful.pop_first().or_else(|| self.holes.pop_first()) {
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

    /// Learns that no pod in the view, or no operation in flight, has the name any longer. A name of another base does no harm.
    pub(crate) fn freed(&mut self, name: &str) {
        if let Some(k) = self.suffixes.k(name)
            && !self.burned.contains(&k)
            && !self.doubtful.contains(&k)
        {
            self.open(k);
        }
    }

    /// Gives the name precedence: a create of it went unanswered, and may yet take effect. Whoever tries it again meets that pod,
    /// where another name would make one too many.
    pub(crate) fn doubt(&mut self, name: &str) {
        if let Some(k) = self.suffixes.k(name)
            && u64::from(k) < self.low
        {
            self.holes.remove(&k);
            self.doubtful.insert(k);
        }
    }

    /// Passes over the name until [`Self::forgive`]: the cluster has it, though the view does not (`NAME_TAKEN`).
    pub(crate) fn burn(&mut self, name: &str) {
        if let Some(k) = self.suffixes.k(name) {
            self.holes.remove(&k);
            self.doubtful.remove(&k);
            self.burned.insert(k);
        }
    }

    /// Gives burned names another chance; those that the view shows by then are taken anyway.
    pub(crate) fn forgive(&mut self) {
        for k in mem::take(&mut self.burned) {
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

// === impl Suffixes ===

impl Suffixes {
    /// Keys the permutation by FNV-1a (64 bit) of the uid, finished as in MurmurHash3. It must never change: two servers, and two
    /// versions of one, have to name the same pod alike.
    fn new(uid: &Uid) -> Self {
        let hash = finish(fnv1a(uid.0.as_bytes()));
        // Not divisible by 3, so it has an inverse modulo a power of 3.
        let factor = 1 + 3 * (hash % (SUFFIXES / 3));
        let offset = (hash >> 32) % SUFFIXES;
        Self {
            factor,
            offset,
            inverse: inverse(factor),
        }
    }

    fn suffix(self, k: u64) -> [u8; SUFFIX_LENGTH] {
        let mut index = (self.factor * (k % SUFFIXES) + self.offset) % SUFFIXES;
        let mut suffix = [0; SUFFIX_LENGTH];
        for place in suffix.iter_mut().rev() {
            *place = ALPHABET[(index % 27) as usize];
            index /= 27;
        }
        suffix
    }

    /// Returns the k of a name, or `None` where its end is no suffix.
    fn k(self, name: &str) -> Option<u32> {
        let suffix = name.as_bytes().last_chunk::<SUFFIX_LENGTH>()?;
        let digits = suffix
            .iter()
            .map(|byte| ALPHABET.iter().position(|letter| letter == byte));
        let index = digits
            .into_iter()
            .try_fold(0, |index, digit| Some(index * 27 + digit? as u64))?;
        let k = (index + SUFFIXES - self.offset) * self.inverse % SUFFIXES;
        u32::try_from(k).ok()
    }
}

// === impl Name ===

impl Name {
    fn new(base: &str) -> Self {
        let mut text = String::with_capacity(base.len() + SUFFIX_LENGTH);
        text.push_str(base);
        Self {
            text,
            base_length: base.len(),
        }
    }

    fn with(&mut self, suffix: [u8; SUFFIX_LENGTH]) -> &str {
        self.text.truncate(self.base_length);
        self.text.extend(suffix.map(char::from));
        &self.text
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Spreads every bit of the hash over all others.
const fn finish(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Returns the inverse modulo 3^15: by Euler, the power 2·3^14 − 1.
fn inverse(factor: u64) -> u64 {
    let (mut exponent, mut square, mut product) = (2 * 3_u64.pow(14) - 1, factor, 1);
    while exponent > 0 {
        if exponent % 2 == 1 {
            product = product * square % SUFFIXES;
        }
        square = square * square % SUFFIXES;
        exponent /= 2;
    }
    product
}

/// Repeats upstream's check: the trailing dash is masked by dropping two bytes for an `a`, then it must be a DNS-1123 subdomain.
fn is_prefix(prefix: &[u8]) -> bool {
    match prefix {
        [start @ .., _, b'-'] => is_subdomain(&[start, b"a"].concat()),
        whole => is_subdomain(whole),
    }
}

#[cfg(test)]
mod tests;
