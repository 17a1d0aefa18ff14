//! Names of new pods. The server chooses them, so that a repeated create meets the pod of the first one, and does not reuse them.
//!
//! A name is a base of at most 58 bytes and a suffix of 5 characters, as in the API server (spec 6.3). Suffix k of a ReplicaSet is a
//! permutation of all 27^5 suffixes, keyed by its UID: `index = (factor · k + offset) mod 27^5`. So the names of one ReplicaSet never
//! collide with each other, and k follows from a name.
//!
//! A session begins at its own k ([`NameSeed`]) and only counts up, modulo 27^5. A name repeats after 27^5 others, or if two sessions begin
//! so close to each other that the later one reaches names of the earlier one. With n names in all, the chance is about n in 14 million.
//! Within a session, a name is reused only while no create of it is known to have made a pod.

use std::{collections::BTreeMap, sync::Arc};

use crate::{object::Uid, syntax::is_subdomain};

/// The API server's alphabet: no vowels, so no words; no digits that look like letters.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

const SUFFIX_LENGTH: usize = 5;

/// The maximum length of the base in bytes: the API server cuts it so that the name fits 63 characters.
const BASE_LENGTH_MAX: usize = 58;

const SUFFIXES: u32 = 27_u32.pow(5);

/// A refused create keeps its name for the next one if fewer names than these are kept.
const REFUSED_MAX: usize = 20;

/// The number of suffixes, for calculations with products.
const MODULUS: u64 = 27_u64.pow(5);

/// Where a session begins among the names of its ReplicaSets. The default begins at the first name of each, for decisions from a snapshot:
/// these use the first free names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameSeed(Option<u64>);

