//! The connection of a call, as far as the call may know it.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use http::Extensions;
use server_access::Identity;
use service::admission::{Activity, FairQueue, PeerNetwork, PeerQueue};
use service::transport::{Credential, PeerAddress};

use crate::{
    capacity::{EndSignal, Owner, Pool, SettledSlot, Slot, SlotHandle},
    error::Refusal,
};

/// One connection. Clones share it, and none keeps it open.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPeer {
    pub(crate) address: IpAddr,
    pub(crate) proved: service::transport::Peer,
    slot: Option<SlotHandle>,
    pub(crate) activity: Activity,
    /// Whether it is a page of the console from the server's own machine.
    pub(crate) is_console: bool,
}

impl ConnectionPeer {
    /// The peer of a new connection that holds `slot`.
    pub(crate) fn new(proved: service::transport::Peer, slot: &SlotHandle) -> Self {
        Self::at(proved.address.ip(), proved, Some(slot.clone()))
    }

    /// The peer of a connection of the admin port. The connection has no credential and no slot. A forwarded port (`kubectl port-forward`)
    /// connects from the loopback address of the server's pod.
    pub(crate) fn of_admin(address: SocketAddr) -> Self {
        let proved = service::transport::Peer::new(PeerAddress::Tcp(address), Credential::None);
        Self {
            is_console: address.ip().to_canonical().is_loopback(),
            ..Self::at(address.ip(), proved, None)
        }
    }

    fn at(address: IpAddr, proved: service::transport::Peer, slot: Option<SlotHandle>) -> Self {
        Self {
            address: address.to_canonical(),
            proved,
            slot,
            activity: Activity::start(),
            is_console: false,
        }
    }

    /// The peer of a call, unknown if the call has no connection of this server.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_else(|| {
            let proved = service::transport::Peer::new(PeerAddress::Unix, Credential::None);
            Self::at(Ipv4Addr::UNSPECIFIED.into(), proved, None)
        })
    }

    /// The network that the connection's slots count for.
    pub(crate) fn source(&self) -> PeerNetwork {
        self.address.into()
    }

    /// Takes a slot of this weight, if necessary from other holders.
    pub(crate) fn take(&self, pool: &Arc<Pool>, weight: usize) -> Result<Slot, Refusal> {
        let identity = self.identity().map(Owner::Proven);
        let owner = identity.unwrap_or_else(|| Owner::Unproven(self.source()));
        pool.take(owner, weight, EndSignal::default())
    }

    /// The identity that the peer has proved, by the connection or by a call.
    fn identity(&self) -> Option<Identity> {
        self.slot.as_ref().and_then(SlotHandle::identity)
    }

    pub(crate) fn prove(&self, identity: &Identity) {
        if let Some(slot) = &self.slot {
            slot.prove(identity);
        }
    }

    /// The queue of the peer's connections and sessions.
    pub(crate) fn queue(&self, queue: &FairQueue) -> PeerQueue {
        let identity = self.identity().unwrap_or(Identity::Anonymous);
        queue_of(queue, &identity, self.source())
    }

    /// Ends the connection.
    pub(crate) fn end(&self) {
        if let Some(slot) = &self.slot {
            slot.end();
        }
    }

    /// Keeps the connection from being evicted until the return value is dropped.
    pub(crate) fn settle(&self) -> Option<SettledSlot> {
        self.slot.as_ref().map(SlotHandle::settle)
    }
}

pub(crate) fn queue_of(queue: &FairQueue, identity: &Identity, source: PeerNetwork) -> PeerQueue {
    queue.peer((identity, source))
}

#[cfg(test)]
mod tests;
