//! Places of which there are few: connections, streams without a Hello, sessions, calls, and bytes that have been received.
//!
//! Each kind is bounded in all and by peer address. When none is left, a place is taken from a holder of a lower [`Rank`] than the
//! newcomer bids: one at its own address if that has used up its share, of the identity that would hold most, or of the address for peers
//! that have proved nothing, and of these the one that has held it longest. So a newcomer gets in however many hold places and do
//! nothing, however many of them another identity holds, and one that does something has a
//! higher rank long before its turn comes.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use server_access::Identity;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The bits of an IPv6 address that one peer has to choose from.
const IPV6_HOST_BITS: u32 = 64;

/// Whom a place is counted for: an IPv4 address, or the /64 network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source(IpAddr);

/// How firmly a place is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// By a peer that has proved nothing.
    Unproven,
    /// By a peer that has proved who it is.
    Proven,
    /// By one that does what places are for; nobody takes it.
    Settled,
}

/// No place is left, nor may one be taken from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// All places of one kind.
#[derive(Debug)]
pub(crate) struct Places {
    max: usize,
    source_max: usize,
    holders: Mutex<Holders>,
}

/// A place, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    handle: Handle,
    taken: CancellationToken,
    wait: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

/// Reaches a place without holding it: what is done to one that is free already has no effect.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    places: Arc<Places>,
    id: u64,
}

/// Keeps a place from being taken until it is dropped.
#[derive(Debug)]
pub(crate) struct Settled(Handle);

#[derive(Debug, Default)]
struct Holders {
    next: u64,
    /// In the order in which they came.
    all: BTreeMap<u64, Holder>,
    used: usize,
    /// What each source holds and may lose: sessions are no reason to refuse what else comes from an address that many share.
    by_source: HashMap<Source, usize>,
    /// The same of each identity, whatever addresses it comes from.
    by_identity: HashMap<Identity, usize>,
}

/// For whom a place is held, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    source: Source,
    /// Who the peer has proved to be, if it has.
    identity: Option<Identity>,
}

#[derive(Debug)]
struct Holder {
    owner: Owner,
    settled: usize,
    weight: usize,
    taken: CancellationToken,
}

// === impl Source ===

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            v4 @ IpAddr::V4(_) => v4,
            IpAddr::V6(v6) => {
                let network = v6.to_bits() >> IPV6_HOST_BITS << IPV6_HOST_BITS;
                Ipv6Addr::from_bits(network).into()
            }
        })
    }
}

// === impl Places ===

