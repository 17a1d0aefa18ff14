//! A bounded resource that peers share: connections, streams without a Hello, calls, received bytes, watches, sessions, or memory.
//!
//! While there is room, anyone gets a slot. In a full pool, the owner that would hold most gives way, and an owner without an identity before
//! one with an identity. A [`Yields`] selects the slot of that owner. A settled slot never gives way. So an owner that came first or with
//! many does not lock others out, and an idle holder does not lock out an active one, whose slot is settled soon.
//!
//! An evicted holder is told to end, and keeps its slot until then. A newcomer takes that room at once; a holder that grows can [wait](Slot::room)
//! for it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    task::{Context, Poll},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::admission::end_signal::EndSignal;

/// The bits of an IPv6 address that one peer can choose freely.
const IPV6_HOST_BITS: u32 = 64;

/// The network of a peer without an identity: an IPv4 address, or the /64 network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerNetwork(IpAddr);

/// The owner of a slot: an identity, or the network of an unauthenticated peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner<I> {
    /// An identity.
    Proven(I),
    /// The network of an unauthenticated peer.
    Unproven(PeerNetwork),
}

/// The slot of an owner that gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// For slots that cost little to lose. A new slot never gives way itself.
    Oldest,
    /// For slots that are held for long: the holders that are there continue. A new slot is refused if it would give way itself, so a client
    /// that comes back evicts nothing.
    Newest,
}

/// The identity of a peer.
pub trait PeerIdentity: Clone + Debug + Eq + Hash {}

impl<T: Clone + Debug + Eq + Hash> PeerIdentity for T {}

/// All slots of one kind. A slot has a weight, such as a number of bytes.
#[derive(Debug)]
pub struct Pool<I, R> {
    max: usize,
    yields: Yields,
    /// The reason for newcomers that are refused and holders that are evicted.
    refusal: R,
    holders: Mutex<Holders<I, R>>,
    /// Notified when weight is released.
    released: Notify,
}

/// A slot, released on drop.
#[derive(Debug)]
pub struct Slot<I: PeerIdentity, R: Clone> {
    handle: SlotHandle<I, R>,
    end: EndSignal<R>,
    is_short: bool,
}

/// Access to a slot without holding it. Calls after the release of the slot have no effect.
#[derive(Clone, Debug)]
pub struct SlotHandle<I, R> {
    pool: Arc<Pool<I, R>>,
    id: u64,
}

/// Protects a slot from eviction until the drop.
#[derive(Debug)]
pub struct SettledSlot<I: PeerIdentity, R: Clone>(SlotHandle<I, R>);

#[derive(Debug)]
struct Holders<I, R> {
    next: u64,
    /// In order of arrival.
    all: BTreeMap<u64, Holder<I, R>>,
    used: usize,
    /// The part of `used` whose holders have been told to end.
    leaving: usize,
}

#[derive(Debug)]
struct Holder<I, R> {
    owner: Owner<I>,
    weight: usize,
    settled: usize,
    is_leaving: bool,
    end: EndSignal<R>,
}

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

impl<I: PeerIdentity, R: Clone> Pool<I, R> {
    /// `max` is the maximum weight of all slots together.
    pub fn new(max: usize, yields: Yields, refusal: R) -> Arc<Self> {
        Arc::new(Self {
            max,
            yields,
            refusal,
            holders: Mutex::new(Holders {
                next: 0,
                all: BTreeMap::new(),
                used: 0,
                leaving: 0,
            }),
            released: Notify::new(),
        })
    }

    /// The reason for newcomers that are refused and holders that are evicted.
    pub fn refusal(&self) -> R {
        self.refusal.clone()
    }