/// Gives names out, each in amortized constant time.
///
/// **Invariant:** a name is given out again only if no create of it is known to have taken effect, or all others were given out.
#[derive(Clone, Debug)]
pub(crate) struct NameCursor {
    suffixes: Suffixes,
    next: u32,
    /// Names that are not known to have made a pod. They come before every other name.
    retries: BTreeMap<u32, Retry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Retry {
    /// The number of its unanswered creates.
    unanswered: u32,
    /// Whether the pod of one of them has been shown, and is not known to be gone.
    is_shown: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameUse {
    Free,
    /// A pod in the view has it, in any phase and with any owner.
    Taken,
    InFlight,
}

/// The permutation of suffixes of one ReplicaSet.
#[derive(Clone, Copy, Debug)]
struct Suffixes {
    factor: u64,
    offset: u64,
    inverse: u64,
}

/// Returns the `generateName`: the name and a dash, unless that cannot begin a pod's name (spec 6.3).
pub(crate) fn generate_name(replica_set_name: &str) -> Arc<str> {
    let prefix = format!("{replica_set_name}-");
    // Upstream replaces two bytes by an `a` to mask the trailing dash, then requires a DNS-1123 subdomain.
    let masked = match prefix.as_bytes() {
        [start @ .., _, b'-'] => [start, b"a"].concat(),
        whole => whole.to_vec(),
    };
    if is_subdomain(&masked) {
        prefix.into()
    } else {
        replica_set_name.into()
    }
}

/// Returns the part of a `generateName` that stays in the name: at most 58 bytes, whole characters.
pub(crate) fn base(generate_name: &str) -> &str {
    &generate_name[..generate_name.floor_char_boundary(BASE_LENGTH_MAX)]
}

/// Returns the base of a pod's name, if the pod can have one.
pub(crate) fn base_of_pod(name: &str) -> Option<&str> {
    name.get(..name.len().checked_sub(SUFFIX_LENGTH)?)
}

/// Whether a base may be the beginning of a longer `generateName`.
pub(crate) const fn may_be_cut(base: &str) -> bool {
    base.len() > BASE_LENGTH_MAX - char::MAX_LEN_UTF8
}

impl NameSeed {
    /// The seed of a session. Another epoch or session has another seed.
    pub fn of_session(epoch: i64, session_id: &str) -> Self {
        let epoch = finish(epoch.cast_unsigned());
        Self(Some(finish(epoch ^ fnv1a(session_id.as_bytes()))))
    }

    /// Returns the first k of a ReplicaSet. `number` is its number in the session: a ReplicaSet that comes back begins at another k.
    fn first(self, uid: &Uid, number: u64) -> u32 {
        let first = self.0.map_or(0, |seed| {
            finish(seed ^ finish(fnv1a(uid.0.as_bytes())) ^ finish(!number)) % MODULUS
        });
        u32::try_from(first).unwrap_or(0)
    }
}

impl NameCursor {
    /// `number` is the number of the ReplicaSet in its session.
    pub(crate) fn new(seed: NameSeed, uid: &Uid, number: u64) -> Self {
        Self {
            suffixes: Suffixes::new(uid),
            next: seed.first(uid, number),
            retries: BTreeMap::new(),
        }
    }

    /// Returns `count` names for creates: first those whose creates had no answer, then those that were refused. Returns fewer only if all 27^5 are taken.
    pub(crate) fn next_names(
        &mut self,
        base: &str,
        count: usize,
        usage: impl Fn(&str) -> NameUse,
    ) -> Vec<Arc<str>> {
        let suffixes = self.suffixes;
        let mut names = Vec::with_capacity(count);
        // A repeat of an unanswered create makes no further pod, so it comes first.
        for is_open in [true, false] {
            self.retries.retain(|k, retry| {
                if retry.is_open() != is_open {
                    return true;
                }
                let name = suffixes.name(base, *k);
                let usage = usage(&name);
                if usage == NameUse::Free && names.len() < count {
                    names.push(name.into());
                }
                // One of the creates made the pod that has the name. Another create may take effect when that pod is gone.
                usage != NameUse::Taken || retry.unanswered > 1
            });
        }
        for _ in 0..SUFFIXES {
            if names.len() == count {
                break;
            }
            let k = self.next;
            self.next = (k + 1) % SUFFIXES;
            let name = suffixes.name(base, k);
            if !self.retries.contains_key(&k) && usage(&name) == NameUse::Free {
                names.push(name.into());
            }
        }
        names
    }

    /// Gives the name precedence after a failed create of it.
    ///
    /// An unanswered create may take effect yet. A create with the same name meets that pod; a create with another name would make a
    /// surplus pod. A refused create made no pod. The same name keeps the message of the refusal the same, so that the server does not
    /// write the condition ReplicaFailure at each retry. That message is of the first create, so a few names are enough.
    pub(crate) fn retry(&mut self, name: &str, is_unanswered: bool) {
        if let Some(k) = self.suffixes.k(name)
            && (is_unanswered || self.retries.len() < REFUSED_MAX)
        {
            self.retries.entry(k).or_default().unanswered += u32::from(is_unanswered);
        }
    }

    /// The number of names that are kept for the next creates.
    pub(crate) fn kept_names(&self) -> usize {
        self.retries.len()
    }

    /// The number of names whose unanswered creates may have made a pod that was not shown.
    pub(crate) fn open_names(&self) -> usize {
        self.retries.values().filter(|it| it.is_open()).count()
    }

    /// Returns the names whose unanswered creates have made a pod, each once.
    pub(crate) fn take_shown(
        &mut self,
        base: &str,
        usage: impl Fn(&str) -> NameUse,
    ) -> Vec<Arc<str>> {
        let suffixes = self.suffixes;
        let open = self.retries.iter_mut().filter(|(_, retry)| retry.is_open());
        let shown = open.filter_map(|(k, retry)| {
            let name = suffixes.name(base, *k);
            retry.is_shown = usage(&name) == NameUse::Taken;
            retry.is_shown.then(|| name.into())
        });
        shown.collect()
    }

    /// Records that a pod of this name existed and is gone. If several creates of it are unanswered, another of them may have taken effect
    /// since, and the stream has yet to show it. Returns whether [`Self::take_shown`] has not returned the name.
    pub(crate) fn mark_gone(&mut self, name: &str) -> bool {
        if self.retries.is_empty() {
            return false;
        }
        let k = self.suffixes.k(name);
        let Some((k, retry)) = k.and_then(|k| Some((k, self.retries.get_mut(&k)?))) else {
            return false;
        };
        let was_open = retry.is_open();
        retry.is_shown = false;
        retry.unanswered = retry.unanswered.saturating_sub(1);
        if retry.unanswered == 0 {
            self.retries.remove(&k);
        }
        was_open
    }

    /// Records that a pod of this name exists, ours or not. A name with another base has no effect. Returns whether an unanswered create may
    /// have made the pod, and [`Self::take_shown`] has not returned the name.
    pub(crate) fn mark_taken(&mut self, name: &str) -> bool {
        if self.retries.is_empty() {
            return false;
        }
        let k = self.suffixes.k(name);
        let retry = k.and_then(|k| self.retries.remove(&k));
        retry.is_some_and(|retry| retry.is_open())
    }
}

impl Retry {
    const fn is_open(&self) -> bool {
        self.unanswered > 0 && !self.is_shown
    }
}

impl Suffixes {
    /// Keys the permutation by FNV-1a (64 bit) of the UID, finished as in MurmurHash3. It must never change: a decision from a snapshot
    /// names its pods the same in all versions.
    fn new(uid: &Uid) -> Self {
        let hash = finish(fnv1a(uid.0.as_bytes()));
        // Not divisible by 3, so it has an inverse modulo a power of 3.
        let factor = 1 + 3 * (hash % (MODULUS / 3));
        let offset = (hash >> 32) % MODULUS;
        Self {
            factor,
            offset,
            inverse: inverse(factor),
        }
    }

    fn name(self, base: &str, k: u32) -> String {
        let mut index = (self.factor * (u64::from(k)) + self.offset) % MODULUS;
        let mut suffix = [0; SUFFIX_LENGTH];
        for place in suffix.iter_mut().rev() {
            *place = ALPHABET[(index % 27) as usize];
            index /= 27;
        }
        [base, str::from_utf8(&suffix).unwrap_or_default()].concat()
    }

    /// Returns the k of a name; `None` if its end is no suffix.
    fn k(self, name: &str) -> Option<u32> {
        let suffix = name.as_bytes().last_chunk::<SUFFIX_LENGTH>()?;
        let mut digits = suffix
            .iter()
            .map(|byte| ALPHABET.iter().position(|it| it == byte));
        let index = digits.try_fold(0, |index, digit| Some(index * 27 + digit? as u64))?;
        let k = (index + MODULUS - self.offset) * self.inverse % MODULUS;
        u32::try_from(k).ok()
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

/// Returns the inverse modulo 3^15 of a factor of the form 3n + 1, which ends in 1 in base 3: each step doubles the number of right digits.
fn inverse(factor: u64) -> u64 {
    (0..4).fold(1, |inverse, _| {
        let rest = MODULUS + 2 - factor * inverse % MODULUS;
        inverse * rest % MODULUS
    })
}

#[cfg(test)]
mod tests;
