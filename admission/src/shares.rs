//! The shares of identities in a bounded resource, such as sessions. An identity that came first, or with many, does not keep others out.
//!
//! When all shares are held, a newcomer with an identity evicts a peer without one. Otherwise the newcomer evicts from the owner that holds
//! most, if that owner holds at least two more. The newest share of the owner is evicted, so that old sessions continue. The evicted
//! client reconnects and is refused, because its owner holds most. The successor of a holder, such as the next session of the same agent,
//! inherits its share.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    end_signal::EndSignal,
    places::{PeerIdentity, PeerNetwork},
};

/// The owner of a share: an identity, or the network of an unauthenticated peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner<I> {
    /// An identity.
    Proven(I),
    /// The network of an unauthenticated peer.
    Unproven(PeerNetwork),
}

/// All shares of one kind, and their holders.
#[derive(Debug)]
pub struct Shares<I, R> {
    max: usize,
    /// The reason for newcomers that are refused and holders that are evicted.
    refusal: R,
    holders: Mutex<ShareHolders<I, R>>,
}

/// The number of a share, by which a successor inherits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareId(u64);

/// A share, released on drop.
#[derive(Debug)]
pub struct Share<I: PeerIdentity, R: Clone> {
    shares: Arc<Shares<I, R>>,
    id: u64,
}

#[derive(Debug)]
struct ShareHolders<I, R> {
    next: u64,
    /// In order of arrival.
    all: BTreeMap<u64, ShareHolder<I, R>>,
}

#[derive(Debug)]
struct ShareHolder<I, R> {
    owner: Owner<I>,
    end: EndSignal<R>,
}

// === impl Owner ===

impl<I> Owner<I> {
    const fn is_proven(&self) -> bool {
        matches!(self, Self::Proven(_))
    }
}

// === impl Shares ===

impl<I: PeerIdentity, R: Clone> Shares<I, R> {
    /// `refusal` is the reason for newcomers that are refused and holders that are evicted.
    pub fn new(max: usize, refusal: R) -> Arc<Self> {
        Arc::new(Self {
            max,
            refusal,
            holders: Mutex::new(ShareHolders {
                next: 0,
                all: BTreeMap::new(),
            }),
        })
    }

    /// Takes a share: that of the predecessor, which still has to be told to end, or a free one. If necessary, takes one from another owner,
    /// whose holder is told to end.
    ///
    /// # Errors
    /// If all shares are held, and none can be evicted.
    pub fn take(
        self: &Arc<Self>,
        owner: Owner<I>,
        end: EndSignal<R>,
        predecessor: Option<ShareId>,
    ) -> Result<Share<I, R>, R> {
        let mut holders = self.holders();
        if let Some(ShareId(inherited)) = predecessor {
            holders.all.remove(&inherited);
        }
        if holders.all.len() >= self.max {
            let refusal = self.refusal.clone();
            let Some(last) = holders.last_to_give_way(&owner) else {
                return Err(refusal);
            };
            if let Some(holder) = holders.all.remove(&last) {
                holder.end.send(refusal);
            }
        }
        let id = holders.next;
        holders.next += 1;
        holders.all.insert(id, ShareHolder { owner, end });
        drop(holders);
        let shares = Arc::clone(self);
        Ok(Share { shares, id })
    }

    /// Whether an owner without shares would get one.
    pub fn has_room(&self) -> bool {
        let holders = self.holders();
        holders.all.len() < self.max || holders.by_owner().values().any(|held| *held > 1)
    }

    fn holders(&self) -> MutexGuard<'_, ShareHolders<I, R>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ShareHolders ===

impl<I: PeerIdentity, R> ShareHolders<I, R> {
    /// The number of shares of each owner.
    fn by_owner(&self) -> HashMap<&Owner<I>, usize> {
        let mut by_owner = HashMap::new();
        for holder in self.all.values() {
            *by_owner.entry(&holder.owner).or_default() += 1;
        }
        by_owner
    }

