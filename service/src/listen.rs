//! Sockets that a process listens on.

use std::{fmt, io, net::SocketAddr, str::FromStr};

use thiserror::Error;
use tokio::net::TcpListener;

/// Why a socket could not be opened.
#[derive(Debug, Error)]
#[error("{listener} cannot listen on {address}; {flag} chooses another address")]
pub struct ListenError {
    /// The purpose of the socket.
    pub listener: &'static str,
    /// The flag that sets the address.
    pub flag: &'static str,
    /// The requested address.
    pub address: String,
    /// The error of the system.
    #[source]
    pub source: io::Error,
}

/// A socket that is optional, as flags specify it: `off`, `127.0.0.1:8080`, or `127.0.0.1:8080?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenAddr {
    /// No socket.
    Off,
    /// A socket at this address.
    At(SocketAddr),
    /// A socket at this address, or at a free port if the address is taken. An optional service must not prevent the start.
    AtOrFree(SocketAddr),
}

/// Why a text is no [`ListenAddr`].
const NO_ADDRESS: &str =
    "must be an address and a port, with a trailing ? to allow another port, or off";

/// Reads an IP address and a port; `localhost` is 127.0.0.1.
///
/// # Errors
/// The correct format.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:");
    let numeric = numeric.map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    let address = numeric.parse();
    address.map_err(|_| "must be an IP address and a port, such as 127.0.0.1:8080".to_owned())
}

impl ListenAddr {
    /// Opens the socket of a listener. Logs and errors use the name of `listener` and `flag`. `None` for [`Off`](Self::Off).
    ///
    /// # Errors
    /// If the address is not available, and another one is not allowed.
    pub async fn open(
        self,
        listener: &'static str,
        flag: &'static str,
    ) -> Result<Option<TcpListener>, ListenError> {
        let (address, may_differ) = match self {
            Self::Off => return Ok(None),
            Self::At(address) => (address, false),
            Self::AtOrFree(address) => (address, true),
        };
        let mut opened = listen(listener, flag, address).await;
        if let Err(error) = &opened
            && may_differ
            && error.source.kind() == io::ErrorKind::AddrInUse
        {
            tracing::warn!(listener, %address, "the port is taken, another will do");
            let free = SocketAddr::new(address.ip(), 0);
            opened = listen(listener, flag, free).await;
        }
        opened.map(Some)
    }
}

impl FromStr for ListenAddr {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let (address, kind): (&str, fn(SocketAddr) -> Self) = match text.strip_suffix('?') {
            Some(address) => (address, Self::AtOrFree),
            None => (text, Self::At),
        };
        socket_address(address).map(kind).map_err(|_| NO_ADDRESS)
    }
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => formatter.write_str("off"),
            Self::At(address) => write!(formatter, "{address}"),
            Self::AtOrFree(address) => write!(formatter, "{address}?"),
        }
    }
}

/// Opens a socket for `listener`, such as `grpc`, whose address `flag` sets. Port 0 picks a free port, which the log line states.
///
/// # Errors
/// If the address is not available.
pub async fn listen(
    listener: &'static str,
    flag: &'static str,
    address: SocketAddr,
) -> Result<TcpListener, ListenError> {
    let failed = |source| ListenError {
        listener,
        flag,
        address: address.to_string(),
        source,
    };
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    tracing::info!(listener, %address, "listening");
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_read() {
        for text in ["off", "127.0.0.1:8080", "[::1]:8080?"] {
            assert_eq!(
                text.parse::<ListenAddr>().map(|addr| addr.to_string()),
                Ok(text.to_owned())
            );
        }
        let local = "localhost:8080".parse::<ListenAddr>();
        assert_eq!(local, "127.0.0.1:8080".parse());
        for text in ["", "?", "8080", "local:8080", "127.0.0.1:8080??", "Off"] {
            assert_eq!(text.parse::<ListenAddr>(), Err(NO_ADDRESS), "{text}");
        }
    }

    #[tokio::test]
    async fn taken_port_is_another_only_where_that_will_do() {
        let open = async |address: ListenAddr| {
            let opened = address.open("admin", "--admin").await?;
            Ok::<_, ListenError>(opened.expect("it is not off"))
        };
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let first = open(ListenAddr::AtOrFree(free)).await;
        let first = first.expect("loopback has room");
        let taken = first.local_addr().expect("it is bound");
        let other = open(ListenAddr::AtOrFree(taken)).await;
        let other = other.expect("another is free");
        let other = other.local_addr().expect("it is bound");
        assert_eq!(other.ip(), taken.ip());
        assert_ne!(other.port(), taken.port());
        let error = open(ListenAddr::At(taken)).await.expect_err("it is taken");
        let text = format!("admin cannot listen on {taken}; --admin chooses another address");
        assert_eq!(error.to_string(), text);
    }
}
