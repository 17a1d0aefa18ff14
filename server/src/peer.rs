//! The connection that a call came by, as far as the call may know it.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::Extensions;
use server_access::Identity;
use tokio::time::Instant;
use transport::{Credential, PeerAddress};

use crate::{
    fair_queue::{FairQueue, PeerQueue},
    places::{Full, Handle, Place, Places, Rank, Settled, Source},
};

/// One connection. Clones are the same; none keeps it open.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    address: IpAddr,
    proved: transport::Peer,
    place: Option<Handle>,
    activity: Arc<Mutex<Activity>>,
}

/// A call that is under way on a connection.
#[derive(Debug)]
pub(crate) struct ActiveCall(Arc<Mutex<Activity>>);

#[derive(Debug)]
struct Activity {
    calls: usize,
    begun: bool,
    idle_since: Instant,
}

// === impl Peer ===

impl Peer {
    /// Returns the peer of a connection that has just been accepted and holds `place`.
    pub(crate) fn new(proved: transport::Peer, place: &Handle) -> Self {
        Self::at(proved.address.ip(), proved, Some(place.clone()))
    }

    /// Returns the peer of a connection of the admin port, which proves nothing by itself and holds no place.
    pub(crate) fn of_admin(address: SocketAddr) -> Self {
        let proved = transport::Peer::new(PeerAddress::Tcp(address), Credential::None);
        Self::at(address.ip(), proved, None)
    }

    /// Returns the peer of a call that came by no connection of this server.
    fn unknown() -> Self {
        let proved = transport::Peer::new(PeerAddress::Unix, Credential::None);
        Self::at(Ipv4Addr::UNSPECIFIED.into(), proved, None)
    }

    fn at(address: IpAddr, proved: transport::Peer, place: Option<Handle>) -> Self {
        let activity = Activity {
            calls: 0,
            begun: false,
            idle_since: Instant::now(),
        };
        Self {
            address: address.to_canonical(),
            proved,
            place,
            activity: Arc::new(Mutex::new(activity)),
        }
    }

    /// Returns the connection that a call came by.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let peer = extensions.get::<Self>().cloned();
        peer.unwrap_or_else(Self::unknown)
    }

    /// Returns the machine at the other end.
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns what the peer has proved by the connection itself.
    pub(crate) const fn proved(&self) -> &transport::Peer {
        &self.proved
    }

    /// Returns whom the connection's places are counted for.
    pub(crate) fn source(&self) -> Source {
        self.address.into()
    }

    /// Takes a place, if need be from a holder of a rank below `bid`.
    pub(crate) fn take(&self, places: &Arc<Places>, bid: Rank) -> Result<Place, Full> {
        self.take_weight(places, bid, 1)
    }

    /// Takes `weight` places at once.
    pub(crate) fn take_weight(
        &self,
        places: &Arc<Places>,
        bid: Rank,
        weight: usize,
    ) -> Result<Place, Full> {
        places.take_weight(self.source(), self.identity(), bid, weight)
    }

    /// Returns who the peer has proved to be, by the connection or by a call on it.
    fn identity(&self) -> Option<Identity> {
        self.place.as_ref().and_then(Handle::identity)
    }

    /// Says who the peer has proved to be.
    pub(crate) fn prove(&self, identity: &Identity) {
        if let Some(place) = &self.place {
            place.prove(identity);
        }
    }

    /// Returns the peer's part of a queue: that of an identity at an address.
    pub(crate) fn queue(&self, queue: &FairQueue) -> PeerQueue {
        queue.peer((self.identity(), self.source()))
    }

    /// Keeps the connection from giving way to another for as long as what is returned lives.
    pub(crate) fn settle(&self) -> Option<Settled> {
        self.place.as_ref().map(Handle::settle)
    }

    /// Counts a call until what is returned is dropped.
    pub(crate) fn begin_call(&self) -> ActiveCall {
        let mut activity = lock(&self.activity);
        activity.calls += 1;
        activity.begun = true;
        drop(activity);
        ActiveCall(Arc::clone(&self.activity))
    }

    /// Returns when the connection will have been idle too long, if nothing comes: `first_call` after it was accepted, `idle` after
    /// its last call. `None` during a call.
    pub(crate) fn idle_until(&self, first_call: Duration, idle: Duration) -> Option<Instant> {
        let activity = lock(&self.activity);
        let patience = if activity.begun { idle } else { first_call };
        (activity.calls == 0).then(|| activity.idle_since + patience)
    }
}

// === impl ActiveCall ===

impl Drop for ActiveCall {
    fn drop(&mut self) {
        let mut activity = lock(&self.0);
        activity.calls -= 1;
        activity.idle_since = Instant::now();
    }
}

fn lock(activity: &Mutex<Activity>) -> MutexGuard<'_, Activity> {
    activity.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(5);
    const IDLE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn connection_is_idle_from_its_last_call_on_and_until_then_waits_for_its_first() {
        let peer = Peer::unknown();
        let accepted = Instant::now();
        assert_eq!(peer.idle_until(FIRST, IDLE), Some(accepted + FIRST));
        let calls = (peer.begin_call(), peer.clone().begin_call());
        assert_eq!(peer.idle_until(FIRST, IDLE), None);
        drop(calls.0);
        assert_eq!(peer.idle_until(FIRST, IDLE), None);
        tokio::time::advance(IDLE * 2).await;
        drop(calls.1);
        assert_eq!(peer.idle_until(FIRST, IDLE), Some(accepted + IDLE * 3));
    }

    #[test]
    fn peer_that_proves_an_identity_outranks_others() {
        let places = Places::new(1, 1);
        let place = places.take(Source::from(IpAddr::from([127, 0, 0, 1])), Rank::Settled);
        let place = place.expect("free");
        let proved = transport::Peer::new(PeerAddress::Unix, Credential::None);
        let peer = Peer::new(proved, place.handle());
        let taken = |bid| places.take(Source::from(IpAddr::from([127, 0, 0, 2])), bid);
        peer.prove(&Identity::Uid(7));
        assert!(taken(Rank::Proven).is_err());
        assert!(taken(Rank::Settled).is_ok(), "it is not settled");
    }
}
