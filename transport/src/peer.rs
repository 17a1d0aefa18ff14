//! Who is at the other end of a connection.

use std::{
    fmt,
    future::pending,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use tokio::sync::watch;

use crate::certificate::Certificate;

/// The other end of a connection that was accepted. Clones are of the same connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where it is.
    pub address: PeerAddress,
    /// What it has proved.
    pub credential: Credential,
    /// `None` where nothing can end what it has proved.
    standing: Option<watch::Receiver<Option<Ended>>>,
}

/// Where a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerAddress {
    /// At the other end of a TCP connection.
    Tcp(SocketAddr),
    /// On this machine, at the other end of a Unix socket.
    Unix,
    /// In this process.
    InProcess,
}

/// What a peer has proved before its first byte of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing: plain text, or TLS without a certificate where that is optional.
    None,
    /// A certificate of a CA that is trusted, neither expired nor revoked.
    Certificate(Arc<Certificate>),
    /// Which process it is, by the word of the kernel.
    UnixPeer {
        /// The effective user.
        uid: u32,
        /// The effective group.
        gid: u32,
        /// The process, where the system tells.
        pid: Option<i32>,
    },
}

/// Why a certificate that was accepted does not hold any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its time is over.
    Expired,
    /// It is in the revocation list.
    Revoked,
    /// No CA of the bundle has issued it.
    Untrusted,
}

// === impl Peer ===

impl Peer {
    /// Returns a peer whose credential holds for as long as its connection.
    #[must_use]
    pub const fn new(address: PeerAddress, credential: Credential) -> Self {
        Self {
            address,
            credential,
            standing: None,
        }
    }

    /// Returns a peer with a certificate, which holds until `standing` says why not.
    pub(crate) const fn with_certificate(
        address: PeerAddress,
        certificate: Arc<Certificate>,
        standing: watch::Receiver<Option<Ended>>,
    ) -> Self {
        Self {
            address,
            credential: Credential::Certificate(certificate),
            standing: Some(standing),
        }
    }

    /// Returns why the peer's certificate does not hold any more, if so.
    #[must_use]
    pub fn has_ended(&self) -> Option<Ended> {
        self.standing
            .as_ref()
            .and_then(|standing| *standing.borrow())
    }

    /// Waits until the peer's certificate does not hold any more; for ever, where it has none.
    pub async fn ended(self) -> Ended {
        let Some(mut standing) = self.standing else {
            return pending().await;
        };
        let ended = match standing.wait_for(Option::is_some).await {
            Ok(ended) => *ended,
            Err(_) => None,
        };
        match ended {
            Some(ended) => ended,
            // The task that watched it has ended with the process.
            None => pending().await,
        }
    }
}

// === impl PeerAddress ===

impl PeerAddress {
    /// Returns the machine of the peer; a peer on a Unix socket or in this process is on this machine.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        match self {
            Self::Tcp(address) => address.ip(),
            Self::Unix | Self::InProcess => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix => formatter.write_str("unix"),
            Self::InProcess => formatter.write_str("in-process"),
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