    fn last_to_give_way(&self, newcomer: &Owner<I>) -> Option<u64> {
        let by_owner = self.by_owner();
        let held = |owner: &Owner<I>| by_owner.get(owner).copied().unwrap_or(0);
        let own = held(newcomer);
        let gives_way = |holder: &&ShareHolder<I, R>| match (newcomer, &holder.owner) {
            (Owner::Proven(_), Owner::Unproven(_)) => true,
            (Owner::Unproven(_), Owner::Proven(_)) => false,
            (Owner::Proven(_), Owner::Proven(_)) | (Owner::Unproven(_), Owner::Unproven(_)) => {
                held(&holder.owner) >= own + 2
            }
        };
        let candidates = self.all.iter().filter(|(_, holder)| gives_way(holder));
        let rank = |(id, holder): &(&u64, &ShareHolder<I, R>)| {
            (!holder.owner.is_proven(), held(&holder.owner), **id)
        };
        candidates.max_by_key(rank).map(|(id, _)| *id)
    }
}

// === impl Share ===

impl<I: PeerIdentity, R: Clone> Share<I, R> {
    /// The number of the share.
    pub const fn id(&self) -> ShareId {
        ShareId(self.id)
    }
}

impl<I: PeerIdentity, R: Clone> Drop for Share<I, R> {
    fn drop(&mut self) {
        self.shares.holders().all.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    type Signal = EndSignal<&'static str>;
    type TestOwner = Owner<&'static str>;
    type TestShares = Shares<&'static str, &'static str>;
    type Held = (Share<&'static str, &'static str>, Signal);

    fn unproven(address: &str) -> TestOwner {
        let address: IpAddr = address.parse().expect("an address");
        Owner::Unproven(address.into())
    }

    /// Takes `count` shares for an owner and expects success.
    fn take(shares: &Arc<TestShares>, owner: &TestOwner, count: usize) -> Vec<Held> {
        let take = |_| {
            let end = Signal::default();
            let share = shares.take(owner.clone(), end.clone(), None);
            let share = share.expect("it is had");
            (share, end)
        };
        (0..count).map(take).collect()
    }

    fn is_refused(shares: &Arc<TestShares>, owner: TestOwner) -> bool {
        let refused = shares.take(owner, Signal::default(), None).err();
        refused == Some("all are held")
    }

    fn ended(held: &[Held]) -> Vec<bool> {
        held.iter().map(|(_, end)| end.is_sent()).collect()
    }

    #[test]
    fn owner_that_holds_most_gives_way_with_what_it_took_last() {
        let shares = Shares::new(4, "all are held");
        let (many, few) = (Owner::Proven("many"), Owner::Proven("few"));
        let held = take(&shares, &many, 4);
        assert!(shares.has_room());
        let own = take(&shares, &few, 2);
        assert_eq!(ended(&held), [false, false, true, true]);
        assert_eq!(ended(&own), [false, false]);
        assert!(is_refused(&shares, few), "both hold two");
        assert!(is_refused(&shares, many));
        assert_eq!(ended(&own), [false, false], "who comes back takes nothing");
    }

    #[test]
    fn owners_that_hold_one_each_give_nothing() {
        let shares = Shares::new(2, "all are held");
        let held = ["a", "b"].map(|name| take(&shares, &Owner::Proven(name), 1));
        assert!(!shares.has_room());
        assert!(is_refused(&shares, Owner::Proven("c")));
        drop(held);
        assert!(shares.has_room());
    }

    #[test]
    fn peers_that_have_proven_nothing_give_way_to_those_that_have() {
        let shares = Shares::new(3, "all are held");
        let own = take(&shares, &Owner::Proven("a"), 2);
        let nobody = take(&shares, &unproven("10.0.0.1"), 1);
        assert!(is_refused(&shares, unproven("10.0.0.2")));
        let third = take(&shares, &Owner::Proven("a"), 1);
        assert_eq!(ended(&nobody), [true]);
        assert_eq!((ended(&own), ended(&third)), (vec![false; 2], vec![false]));
        assert!(is_refused(&shares, unproven("10.0.0.1")));
    }

    #[test]
    fn peers_that_have_proven_nothing_count_by_their_network() {
        let shares = Shares::new(2, "all are held");
        let held = ["2001:db8::1", "2001:db8::2"].map(|it| take(&shares, &unproven(it), 1));
        let own = take(&shares, &unproven("2001:db8:1::1"), 1);
        let ends = held.iter().map(|held| ended(held)).collect::<Vec<_>>();
        assert_eq!(
            (ends, ended(&own)),
            (vec![vec![false], vec![true]], vec![false])
        );
    }

    #[test]
    fn successor_inherits_a_share_and_takes_none_from_others() {
        let shares = Shares::new(2, "all are held");
        let (own, other) = (Owner::Proven("own"), Owner::Proven("other"));
        let others = take(&shares, &other, 1);
        let mut predecessor = take(&shares, &own, 1).remove(0);
        for _ in 0..3 {
            let end = Signal::default();
            let inherited = Some(predecessor.0.id());
            let successor = shares.take(own.clone(), end.clone(), inherited);
            let successor = successor.expect("it inherits one");
            assert!(!predecessor.1.is_sent(), "its end has another reason");
            assert!(is_refused(&shares, Owner::Proven("third")));
            predecessor = (successor, end);
            assert!(
                is_refused(&shares, Owner::Proven("third")),
                "the predecessor has gone"
            );
        }
        assert_eq!(ended(&others), [false]);
    }
}