    /// Takes a slot of this weight, if necessary from other holders, whose signals are sent. `end` is the signal of the new holder.
    ///
    /// # Errors
    /// If the pool is full, and no other holder gives way.
    pub fn take(
        self: &Arc<Self>,
        owner: Owner<I>,
        weight: usize,
        end: EndSignal<R>,
    ) -> Result<Slot<I, R>, R> {
        if weight > self.max {
            return Err(self.refusal());
        }
        let mut holders = self.holders.lock();
        let id = holders.next;
        holders.next += 1;
        holders.used += weight;
        let holder = Holder {
            owner,
            weight,
            settled: 0,
            is_leaving: false,
            end: end.clone(),
        };
        holders.all.insert(id, holder);
        let spared = (self.yields == Yields::Oldest).then_some(id);
        let taken = self.make_room(&mut holders, id, spared);
        if taken.is_err() {
            holders.remove(id);
        }
        drop(holders);
        taken.map(|()| Slot {
            handle: SlotHandle {
                pool: Arc::clone(self),
                id,
            },
            end,
            is_short: false,
        })
    }

    /// Evicts holders until the weight of those that remain fits. If the claimant itself would have to give way, nobody is evicted.
    fn make_room(
        &self,
        holders: &mut Holders<I, R>,
        claimant: u64,
        spared: Option<u64>,
    ) -> Result<(), R> {
        let mut evicted = Vec::new();
        while holders.used - holders.leaving > self.max {
            let victim = holders.victim(self.yields, claimant, spared);
            let Some(victim) = victim.filter(|id| *id != claimant) else {
                evicted.into_iter().for_each(|(id, _)| holders.keep(id));
                return Err(self.refusal());
            };
            evicted.extend(holders.dismiss(victim).map(|end| (victim, end)));
        }
        evicted
            .into_iter()
            .for_each(|(_, end)| end.send(self.refusal()));
        Ok(())
    }
}

impl<I: PeerIdentity, R: Clone> Holders<I, R> {
    /// The weight of each owner that can give way.
    fn by_owner(&self) -> HashMap<&Owner<I>, usize> {
        let mut by_owner = HashMap::new();
        for holder in self.all.values().filter(|it| it.is_evictable()) {
            *by_owner.entry(&holder.owner).or_default() += holder.weight;
        }
        by_owner
    }

    /// The holder that gives way to the claimant, perhaps the claimant itself. Among equal owners, the claimant's gives way.
    fn victim(&self, yields: Yields, claimant: u64, spared: Option<u64>) -> Option<u64> {
        let by_owner = self.by_owner();
        let own = self.all.get(&claimant).map(|holder| &holder.owner);
        let candidates = self
            .all
            .iter()
            .filter(|(id, holder)| holder.is_evictable() && Some(**id) != spared);
        let rank = |(id, holder): &(&u64, &Holder<I, R>)| {
            let owner = &holder.owner;
            let age = match yields {
                Yields::Oldest => u64::MAX - **id,
                Yields::Newest => **id,
            };
            let held = by_owner.get(owner).copied();
            let is_unproven = matches!(owner, Owner::Unproven(_));
            (is_unproven, held, Some(owner) == own, age)
        };
        candidates.max_by_key(rank).map(|(id, _)| *id)
    }

    /// Leaves the weight of a holder to others, and returns the signal that ends it.
    fn dismiss(&mut self, id: u64) -> Option<EndSignal<R>> {
        let holder = self.all.get_mut(&id).filter(|it| !it.is_leaving)?;
        holder.is_leaving = true;
        self.leaving += holder.weight;
        Some(holder.end.clone())
    }

    /// Undoes a dismissal.
    fn keep(&mut self, id: u64) {
        if let Some(holder) = self.all.get_mut(&id).filter(|it| it.is_leaving) {
            holder.is_leaving = false;
            self.leaving -= holder.weight;
        }
    }

    fn resize(&mut self, id: u64, weight: usize) {
        if let Some(holder) = self.all.get_mut(&id) {
            self.used = self.used - holder.weight + weight;
            if holder.is_leaving {
                self.leaving = self.leaving - holder.weight + weight;
            }
            holder.weight = weight;
        }
    }

    fn remove(&mut self, id: u64) {
        self.resize(id, 0);
        self.all.remove(&id);
    }
}

impl<I, R> Holder<I, R> {
    const fn is_evictable(&self) -> bool {
        self.settled == 0 && !self.is_leaving
    }
}

