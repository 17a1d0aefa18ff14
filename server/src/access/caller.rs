//! The caller of a method.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use http::Extensions;
use parking_lot::RwLock;
use server_access::{Denial, Identity, NamedCluster, Permissions};
use service::transport::Credential;

use crate::capacity::Owner;

/// The caller of a method, with its permissions. Clones share the permissions, so a new policy applies to all of them.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) identity: Identity,
    /// The address, without the port, which differs between connections.
    pub(crate) address: IpAddr,
    permissions: Arc<RwLock<Permissions>>,
    /// The expiry of the caller's token, in seconds since 1970.
    pub(super) expires: Option<i64>,
}

impl Caller {
    pub(crate) fn new(
        identity: Identity,
        address: IpAddr,
        permissions: Permissions,
        expires: Option<i64>,
    ) -> Self {
        Self {
            identity,
            address,
            permissions: Arc::new(RwLock::new(permissions)),
            expires,
        }
    }

    /// A caller without identity and permissions.
    pub(crate) fn nobody(address: IpAddr) -> Self {
        Self::new(Identity::Anonymous, address, Permissions::default(), None)
    }

    /// The caller that [`super::Access::guard`] has put into the request. Without one, a caller without permissions.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let caller = extensions.get::<Self>().cloned();
        caller.unwrap_or_else(|| Self::nobody(Ipv4Addr::UNSPECIFIED.into()))
    }

    pub(crate) fn may_view(&self, session: &server_session::SessionIdentity) -> bool {
        self.permissions.read().may_view(NamedCluster {
            uid: &session.cluster_uid,
            name: &session.cluster_name,
            shard: &session.shard,
        })
    }

    /// The owner of the shares that the caller takes.
    pub(crate) fn owner(&self) -> Owner {
        if self.is_proven() {
            Owner::Proven(self.identity.clone())
        } else {
            Owner::Unproven(self.address.into())
        }
    }

    /// The identity, or the address of a caller without one, for logs.
    pub(crate) fn peer(&self) -> String {
        if self.is_proven() {
            self.identity.to_string()
        } else {
            self.address.to_string()
        }
    }

    pub(super) fn set_permissions(&self, permissions: Permissions) {
        *self.permissions.write() = permissions;
    }

    pub(super) fn is_proven(&self) -> bool {
        self.identity.is_proven()
    }
}

pub(super) fn identity(credential: &Credential) -> Result<Identity, Denial> {
    match credential {
        Credential::None => Ok(Identity::Anonymous),
        Credential::Certificate(it) => Identity::of_certificate(&it.uri_names, &it.dns_names),
        Credential::UnixPeer { uid, .. } => Ok(Identity::Uid(*uid)),
    }
}

/// The identity that a connection has proved, if any.
pub(crate) fn proven(credential: &Credential) -> Option<Identity> {
    let identity = identity(credential).ok();
    identity.filter(Identity::is_proven)
}
