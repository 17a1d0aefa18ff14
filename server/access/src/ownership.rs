//! Which identity a cluster's uid and name belong to.

use std::collections::BTreeMap;

use crate::identity::Identity;

/// The uids and names that are remembered for one identity beyond those in use.
const KEPT_OF_IDENTITY_MAX: usize = 64;
/// The uids, and the names, that are remembered in all beyond those in use.
const KEPT_MAX: usize = 4096;

/// On what ground an identity asks for a uid or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// The policy names it for this identity.
    Named,
    /// It was proven, and belongs to whoever is first.
    First,
    /// Nothing was proven: it may be used while it belongs to nobody.
    Unproven,
}

/// Which identity each uid and name belongs to, for as long as the process lives. What is remembered is bounded: beyond that
/// the oldest that are not in use are forgotten, those of the same identity first.
#[derive(Clone, Debug, Default)]
pub struct Ownership {
    uids: Table,
    names: Table,
}

#[derive(Clone, Debug, Default)]
struct Table {
    entries: BTreeMap<String, Entry>,
    /// Counts entries, so that the oldest is known.
    next: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    owner: Identity,
    /// The sessions that use it.
    users: usize,
    since: u64,
}

// === impl Ownership ===

impl Ownership {
    /// Takes a uid for a session. Returns whether the identity may have it.
    pub(crate) fn open_uid(&mut self, identity: &Identity, uid: &str, ground: Ground) -> bool {
        self.uids.open(identity, uid, ground)
    }

    /// Takes a name for a session. Returns whether the identity may have it; the uid of another's cluster is no name for its own.
    pub(crate) fn open_name(&mut self, identity: &Identity, name: &str, ground: Ground) -> bool {
        let is_foreign_uid = self.uids.owner(name).is_some_and(|owner| owner != identity);
        !is_foreign_uid && self.names.open(identity, name, ground)
    }

    /// Returns whether an identity might take a uid, or has it.
    pub(crate) fn is_open_to(&self, identity: &Identity, uid: &str, ground: Ground) -> bool {
        ground == Ground::Named || self.uids.is_free_for(identity, uid)
    }

    /// Gives back what a session used; it stays the identity's.
    pub(crate) fn close(&mut self, identity: &Identity, uid: &str, name: Option<&str>) {
        self.uids.close(identity, uid);
        if let Some(name) = name {
            self.names.close(identity, name);
        }
    }
}

// === impl Table ===

impl Table {
    fn owner(&self, key: &str) -> Option<&Identity> {
        self.entries.get(key).map(|entry| &entry.owner)
    }

    fn is_free_for(&self, identity: &Identity, key: &str) -> bool {
        self.owner(key).is_none_or(|owner| owner == identity)
    }

    fn open(&mut self, identity: &Identity, key: &str, ground: Ground) -> bool {
        let is_free = self.is_free_for(identity, key);
        match ground {
            Ground::Unproven => is_free,
            Ground::First if !is_free => false,
            Ground::First | Ground::Named => {
                self.take(identity, key);
                true
            }
        }
    }

    fn take(&mut self, identity: &Identity, key: &str) {
        self.next += 1;
        let since = self.next;
        if let Some(entry) = self.entries.get_mut(key) {
            if entry.owner != *identity {
                (entry.owner, entry.users) = (identity.clone(), 0);
            }
            entry.users += 1;
            entry.since = since;
            return;
        }
        self.make_room(identity);
        let owner = identity.clone();
        let entry = Entry {
            owner,
            users: 1,
            since,
        };
        self.entries.insert(key.to_owned(), entry);
    }

    fn close(&mut self, identity: &Identity, key: &str) {
        if let Some(entry) = self
            .entries
            .get_mut(key)
            .filter(|entry| entry.owner == *identity)
        {
            entry.users = entry.users.saturating_sub(1);
        }
    }

    fn make_room(&mut self, identity: &Identity) {
        let idle = || self.entries.iter().filter(|(_, entry)| entry.users == 0);
        let own = || idle().filter(|(_, entry)| entry.owner == *identity);
        let oldest = if own().count() >= KEPT_OF_IDENTITY_MAX {
            own().min_by_key(|(_, entry)| entry.since)
        } else if idle().count() >= KEPT_MAX {
            idle().min_by_key(|(_, entry)| entry.since)
        } else {
            None
        };
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str) -> Identity {
        Identity::Subject(name.to_owned())
    }

    #[test]
    fn uid_stays_with_the_first_who_proved_it() {
        let mut ownership = Ownership::default();
        let (owner, stranger) = (subject("a"), subject("b"));
        assert!(ownership.open_uid(&owner, "c1", Ground::First));
        ownership.close(&owner, "c1", None);
        assert!(!ownership.open_uid(&stranger, "c1", Ground::First));
        assert!(!ownership.open_uid(&Identity::Anonymous, "c1", Ground::Unproven));
        assert!(ownership.open_uid(&owner, "c1", Ground::First));
    }

    #[test]
    fn who_is_named_takes_what_another_took_first() {
        let mut ownership = Ownership::default();
        let (named, early) = (subject("a"), subject("b"));
        assert!(ownership.open_uid(&early, "c1", Ground::First));
        assert!(ownership.open_uid(&named, "c1", Ground::Named));
        ownership.close(&early, "c1", None);
        assert!(!ownership.open_uid(&early, "c1", Ground::First));
    }

    #[test]
    fn who_has_proven_nothing_owns_nothing() {
        let mut ownership = Ownership::default();
        assert!(ownership.open_uid(&Identity::Anonymous, "c1", Ground::Unproven));
        assert!(ownership.open_uid(&subject("a"), "c1", Ground::First));
    }

    #[test]
    fn uid_of_a_cluster_is_no_name_of_anothers() {
        let mut ownership = Ownership::default();
        assert!(ownership.open_uid(&subject("a"), "c1", Ground::First));
        assert!(!ownership.open_name(&subject("b"), "c1", Ground::First));
        assert!(ownership.open_name(&subject("b"), "eu", Ground::First));
        assert!(!ownership.open_name(&subject("a"), "eu", Ground::First));
    }

    #[test]
    fn identity_that_names_cluster_after_cluster_forgets_its_own_only() {
        let mut ownership = Ownership::default();
        let (owner, flood) = (subject("a"), subject("b"));
        assert!(ownership.open_uid(&owner, "c1", Ground::First));
        ownership.close(&owner, "c1", None);
        for number in 0..10 * KEPT_OF_IDENTITY_MAX {
            let uid = format!("flood-{number}");
            assert!(ownership.open_uid(&flood, &uid, Ground::First));
            ownership.close(&flood, &uid, None);
        }
        assert!(!ownership.open_uid(&flood, "c1", Ground::First));
        assert!(ownership.uids.entries.len() <= KEPT_OF_IDENTITY_MAX + 1);
    }
}
