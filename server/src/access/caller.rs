//! The caller of a method.

use std::sync::{Arc, PoisonError, RwLock};

use http::Extensions;
use server_access::{Identity, NamedCluster, Permissions, VerifiedCredential};

use crate::capacity::Owner;

/// The caller of a method, with its permissions. Clones share the permissions, so a new policy applies to all of them.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    identity: Identity,
    /// The IP address, for logs.
    address: String,
    permissions: Arc<RwLock<Permissions>>,
    /// The expiry of the caller's token, in seconds since 1970.
    expires: Option<i64>,
}

/// The address and the credential of a call's connection.
pub(super) struct CallPeer {
    pub(super) address: String,
    pub(super) credential: VerifiedCredential,
}

// === impl Caller ===

impl Caller {
    pub(crate) fn new(
        identity: Identity,
        address: String,
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
    pub(crate) fn nobody(address: String) -> Self {
        Self::new(Identity::Anonymous, address, Permissions::default(), None)
    }

    #[cfg(test)]
    pub(crate) fn unrestricted() -> Self {
        let permissions = Permissions::unrestricted();
        Self::new(Identity::Anonymous, String::new(), permissions, None)
    }

    /// The caller that [`super::Authorize`] has put into the request. Without one, a caller without permissions.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let caller = extensions.get::<Self>().cloned();
        caller.unwrap_or_else(|| Self::nobody(String::new()))
    }

    /// Whether the caller may see the cluster of a session.
    pub(crate) fn may_view(&self, session: &server_session::SessionIdentity) -> bool {
        let permissions = self
            .permissions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        permissions.may_view(NamedCluster {
            uid: &session.cluster_uid,
            name: &session.cluster_name,
            shard: &session.shard,
        })
    }

    /// The owner of the shares that the caller takes.
    pub(crate) fn owner(&self) -> Owner {
        match &self.identity {
            Identity::Anonymous => Owner::Unproven(self.address.clone()),
            identity @ (Identity::Uri(_)
            | Identity::Dns(_)
            | Identity::Subject(_)
            | Identity::Uid(_)) => Owner::Proven(identity.clone()),
        }
    }

    pub(super) fn set_permissions(&self, permissions: Permissions) {
        *self
            .permissions
            .write()
            .unwrap_or_else(PoisonError::into_inner) = permissions;
    }

    pub(super) fn is_proven(&self) -> bool {
        self.identity != Identity::Anonymous
    }

    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(super) const fn expires(&self) -> Option<i64> {
        self.expires
    }

    /// Takes over the expiry of a later credential of the same identity.
    pub(super) const fn renew(&mut self, later: &Self) {
        self.expires = later.expires;
    }
}

// === impl CallPeer ===

impl CallPeer {
    pub(super) fn of(extensions: &Extensions) -> Self {
        let connection = crate::peer::ConnectionPeer::of(extensions);
        Self {
            // The port is left out, because it differs between connections.
            address: connection.address().to_string(),
            credential: credential(&connection.proved().credential),
        }
    }
}

/// The identity that a connection has proved, if any.
pub(crate) fn proven(proved: &transport::Credential) -> Option<Identity> {
    let identity = Identity::of(&credential(proved)).ok();
    identity.filter(|identity| *identity != Identity::Anonymous)
}

fn credential(proved: &transport::Credential) -> VerifiedCredential {
    match proved {
        transport::Credential::None => VerifiedCredential::None,
        transport::Credential::Certificate(certificate) => VerifiedCredential::Certificate {
            uris: certificate.uri_names.clone(),
            dns_names: certificate.dns_names.clone(),
        },
        transport::Credential::UnixPeer { uid, .. } => VerifiedCredential::UnixUid(*uid),
    }
}
