//! The peer of a connection.

use std::{
    fmt,
    future::pending,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use tokio::sync::watch;

use crate::transport::certificate::Certificate;

/// The peer of an accepted connection. Clones are of the same connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The address of the peer.
    pub address: PeerAddress,
    /// The proved credential.
    pub credential: Credential,
    /// Has the reason once the credential is not valid any more; `None` if nothing can invalidate it.
    pub(crate) standing: Option<watch::Receiver<Option<Ended>>>,
}

/// The address of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerAddress {
    /// At the other end of a TCP connection.
    Tcp(SocketAddr),
    /// On this machine, at the other end of a Unix socket.
    Unix,
}

/// The credential that a peer has proved before its first byte of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing: plain text, or TLS without a certificate where that is optional.
    None,
    /// A certificate of a trusted CA, neither expired nor revoked.
    Certificate(Arc<Certificate>),
    /// The process, as the kernel reports it.
    UnixPeer {
        /// The effective user.
        uid: u32,
    },
}

/// Why an accepted certificate is not valid any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The certificate has expired.
    Expired,
    /// A revocation list has the certificate.
    Revoked,
    /// No CA of the bundle has issued the certificate.
    Untrusted,
}

impl Peer {
    /// A peer whose credential is valid for the whole connection.
    pub const fn new(address: PeerAddress, credential: Credential) -> Self {
        Self {
            address,
            credential,
            standing: None,
        }
    }

    /// The reason if the peer's certificate is not valid any more.
    pub fn has_ended(&self) -> Option<Ended> {
        let standing = self.standing.as_ref();
        standing.and_then(|standing| *standing.borrow())
    }

    /// Waits until the peer's certificate is not valid any more; forever if there is none.
    pub async fn ended(self) -> Ended {
        if let Some(mut standing) = self.standing
            && let Ok(ended) = standing.wait_for(Option::is_some).await
            && let Some(ended) = *ended
        {
            return ended;
        }
        // Nothing can invalidate the credential, or the task that watched the certificate has ended with the process.
        pending().await
    }
}

impl PeerAddress {
    /// The machine of the peer; the loopback address for a Unix socket.
    pub const fn ip(&self) -> IpAddr {
        match self {
            Self::Tcp(address) => address.ip(),
            Self::Unix => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix => formatter.write_str("unix"),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Expired => "has expired",
            Self::Revoked => "was revoked",
            Self::Untrusted => "is of a CA that is not trusted any more",
        })
    }
}