impl<I: PeerIdentity, R: Clone> Slot<I, R> {
    /// Access to the slot without holding it.
    pub const fn handle(&self) -> &SlotHandle<I, R> {
        &self.handle
    }

    /// The signal that ends the holder.
    pub const fn end(&self) -> &EndSignal<R> {
        &self.end
    }

    /// Ready when the holder must end.
    pub fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<R> {
        self.end.poll(cx)
    }

    /// Adds to the weight, if necessary from other holders.
    ///
    /// # Errors
    /// If this holder itself must give way, or no other holder does.
    pub fn grow(&mut self, more: usize) -> Result<(), R> {
        let SlotHandle { pool, id } = &self.handle;
        let weight = pool
            .holders
            .lock()
            .all
            .get(id)
            .map_or(0, |holder| holder.weight);
        self.set_weight(weight.saturating_add(more))
    }

    /// Sets the weight. If it grows and the pool is full, other holders give way, and this one is [short](Self::is_short) until they have
    /// left.
    ///
    /// # Errors
    /// If the weight has grown, and this holder itself must give way.
    pub fn set_weight(&mut self, weight: usize) -> Result<(), R> {
        let SlotHandle { pool, id } = &self.handle;
        let mut holders = pool.holders.lock();
        let before = holders.used;
        holders.resize(*id, weight);
        if holders.used <= before {
            drop(holders);
            pool.released.notify_waiters();
            return Ok(());
        }
        let is_leaving = holders.all.get(id).is_none_or(|holder| holder.is_leaving);
        if !is_leaving {
            pool.make_room(&mut holders, *id, None)?;
        }
        self.is_short = holders.used > pool.max;
        Ok(())
    }

    /// Whether the holder should not grow before there is [room](Self::room).
    pub const fn is_short(&self) -> bool {
        self.is_short
    }

    /// Waits until a holder that is short may grow or try again.
    pub async fn room(&mut self) {
        let pool = &self.handle.pool;
        loop {
            let released = pool.released.notified();
            let waits = {
                let holders = pool.holders.lock();
                holders.used > pool.max && holders.leaving > 0
            };
            if !waits {
                break;
            }
            released.await;
        }
        self.is_short = false;
    }
}

impl<I: PeerIdentity, R: Clone> Drop for Slot<I, R> {
    fn drop(&mut self) {
        let SlotHandle { pool, id } = &self.handle;
        pool.holders.lock().remove(*id);
        pool.released.notify_waiters();
    }
}

impl<I: PeerIdentity, R: Clone> SlotHandle<I, R> {
    /// Sets the proven identity of the holder.
    pub fn prove(&self, identity: &I) {
        self.change(|holder| holder.owner = Owner::Proven(identity.clone()));
    }

    /// The proven identity of the holder, if any.
    pub fn identity(&self) -> Option<I> {
        match &self.pool.holders.lock().all.get(&self.id)?.owner {
            Owner::Proven(identity) => Some(identity.clone()),
            Owner::Unproven(_) => None,
        }
    }

    /// Protects the slot from eviction until the return value is dropped.
    pub fn settle(&self) -> SettledSlot<I, R> {
        self.change(|holder| holder.settled += 1);
        SettledSlot(self.clone())
    }

    /// Leaves the room of the holder to its successor. The holder ends for a reason of its own.
    pub fn leave(&self) {
        drop(self.pool.holders.lock().dismiss(self.id));
    }

    /// Tells the holder to end, also if it is settled.
    pub fn end(&self) {
        let end = self.pool.holders.lock().dismiss(self.id);
        if let Some(end) = end {
            end.send(self.pool.refusal());
        }
    }

    fn change(&self, change: impl FnOnce(&mut Holder<I, R>)) {
        if let Some(holder) = self.pool.holders.lock().all.get_mut(&self.id) {
            change(holder);
        }
    }
}

impl<I: PeerIdentity, R: Clone> Drop for SettledSlot<I, R> {
    fn drop(&mut self) {
        self.0.change(|holder| holder.settled -= 1);
    }
}

#[cfg(test)]
mod tests;
