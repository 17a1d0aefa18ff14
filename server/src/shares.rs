//! What identities hold of something that is bounded in all, such as sessions: nobody who came first, or with many, keeps others out.
//!
//! When all is held, a newcomer takes from a peer that has proven nothing if it has proven who it is itself, and else from the owner
//! that holds most, if that holds at least two more than the newcomer. The holder that came last gives way, so that what an owner has
//! had for long goes on; its client comes back, and is refused, since its owner holds most.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use server_access::Identity;

use crate::{
    access::Caller,
    error::{Limit, Refusal},
    session::EndSignal,
};

/// For whom a share is counted: an identity, or the address of a peer that has proven nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Proven(Identity),
    Unproven(String),
}

/// All that there is of one kind, and who holds it.
#[derive(Debug)]
pub(crate) struct Shares {
    what: Limit,
    max: usize,
    holders: Mutex<Holders>,
}

/// One that is held; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    id: u64,
}

#[derive(Debug, Default)]
struct Holders {
    next: u64,
    /// In the order in which they came.
    all: BTreeMap<u64, Holder>,
    by_owner: HashMap<Owner, usize>,
}

#[derive(Debug)]
struct Holder {
    owner: Owner,
    end: EndSignal,
}

// === impl Owner ===

impl Owner {
    pub(crate) fn of(caller: &Caller) -> Self {
        match caller.identity() {
            Identity::Anonymous => Self::Unproven(caller.address().to_owned()),
            identity @ (Identity::Uri(_)
            | Identity::Dns(_)
            | Identity::Subject(_)
            | Identity::Uid(_)) => Self::Proven(identity.clone()),
        }
    }

    const fn is_proven(&self) -> bool {
        matches!(self, Self::Proven(_))
    }
}

// === impl Shares ===

impl Shares {
    /// Returns `max` of these, all of them free.
    pub(crate) fn new(what: Limit, max: usize) -> Arc<Self> {
        Arc::new(Self {
            what,
            max,
            holders: Mutex::default(),
        })
    }

    /// Takes one for a caller, if need be from another owner, whose holder is told to end.
    ///
    /// # Errors
    /// If all are held, and by nobody who has to give way.
    pub(crate) fn take(
        self: &Arc<Self>,
        caller: &Caller,
        end: EndSignal,
    ) -> Result<Share, Refusal> {
        let owner = Owner::of(caller);
        let mut holders = self.holders();
        if holders.all.len() >= self.max {
            let (what, max) = (self.what, self.max);
            let refusal = Refusal::Exhausted { what, max };
            let Some(last) = holders.last_to_give_way(&owner) else {
                return Err(refusal);
            };
            if let Some(holder) = holders.remove(last) {
                holder.end.send(refusal);
            }
        }
        let id = holders.insert(Holder { owner, end });
        drop(holders);
        let shares = Arc::clone(self);
        Ok(Share { shares, id })
    }

    /// Returns whether an owner that holds nothing would get one.
    pub(crate) fn has_room(&self) -> bool {
        let holders = self.holders();
        holders.all.len() < self.max || holders.by_owner.values().any(|held| *held > 1)
    }

    fn holders(&self) -> MutexGuard<'_, Holders> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Holders ===

impl Holders {
    fn last_to_give_way(&self, newcomer: &Owner) -> Option<u64> {
        let held = |owner: &Owner| self.by_owner.get(owner).copied().unwrap_or(0);
        let own = held(newcomer);
        let gives_way = |holder: &&Holder| {
            let is_weaker = newcomer.is_proven() && !holder.owner.is_proven();
            let is_stronger = holder.owner.is_proven() && !newcomer.is_proven();
            is_weaker || (!is_stronger && held(&holder.owner) >= own + 2)
        };
        let candidates = self.all.iter().filter(|(_, holder)| gives_way(holder));
        let rank =
            |(id, holder): &(&u64, &Holder)| (!holder.owner.is_proven(), held(&holder.owner), **id);
        candidates.max_by_key(rank).map(|(id, _)| *id)
    }

    fn insert(&mut self, holder: Holder) -> u64 {
        let id = self.next;
        self.next += 1;
        *self.by_owner.entry(holder.owner.clone()).or_default() += 1;
        self.all.insert(id, holder);
        id
    }

    fn remove(&mut self, id: u64) -> Option<Holder> {
        let holder = self.all.remove(&id)?;
        if let Some(held) = self.by_owner.get_mut(&holder.owner) {
            *held -= 1;
            if *held == 0 {
                self.by_owner.remove(&holder.owner);
            }
        }
        Some(holder)
    }
}

// === impl Share ===

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.holders().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use server_access::Permissions;

    use super::*;

    fn proven(name: &str) -> Caller {
        let identity = Identity::Subject(name.to_owned());
        Caller::new(identity, String::new(), Permissions::default(), None)
    }

    fn unproven(address: &str) -> Caller {
        Caller::nobody(address.to_owned())
    }

    /// Takes so many for a caller, each of which must be had.
    fn take(shares: &Arc<Shares>, caller: &Caller, count: usize) -> Vec<(Share, EndSignal)> {
        let take = |_| {
            let end = EndSignal::default();
            let share = shares.take(caller, end.clone()).expect("it is had");
            (share, end)
        };
        (0..count).map(take).collect()
    }

    fn ended(held: &[(Share, EndSignal)]) -> Vec<bool> {
        held.iter().map(|(_, end)| end.is_sent()).collect()
    }

    #[test]
    fn owner_that_holds_most_gives_way_with_what_it_took_last() {
        let shares = Shares::new(Limit::Sessions, 4);
        let (many, few) = (proven("many"), proven("few"));
        let held = take(&shares, &many, 4);
        assert!(shares.has_room());
        let own = take(&shares, &few, 2);
        assert_eq!(ended(&held), [false, false, true, true]);
        assert_eq!(ended(&own), [false, false]);
        assert!(
            shares.take(&few, EndSignal::default()).is_err(),
            "both hold two"
        );
        assert!(shares.take(&many, EndSignal::default()).is_err());
        assert_eq!(ended(&own), [false, false], "who comes back takes nothing");
    }

    #[test]
    fn owners_that_hold_one_each_give_nothing() {
        let shares = Shares::new(Limit::Sessions, 2);
        let held = [
            take(&shares, &proven("a"), 1),
            take(&shares, &proven("b"), 1),
        ];
        assert!(!shares.has_room());
        let refusal = shares.take(&proven("c"), EndSignal::default());
        let refusal = refusal.expect_err("all are held");
        assert_eq!(refusal.reason(), "LIMIT_REACHED");
        drop(held);
        assert!(shares.has_room());
        assert!(shares.holders().by_owner.is_empty());
    }

    #[test]
    fn peers_that_have_proven_nothing_give_way_to_those_that_have() {
        let shares = Shares::new(Limit::Sessions, 3);
        let own = take(&shares, &proven("a"), 2);
        let nobody = take(&shares, &unproven("10.0.0.1"), 1);
        assert!(
            shares
                .take(&unproven("10.0.0.2"), EndSignal::default())
                .is_err()
        );
        let third = take(&shares, &proven("a"), 1);
        assert_eq!(ended(&nobody), [true]);
        assert_eq!((ended(&own), ended(&third)), (vec![false; 2], vec![false]));
        assert!(
            shares
                .take(&unproven("10.0.0.1"), EndSignal::default())
                .is_err()
        );
    }
}
