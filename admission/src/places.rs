//! Places of which there are few: connections, streams without a Hello, sessions, calls, and bytes that have been received.
//!
//! Each kind is bounded in total and by peer address. When all are taken, a newcomer evicts a holder of a lower [`PlaceRank`] than it bids: one
//! at its own address, if that has used up its share, or else one of the identity that would hold most. Peers without an identity are
//! counted by address. Of several such holders, the one that has held its place longest is evicted. So idle holders cannot lock newcomers
//! out, and an active holder has a higher rank before it could be evicted.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The bits of an IPv6 address that one peer has to choose from.
const IPV6_HOST_BITS: u32 = 64;

/// Whom a place is counted for: an IPv4 address, or the /64 network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerNetwork(IpAddr);

/// How firmly a place is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceRank {
    /// By a peer that has proved nothing.
    Unproven,
    /// By a peer that has proved who it is.
    Proven,
    /// By one that does what places are for; nobody takes it.
    Settled,
}

/// No place is left, nor may one be taken from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Who a peer has proved to be.
pub trait PeerIdentity: Clone + Debug + Eq + Hash {}

impl<T: Clone + Debug + Eq + Hash> PeerIdentity for T {}

/// All places of one kind.
#[derive(Debug)]
pub struct Places<I> {
    max: usize,
    source_max: usize,
    holders: Mutex<Holders<I>>,
}

/// A place, free again when this is dropped.
#[derive(Debug)]
pub struct Place<I: PeerIdentity> {
    handle: PlaceHandle<I>,
    taken: CancellationToken,
    wait: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

/// Reaches a place without holding it: what is done to one that is free already has no effect.
#[derive(Clone, Debug)]
pub struct PlaceHandle<I> {
    places: Arc<Places<I>>,
    id: u64,
}

/// Keeps a place from being taken until this is dropped.
#[derive(Debug)]
pub struct SettledPlace<I: PeerIdentity>(PlaceHandle<I>);

#[derive(Debug)]
struct Holders<I> {
    next: u64,
    /// In the order in which they came.
    all: BTreeMap<u64, Holder<I>>,
    used: usize,
    /// What each source holds and may lose: sessions are no reason to refuse what else comes from an address that many share.
    by_source: HashMap<PeerNetwork, usize>,
    /// The same of each identity, whatever addresses it comes from.
    by_identity: HashMap<I, usize>,
}

/// For whom a place is held, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlaceOwner<I> {
    source: PeerNetwork,
    /// Who the peer has proved to be, if it has.
    identity: Option<I>,
}

#[derive(Debug)]
struct Holder<I> {
    owner: PlaceOwner<I>,
    settled: usize,
    weight: usize,
    taken: CancellationToken,
}

// === impl PeerNetwork ===