impl Places {
    /// Returns `max` places, of which one source may hold `source_max`.
    pub(crate) fn new(max: usize, source_max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            source_max: source_max.min(max),
            holders: Mutex::default(),
        })
    }

    /// Returns how many there are.
    pub(crate) const fn max(&self) -> usize {
        self.max
    }

    /// Takes a place, if need be from a holder of a rank below `bid`.
    pub(crate) fn take(self: &Arc<Self>, source: Source, bid: Rank) -> Result<Place, Full> {
        self.take_weight(source, None, bid, 1)
    }

    /// Takes `weight` places at once, for a peer that has proved to be `identity`, if it has.
    pub(crate) fn take_weight(
        self: &Arc<Self>,
        source: Source,
        identity: Option<Identity>,
        bid: Rank,
        weight: usize,
    ) -> Result<Place, Full> {
        let owner = Owner { source, identity };
        let mut holders = self.lock();
        self.make_room(&mut holders, &owner, bid, weight, None)?;
        let taken = CancellationToken::new();
        let id = holders.insert(Holder {
            owner,
            settled: 0,
            weight,
            taken: taken.clone(),
        });
        drop(holders);
        let places = Arc::clone(self);
        Ok(Place {
            handle: Handle { places, id },
            taken,
            wait: None,
        })
    }

    /// Returns whether an unproven newcomer that bids so would get a place.
    pub(crate) fn has_room(&self, bid: Rank) -> bool {
        let holders = self.lock();
        holders.used < self.max || holders.all.values().any(|holder| holder.rank() < bid)
    }

    fn make_room(
        &self,
        holders: &mut Holders,
        owner: &Owner,
        bid: Rank,
        weight: usize,
        asking: Option<u64>,
    ) -> Result<(), Full> {
        if weight > self.source_max {
            return Err(Full);
        }
        loop {
            let of_source = count(&holders.by_source, &owner.source);
            let share_is_used = of_source.saturating_add(weight) > self.source_max;
            if !share_is_used && holders.used.saturating_add(weight) <= self.max {
                return Ok(());
            }
            let id = holders.least(owner, share_is_used, weight, bid);
            let id = id.ok_or(Full)?;
            if asking == Some(id) {
                return Err(Full);
            }
            if let Some(holder) = holders.remove(id) {
                holder.taken.cancel();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Holders> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Holders ===

impl Holders {
    /// Returns who gives way next to a newcomer that takes `weight`, among those below a rank, at its own address or at all.
    fn least(&self, newcomer: &Owner, at_own: bool, weight: usize, bid: Rank) -> Option<u64> {
        let below = self.all.iter().filter(|(_, holder)| {
            holder.rank() < bid && (!at_own || holder.owner.source == newcomer.source)
        });
        // What the newcomer takes counts, so that whoever has as many as another takes none from it.
        let would_hold = |owner: &Owner| match owner.is_of_one_peer_with(newcomer) {
            true => self.held(owner) + weight,
            false => self.held(owner),
        };
        below
            .min_by_key(|(id, holder)| {
                (holder.rank(), usize::MAX - would_hold(&holder.owner), **id)
            })
            .map(|(id, _)| *id)
    }

    /// Returns what a peer holds and may lose.
    fn held(&self, owner: &Owner) -> usize {
        match &owner.identity {
            Some(identity) => count(&self.by_identity, identity),
            None => count(&self.by_source, &owner.source),
        }
    }

    fn insert(&mut self, holder: Holder) -> u64 {
        let id = self.next;
        self.next += 1;
        self.used += holder.weight;
        self.count(&holder);
        self.all.insert(id, holder);
        id
    }

    fn remove(&mut self, id: u64) -> Option<Holder> {
        let holder = self.all.remove(&id)?;
        self.used -= holder.weight;
        self.discount(&holder);
        Some(holder)
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Holder)) {
        if let Some(mut holder) = self.all.remove(&id) {
            self.used -= holder.weight;
            self.discount(&holder);
            change(&mut holder);
            self.used += holder.weight;
            self.count(&holder);
            self.all.insert(id, holder);
        }
    }

    fn count(&mut self, holder: &Holder) {
        if holder.settled > 0 {
            return;
        }
        let Owner { source, identity } = &holder.owner;
        *self.by_source.entry(*source).or_default() += holder.weight;
        if let Some(identity) = identity {
            *self.by_identity.entry(identity.clone()).or_default() += holder.weight;
        }
    }

    fn discount(&mut self, holder: &Holder) {
        if holder.settled > 0 {
            return;
        }
        let Owner { source, identity } = &holder.owner;
        subtract(&mut self.by_source, source, holder.weight);
        if let Some(identity) = identity {
            subtract(&mut self.by_identity, identity, holder.weight);
        }
    }
}

fn count<K: Hash + Eq>(held: &HashMap<K, usize>, of: &K) -> usize {
    held.get(of).copied().unwrap_or(0)
}

fn subtract<K: Hash + Eq>(held: &mut HashMap<K, usize>, of: &K, weight: usize) {
    if let Some(left) = held.get_mut(of) {
        *left -= weight;
        if *left == 0 {
            held.remove(of);
        }
    }
}

// === impl Owner ===

impl Owner {
    /// Returns whether both are counted as one.
    fn is_of_one_peer_with(&self, other: &Self) -> bool {
        match (&self.identity, &other.identity) {
            (Some(own), Some(others)) => own == others,
            (None, None) => self.source == other.source,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

// === impl Holder ===

impl Holder {
    const fn rank(&self) -> Rank {
        match (self.settled, &self.owner.identity) {
            (0, None) => Rank::Unproven,
            (0, Some(_)) => Rank::Proven,
            _ => Rank::Settled,
        }
    }
}

// === impl Place ===

impl Place {
    /// Returns a way to reach the place.
    pub(crate) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns what is cancelled when the place is taken away.
    #[cfg(test)]
    const fn taken(&self) -> &CancellationToken {
        &self.taken
    }

    /// Waits until the place is taken away.
    pub(crate) fn wait_taken(&self) -> WaitForCancellationFutureOwned {
        self.taken.clone().cancelled_owned()
    }

    /// Is ready once the place is taken away.
    pub(crate) fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let taken = || Box::pin(self.taken.clone().cancelled_owned());
        self.wait.get_or_insert_with(taken).as_mut().poll(cx)
    }

    /// Holds `weight` more, if need be at the cost of others that hold theirs as loosely and longer.
    pub(crate) fn grow(&self, weight: usize) -> Result<(), Full> {
        let Handle { places, id } = &self.handle;
        let mut holders = places.lock();
        let owner = holders.all.get(id).ok_or(Full)?.owner.clone();
        places.make_room(&mut holders, &owner, Rank::Settled, weight, Some(*id))?;
        holders.change(*id, |holder| holder.weight += weight);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.handle.places.lock().remove(self.handle.id);
    }
}

// === impl Handle ===

impl Handle {
    /// Says who the holder has proved to be.
    pub(crate) fn prove(&self, identity: &Identity) {
        self.change(|holder| holder.owner.identity = Some(identity.clone()));
    }

    /// Returns who the holder has proved to be, if it has.
    pub(crate) fn identity(&self) -> Option<Identity> {
        let holders = self.places.lock();
        holders.all.get(&self.id)?.owner.identity.clone()
    }

    /// Keeps the place from being taken for as long as what is returned lives.
    pub(crate) fn settle(&self) -> Settled {
        self.change(|holder| holder.settled += 1);
        Settled(self.clone())
    }

    fn change(&self, change: impl FnOnce(&mut Holder)) {
        self.places.lock().change(self.id, change);
    }
}

// === impl Settled ===

impl Drop for Settled {
    fn drop(&mut self) {
        self.0.change(|holder| holder.settled -= 1);
    }
}

#[cfg(test)]
mod tests;
