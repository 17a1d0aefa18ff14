//! The connection that a call came by, as far as the call may know it.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use admission::{Activity, FairQueue, Full, PeerNetwork, PeerQueue, PlaceRank};
use http::Extensions;
use server_access::Identity;
use transport::{Credential, PeerAddress};

use crate::capacity::{Place, PlaceHandle, Places, SettledPlace};

/// One connection. Clones are the same; none keeps it open.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPeer {
    address: IpAddr,
    proved: transport::Peer,
    place: Option<PlaceHandle>,
    activity: Activity,
}

// === impl ConnectionPeer ===

impl ConnectionPeer {
    /// Returns the peer of a connection that has just been accepted and holds `place`.
    pub(crate) fn new(proved: transport::Peer, place: &PlaceHandle) -> Self {
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

    fn at(address: IpAddr, proved: transport::Peer, place: Option<PlaceHandle>) -> Self {
        Self {
            address: address.to_canonical(),
            proved,
            place,
            activity: Activity::start(),
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
    pub(crate) fn source(&self) -> PeerNetwork {
        self.address.into()
    }

    /// Takes a place, if need be from a holder of a rank below `bid`.
    pub(crate) fn take(&self, places: &Arc<Places>, bid: PlaceRank) -> Result<Place, Full> {
        self.take_weight(places, bid, 1)
    }

    /// Takes `weight` places at once.
    pub(crate) fn take_weight(
        &self,
        places: &Arc<Places>,
        bid: PlaceRank,
        weight: usize,
    ) -> Result<Place, Full> {
        places.take_weight(self.source(), self.identity(), bid, weight)
    }

    /// Returns who the peer has proved to be, by the connection or by a call on it.
    fn identity(&self) -> Option<Identity> {
        self.place.as_ref().and_then(PlaceHandle::identity)
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
    pub(crate) fn settle(&self) -> Option<SettledPlace> {
        self.place.as_ref().map(PlaceHandle::settle)
    }

    /// Returns the calls on the connection.
    pub(crate) const fn activity(&self) -> &Activity {
        &self.activity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_that_proves_an_identity_outranks_others() {
        let places = Places::new(1, 1);
        let place = places.take(
            PeerNetwork::from(IpAddr::from([127, 0, 0, 1])),
            PlaceRank::Settled,
        );
        let place = place.expect("free");
        let proved = transport::Peer::new(PeerAddress::Unix, Credential::None);
        let peer = ConnectionPeer::new(proved, place.handle());
        let taken = |bid| places.take(PeerNetwork::from(IpAddr::from([127, 0, 0, 2])), bid);
        peer.prove(&Identity::Uid(7));
        assert!(taken(PlaceRank::Proven).is_err());
        assert!(taken(PlaceRank::Settled).is_ok(), "it is not settled");
    }
}