impl From<IpAddr> for PeerNetwork {
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

impl<I: PeerIdentity> Places<I> {
    /// Returns `max` places, of which one source may hold `source_max`.
    pub fn new(max: usize, source_max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            source_max: source_max.min(max),
            holders: Mutex::new(Holders::new()),
        })
    }

    /// Returns how many there are.
    pub const fn max(&self) -> usize {
        self.max
    }

    /// Takes a place, if need be from a holder of a rank below `bid`.
    pub fn take(self: &Arc<Self>, source: PeerNetwork, bid: PlaceRank) -> Result<Place<I>, Full> {
        self.take_weight(source, None, bid, 1)
    }

    /// Takes `weight` places at once, for a peer that has proved to be `identity`, if it has.
    pub fn take_weight(
        self: &Arc<Self>,
        source: PeerNetwork,
        identity: Option<I>,
        bid: PlaceRank,
        weight: usize,
    ) -> Result<Place<I>, Full> {
        let owner = PlaceOwner { source, identity };
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
            handle: PlaceHandle { places, id },
            taken,
            wait: None,
        })
    }

    /// Returns whether an unproven newcomer that bids so would get a place.
    pub fn has_room(&self, bid: PlaceRank) -> bool {
        let holders = self.lock();
        holders.used < self.max || holders.all.values().any(|holder| holder.rank() < bid)
    }

    fn make_room(
        &self,
        holders: &mut Holders<I>,
        owner: &PlaceOwner<I>,
        bid: PlaceRank,
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

    fn lock(&self) -> MutexGuard<'_, Holders<I>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Holders ===

impl<I: PeerIdentity> Holders<I> {
    fn new() -> Self {
        Self {
            next: 0,
            all: BTreeMap::new(),
            used: 0,
            by_source: HashMap::new(),
            by_identity: HashMap::new(),
        }
    }

    /// Returns the holder that a newcomer of this weight evicts, among those below a rank, at its own address or at any.
    fn least(
        &self,
        newcomer: &PlaceOwner<I>,
        at_own: bool,
        weight: usize,
        bid: PlaceRank,
    ) -> Option<u64> {
        let below = self.all.iter().filter(|(_, holder)| {
            holder.rank() < bid && (!at_own || holder.owner.source == newcomer.source)
        });
        // The newcomer's weight counts, so that a peer takes nothing from another that holds as much.
        let would_hold = |owner: &PlaceOwner<I>| {
            if owner.is_of_one_peer_with(newcomer) {
                self.held(owner) + weight
            } else {
                self.held(owner)
            }
        };
        below
            .min_by_key(|(id, holder)| {
                (holder.rank(), usize::MAX - would_hold(&holder.owner), **id)
            })
            .map(|(id, _)| *id)
    }

    /// Returns what a peer holds and may lose.
    fn held(&self, owner: &PlaceOwner<I>) -> usize {
        match &owner.identity {
            Some(identity) => count(&self.by_identity, identity),
            None => count(&self.by_source, &owner.source),
        }
    }

    fn insert(&mut self, holder: Holder<I>) -> u64 {
        let id = self.next;
        self.next += 1;
        self.used += holder.weight;
        self.count(&holder);
        self.all.insert(id, holder);
        id
    }

    fn remove(&mut self, id: u64) -> Option<Holder<I>> {
        let holder = self.all.remove(&id)?;
        self.used -= holder.weight;
        self.discount(&holder);
        Some(holder)
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Holder<I>)) {
        if let Some(mut holder) = self.all.remove(&id) {
            self.used -= holder.weight;
            self.discount(&holder);
            change(&mut holder);
            self.used += holder.weight;
            self.count(&holder);
            self.all.insert(id, holder);
        }
    }

    fn count(&mut self, holder: &Holder<I>) {
        if holder.settled > 0 {
            return;
        }
        let PlaceOwner { source, identity } = &holder.owner;
        *self.by_source.entry(*source).or_default() += holder.weight;
        if let Some(identity) = identity {
            *self.by_identity.entry(identity.clone()).or_default() += holder.weight;
        }
    }

    fn discount(&mut self, holder: &Holder<I>) {
        if holder.settled > 0 {
            return;
        }
        let PlaceOwner { source, identity } = &holder.owner;
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

// === impl PlaceOwner ===

impl<I: PeerIdentity> PlaceOwner<I> {
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

impl<I> Holder<I> {
    const fn rank(&self) -> PlaceRank {
        match (self.settled, &self.owner.identity) {
            (0, None) => PlaceRank::Unproven,
            (0, Some(_)) => PlaceRank::Proven,
            _ => PlaceRank::Settled,
        }
    }
}

// === impl Place ===

impl<I: PeerIdentity> Place<I> {
    /// Returns a way to reach the place.
    pub const fn handle(&self) -> &PlaceHandle<I> {
        &self.handle
    }

    /// Returns what is cancelled when the place is taken away.
    #[cfg(test)]
    const fn taken(&self) -> &CancellationToken {
        &self.taken
    }

    /// Waits until the place is taken away.
    pub fn wait_taken(&self) -> WaitForCancellationFutureOwned {
        self.taken.clone().cancelled_owned()
    }

    /// Is ready once the place is taken away.
    pub fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let taken = || Box::pin(self.taken.clone().cancelled_owned());
        self.wait.get_or_insert_with(taken).as_mut().poll(cx)
    }

    /// Holds `weight` more, if need be at the cost of others that hold theirs as loosely and longer.
    pub fn grow(&self, weight: usize) -> Result<(), Full> {
        let PlaceHandle { places, id } = &self.handle;
        let mut holders = places.lock();
        let owner = holders.all.get(id).ok_or(Full)?.owner.clone();
        places.make_room(&mut holders, &owner, PlaceRank::Settled, weight, Some(*id))?;
        holders.change(*id, |holder| holder.weight += weight);
        Ok(())
    }
}

impl<I: PeerIdentity> Drop for Place<I> {
    fn drop(&mut self) {
        self.handle.places.lock().remove(self.handle.id);
    }
}

// === impl PlaceHandle ===

impl<I: PeerIdentity> PlaceHandle<I> {
    /// Says who the holder has proved to be.
    pub fn prove(&self, identity: &I) {
        self.change(|holder| holder.owner.identity = Some(identity.clone()));
    }

    /// Returns who the holder has proved to be, if it has.
    pub fn identity(&self) -> Option<I> {
        let holders = self.places.lock();
        holders.all.get(&self.id)?.owner.identity.clone()
    }

    /// Keeps the place from being taken for as long as what is returned lives.
    pub fn settle(&self) -> SettledPlace<I> {
        self.change(|holder| holder.settled += 1);
        SettledPlace(self.clone())
    }

    fn change(&self, change: impl FnOnce(&mut Holder<I>)) {
        self.places.lock().change(self.id, change);
    }
}

// === impl SettledPlace ===

impl<I: PeerIdentity> Drop for SettledPlace<I> {
    fn drop(&mut self) {
        self.0.change(|holder| holder.settled -= 1);
    }
}

#[cfg(test)]
mod tests;
