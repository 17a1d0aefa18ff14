//! The owners of the words that name clusters.

use std::collections::BTreeMap;

use crate::identity::Identity;

/// The maximum number of unused words that are remembered for one identity.
const KEPT_OF_IDENTITY_MAX: usize = 1024;
/// The maximum number of unused words that are remembered in all.
const KEPT_MAX: usize = 65_536;

/// The ground on which an identity asks for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// The policy names the word for this identity.
    Named,
    /// The identity is proven, and the word belongs to the first that asks.
    First,
    /// The identity is not proven, and may use the word while it belongs to nobody.
    Unproven,
    /// The policy names the word for other identities only.
    NamedForOthers,
}

/// The owner of each word, for the lifetime of the process. A word is the UID or the name of a cluster. Both are in one table, so that no
/// UID is the name of another identity's cluster, and no name its UID.
///
/// The memory is limited. Beyond 1,024 unused words of one identity, its oldest are forgotten. Beyond 65,536 unused words in all, the
/// oldest of the identity with the most are forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ownership {
    words: BTreeMap<String, Word>,
    /// The unused words of each identity, by the time of their last use.
    idle: BTreeMap<Identity, BTreeMap<u64, String>>,
    /// The number of unused words.
    kept: usize,
    /// Counts uses, to find the oldest.
    next: u64,
}

#[derive(Clone, Debug)]
struct Word {
    owner: Identity,
    /// The number of sessions that use it.
    uses: usize,
    since: u64,
}

impl Ownership {
    /// Takes a word for a session. Returns whether the identity may use it.
    pub(crate) fn open(&mut self, identity: &Identity, word: &str, ground: Ground) -> bool {
        let is_open = self.is_open_to(identity, word, ground);
        if is_open && ground != Ground::Unproven {
            self.take(identity, word);
        }
        is_open
    }

    /// Returns whether an identity could take a word, or owns it.
    pub(crate) fn is_open_to(&self, identity: &Identity, word: &str, ground: Ground) -> bool {
        match ground {
            Ground::Named => true,
            Ground::NamedForOthers => false,
            Ground::First | Ground::Unproven => {
                let word = self.words.get(word);
                word.is_none_or(|word| word.owner == *identity)
            }
        }
    }

    /// Ends a session's use of a word; the word still belongs to the identity.
    pub(crate) fn close(&mut self, identity: &Identity, word: &str) {
        let is_used = |held: &&mut Word| held.owner == *identity && held.uses > 0;
        let Some(held) = self.words.get_mut(word).filter(is_used) else {
            return;
        };
        held.uses -= 1;
        if held.uses == 0 {
            let own = self.idle.entry(identity.clone()).or_default();
            own.insert(held.since, word.to_owned());
            self.kept += 1;
            if own.len() > KEPT_OF_IDENTITY_MAX {
                self.forget_oldest(identity);
            } else if self.kept > KEPT_MAX {
                let most = self.idle.iter().max_by_key(|(_, words)| words.len());
                if let Some(identity) = most.map(|(identity, _)| identity.clone()) {
                    self.forget_oldest(&identity);
                }
            }
        }
    }

    fn take(&mut self, identity: &Identity, word: &str) {
        let before = self.words.remove(word);
        if let Some(unused) = before.as_ref().filter(|before| before.uses == 0) {
            self.count_out(&unused.owner, unused.since);
        }
        let kept = before.filter(|before| before.owner == *identity);
        self.next += 1;
        let taken = Word {
            owner: identity.clone(),
            uses: 1 + kept.map_or(0, |kept| kept.uses),
            since: self.next,
        };
        self.words.insert(word.to_owned(), taken);
    }

    fn forget_oldest(&mut self, identity: &Identity) {
        let oldest = self.idle.get(identity).and_then(BTreeMap::first_key_value);
        if let Some((since, word)) = oldest.map(|(since, word)| (*since, word.clone())) {
            self.words.remove(&word);
            self.count_out(identity, since);
        }
    }

    fn count_out(&mut self, identity: &Identity, since: u64) {
        if let Some(own) = self.idle.get_mut(identity)
            && own.remove(&since).is_some()
        {
            self.kept -= 1;
            if own.is_empty() {
                self.idle.remove(identity);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str) -> Identity {
        Identity::Subject(name.to_owned())
    }

    /// Opens and closes a session for one word.
    fn visit(ownership: &mut Ownership, identity: &Identity, word: &str) -> bool {
        let is_open = ownership.open(identity, word, Ground::First);
        if is_open {
            ownership.close(identity, word);
        }
        is_open
    }

    #[test]
    fn who_is_named_takes_what_another_took_first() {
        let mut ownership = Ownership::default();
        let (named, early) = (subject("a"), subject("b"));
        assert!(ownership.open(&early, "c1", Ground::First));
        assert!(ownership.open(&named, "c1", Ground::Named));
        ownership.close(&early, "c1");
        assert!(!ownership.open(&early, "c1", Ground::First));
        ownership.close(&named, "c1");
        assert_eq!(ownership.kept, 1);
    }

    #[test]
    fn identity_that_names_cluster_after_cluster_forgets_its_own_only() {
        let mut ownership = Ownership::default();
        let (owner, flood) = (subject("a"), subject("b"));
        assert!(visit(&mut ownership, &owner, "c1"));
        for number in 0..2 * KEPT_OF_IDENTITY_MAX {
            assert!(visit(&mut ownership, &flood, &format!("flood-{number}")));
        }
        assert!(!ownership.open(&flood, "c1", Ground::First));
        assert_eq!(ownership.words.len(), KEPT_OF_IDENTITY_MAX + 1);
    }

    #[test]
    fn many_identities_that_name_cluster_after_cluster_forget_their_own() {
        let mut ownership = Ownership::default();
        let owner = subject("a");
        for number in 0..KEPT_OF_IDENTITY_MAX / 4 {
            assert!(visit(&mut ownership, &owner, &format!("owned-{number}")));
        }
        for identity in 0..2 * KEPT_MAX / KEPT_OF_IDENTITY_MAX {
            let flood = subject(&format!("flood-{identity}"));
            for number in 0..KEPT_OF_IDENTITY_MAX {
                assert!(visit(
                    &mut ownership,
                    &flood,
                    &format!("{identity}-{number}")
                ));
            }
        }
        for number in 0..KEPT_OF_IDENTITY_MAX / 4 {
            let word = format!("owned-{number}");
            assert!(!ownership.open(&subject("stranger"), &word, Ground::First));
        }
        assert_eq!(ownership.words.len(), KEPT_MAX);
        assert_eq!(ownership.kept, KEPT_MAX);
    }
}
