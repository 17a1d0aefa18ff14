//! Bounded resources: connections, streams without a Hello, sessions, calls, and received bytes.
//!
//! Each kind is bounded in total and by peer address. When all places are taken, a newcomer evicts a holder with a lower [`PlaceRank`] than
//! its bid. A newcomer whose address has used up its share evicts at that address, any other newcomer evicts anywhere. The evicted holder
//! has the lowest rank, then belongs to the peer that would hold most, then is the oldest. Peers without an identity are counted by
//! address. So idle holders cannot lock newcomers out, and an active holder reaches a higher rank before an eviction.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The bits of an IPv6 address that one peer can choose freely.
const IPV6_HOST_BITS: u32 = 64;

/// The network that a place counts for: an IPv4 address, or the /64 network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerNetwork(IpAddr);

/// The protection of a place from eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceRank {
    /// By a peer that has proved nothing.
    Unproven,
    /// By a peer that has proved who it is.
    Proven,
    /// By an active peer; nobody takes the place.
    Settled,
}

/// No place is free, and none can be taken from another holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The identity of a peer.
pub trait PeerIdentity: Clone + Debug + Eq + Hash {}

impl<T: Clone + Debug + Eq + Hash> PeerIdentity for T {}

/// All places of one kind.
#[derive(Debug)]
pub struct Places<I> {
    max: usize,
    source_max: usize,
    holders: Mutex<Holders<I>>,
}

/// A place, released on drop.
#[derive(Debug)]
pub struct Place<I: PeerIdentity> {
    handle: PlaceHandle<I>,
    taken: CancellationToken,
    wait: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

/// Access to a place without holding it. Calls after the release of the place have no effect.
#[derive(Clone, Debug)]
pub struct PlaceHandle<I> {
    places: Arc<Places<I>>,
    id: u64,
}

/// Protects a place from eviction until the drop.
#[derive(Debug)]
pub struct SettledPlace<I: PeerIdentity>(PlaceHandle<I>);

#[derive(Debug)]
struct Holders<I> {
    next: u64,
    /// In order of arrival.
    all: BTreeMap<u64, Holder<I>>,
    used: usize,
    /// The evictable places of each network. Sessions do not count, because many peers may share an address.
    by_source: HashMap<PeerNetwork, usize>,
    /// The evictable places of each identity, at all addresses.
    by_identity: HashMap<I, usize>,
}

/// The peer that a place counts for: its network, and its identity if proved.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlaceOwner<I> {
    source: PeerNetwork,
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
    /// `source_max` is the maximum for one network.
    pub fn new(max: usize, source_max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            source_max: source_max.min(max),
            holders: Mutex::new(Holders {
                next: 0,
                all: BTreeMap::new(),
                used: 0,
                by_source: HashMap::new(),
                by_identity: HashMap::new(),
            }),
        })
    }

    /// The number of places.
    pub const fn max(&self) -> usize {
        self.max
    }

    /// Takes a place, if necessary from a holder of a rank below `bid`.
    pub fn take(self: &Arc<Self>, source: PeerNetwork, bid: PlaceRank) -> Result<Place<I>, Full> {
        self.take_weight(source, None, bid, 1)
    }

    /// Takes `weight` places at once, for a peer with this identity, if any.
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
        let id = holders.next;
        holders.next += 1;
        let holder = Holder {
            owner,
            settled: 0,
            weight,
            taken: taken.clone(),
        };
        holders.insert(id, holder);
        drop(holders);
        let places = Arc::clone(self);
        Ok(Place {
            handle: PlaceHandle { places, id },
            taken,
            wait: None,
        })
    }

    /// Whether an unproven newcomer with this bid would get a place.
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
    /// The holder that a newcomer evicts, among the holders below the rank `bid`, at the newcomer's address or at any.
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
        // The newcomer's weight is added, so that a peer takes nothing from an equal holder.
        let would_hold = |owner: &PlaceOwner<I>| {
            let more = usize::from(owner.is_of_one_peer_with(newcomer)) * weight;
            self.held(owner) + more
        };
        let order = |(id, holder): &(&u64, &Holder<I>)| {
            (holder.rank(), Reverse(would_hold(&holder.owner)), **id)
        };
        below.min_by_key(order).map(|(id, _)| *id)
    }

    /// The evictable places of a peer.
    fn held(&self, owner: &PlaceOwner<I>) -> usize {
        match &owner.identity {
            Some(identity) => count(&self.by_identity, identity),
            None => count(&self.by_source, &owner.source),
        }
    }

    fn insert(&mut self, id: u64, holder: Holder<I>) {
        self.used += holder.weight;
        if holder.settled == 0 {
            let PlaceOwner { source, identity } = &holder.owner;
            *self.by_source.entry(*source).or_default() += holder.weight;
            if let Some(identity) = identity {
                *self.by_identity.entry(identity.clone()).or_default() += holder.weight;
            }
        }
        self.all.insert(id, holder);
    }

    fn remove(&mut self, id: u64) -> Option<Holder<I>> {
        let holder = self.all.remove(&id)?;
        self.used -= holder.weight;
        if holder.settled == 0 {
            let PlaceOwner { source, identity } = &holder.owner;
            subtract(&mut self.by_source, source, holder.weight);
            if let Some(identity) = identity {
                subtract(&mut self.by_identity, identity, holder.weight);
            }
        }
        Some(holder)
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Holder<I>)) {
        if let Some(mut holder) = self.remove(id) {
            change(&mut holder);
            self.insert(id, holder);
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
    fn is_of_one_peer_with(&self, other: &Self) -> bool {
        self.identity == other.identity && (self.identity.is_some() || self.source == other.source)
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
    /// Access to the place without holding it.
    pub const fn handle(&self) -> &PlaceHandle<I> {
        &self.handle
    }

    /// Waits until the place is taken away.
    pub fn wait_taken(&self) -> WaitForCancellationFutureOwned {
        self.taken.clone().cancelled_owned()
    }

    /// Ready when the place is taken away.
    pub fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let taken = || Box::pin(self.taken.clone().cancelled_owned());
        self.wait.get_or_insert_with(taken).as_mut().poll(cx)
    }

    /// Takes `weight` more, if necessary from other unsettled holders. [`Full`] if this holder itself would be evicted first.
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
    /// Sets the proved identity of the holder.
    pub fn prove(&self, identity: &I) {
        self.change(|holder| holder.owner.identity = Some(identity.clone()));
    }

    /// The proved identity of the holder, if any.
    pub fn identity(&self) -> Option<I> {
        let holders = self.places.lock();
        holders.all.get(&self.id)?.owner.identity.clone()
    }

    /// Protects the place from eviction until the return value is dropped.
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
