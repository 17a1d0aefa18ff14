//! The connection of a call, as far as the call may know it.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use admission::{Activity, FairQueue, Full, PeerNetwork, PeerQueue, PlaceRank};
use http::Extensions;
use server_access::Identity;
use transport::{Credential, PeerAddress};

use crate::capacity::{Place, PlaceHandle, Places, SettledPlace};

/// One connection. Clones share it, and none keeps it open.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPeer {
    pub(crate) address: IpAddr,
    pub(crate) proved: transport::Peer,
    place: Option<PlaceHandle>,
    pub(crate) activity: Activity,
    /// Whether it is a page of the console from the server's own machine.
    pub(crate) is_console: bool,
}

// === impl ConnectionPeer ===

impl ConnectionPeer {
    /// The peer of a new connection that holds `place`.
    pub(crate) fn new(proved: transport::Peer, place: &PlaceHandle) -> Self {
        Self::at(proved.address.ip(), proved, Some(place.clone()))
    }

    /// The peer of a connection of the admin port. The connection has no credential and no place. A forwarded port (`kubectl port-forward`)
    /// connects from the loopback address of the server's pod.
    pub(crate) fn of_admin(address: SocketAddr) -> Self {
        let proved = transport::Peer::new(PeerAddress::Tcp(address), Credential::None);
        Self {
            is_console: address.ip().to_canonical().is_loopback(),
            ..Self::at(address.ip(), proved, None)
        }
    }

    fn at(address: IpAddr, proved: transport::Peer, place: Option<PlaceHandle>) -> Self {
        Self {
            address: address.to_canonical(),
            proved,
            place,
            activity: Activity::start(),
            is_console: false,
        }
    }

    /// The peer of a call, unknown if the call has no connection of this server.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_else(|| {
            let proved = transport::Peer::new(PeerAddress::Unix, Credential::None);
            Self::at(Ipv4Addr::UNSPECIFIED.into(), proved, None)
        })
    }

    /// The network that the connection's places count for.
    pub(crate) fn source(&self) -> PeerNetwork {
        self.address.into()
    }

    /// Takes this many places at once, if necessary from holders that are not settled.
    pub(crate) fn take(&self, places: &Arc<Places>, weight: usize) -> Result<Place, Full> {
        let bid = PlaceRank::Settled;
        places.take_weight(self.source(), self.identity(), bid, weight)
    }

    /// The identity that the peer has proved, by the connection or by a call.
    fn identity(&self) -> Option<Identity> {
        self.place.as_ref().and_then(PlaceHandle::identity)
    }

    pub(crate) fn prove(&self, identity: &Identity) {
        if let Some(place) = &self.place {
            place.prove(identity);
        }
    }

    /// The queue of the peer's connections and sessions.
    pub(crate) fn queue(&self, queue: &FairQueue) -> PeerQueue {
        let identity = self.identity().unwrap_or(Identity::Anonymous);
        queue_of(queue, &identity, self.source())
    }

    /// Keeps the connection from being evicted until the return value is dropped.
    pub(crate) fn settle(&self) -> Option<SettledPlace> {
        self.place.as_ref().map(PlaceHandle::settle)
    }
}

/// The queue of a peer, by identity and address.
pub(crate) fn queue_of(queue: &FairQueue, identity: &Identity, source: PeerNetwork) -> PeerQueue {
    queue.peer((identity, source))
}

#[cfg(test)]
mod tests;
