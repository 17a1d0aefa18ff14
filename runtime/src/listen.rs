//! Sockets that a process listens on.

use std::{fmt, io, net::SocketAddr, str::FromStr};

use thiserror::Error;
use tokio::net::TcpListener;

/// Why a socket could not be opened.
#[derive(Debug, Error)]
#[error("{door} cannot listen on {address}")]
pub struct ListenError {
    /// What the socket is for.
    pub door: &'static str,
    /// Where it was to be.
    pub address: SocketAddr,
    /// What the system says.
    #[source]
    pub source: io::Error,
}

/// A socket that may be left out, as flags name it: `off`, `127.0.0.1:8080`, or `127.0.0.1:8080?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Not served.
    Off,
    /// Served here.
    At(SocketAddr),
    /// Served here, or at a free port where this one is taken: what is good to have must not keep a process from starting.
    Near(SocketAddr),
}

/// Why a text names no [`Door`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be an address and a port, with ? behind it where another port will do, or off")]
pub struct DoorError;

// === impl Door ===

impl Door {
    /// Opens the socket of the door, which `name` tells in logs. `None` where it is [`Off`](Self::Off).
    ///
    /// # Errors
    /// If the address is not ours, or is taken and must be this one.
    pub async fn open(self, name: &'static str) -> Result<Option<TcpListener>, ListenError> {
        match self {
            Self::Off => Ok(None),
            Self::At(address) => listen(name, address).await.map(Some),
            Self::Near(address) => match listen(name, address).await {
                Err(error) if error.source.kind() == io::ErrorKind::AddrInUse => {
                    tracing::warn!(door = name, %address, "the port is taken, another will do");
                    listen(name, SocketAddr::new(address.ip(), 0))
                        .await
                        .map(Some)
                }
                opened => opened.map(Some),
            },
        }
    }
}

impl FromStr for Door {
    type Err = DoorError;

    fn from_str(text: &str) -> Result<Self, DoorError> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let (address, door): (&str, fn(SocketAddr) -> Self) = match text.strip_suffix('?') {
            Some(address) => (address, Self::Near),
            None => (text, Self::At),
        };
        address.parse().map(door).map_err(|_| DoorError)
    }
}

impl fmt::Display for Door {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => formatter.write_str("off"),
            Self::At(address) => write!(formatter, "{address}"),
            Self::Near(address) => write!(formatter, "{address}?"),
        }
    }
}

/// Opens a socket for `door`, such as `grpc`. Port 0 takes a free one; the line logged names the one taken.
///
/// # Errors
/// If the address is taken or not ours.
pub async fn listen(door: &'static str, address: SocketAddr) -> Result<TcpListener, ListenError> {
    let failed = |source| ListenError {
        door,
        address,
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    tracing::info!(door, %address, "listening");
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_are_written_as_they_are_read() {
        for text in ["off", "127.0.0.1:8080", "[::1]:8080?"] {
            assert_eq!(
                text.parse::<Door>().map(|door| door.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "?", "8080", "localhost:8080", "127.0.0.1:8080??", "Off"] {
            assert_eq!(text.parse::<Door>(), Err(DoorError), "{text}");
        }
    }

    #[tokio::test]
    async fn taken_port_is_another_only_where_that_will_do() {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let first = Door::Near(free)
            .open("first")
            .await
            .expect("loopback has room");
        let first = first.expect("it is no closed door");
        let taken = first.local_addr().expect("it is bound");
        let other = Door::Near(taken)
            .open("second")
            .await
            .expect("another is free");
        let other = other
            .expect("it is no closed door")
            .local_addr()
            .expect("it is bound");
        assert_eq!(
            (other.ip(), other.port() != taken.port()),
            (taken.ip(), true)
        );
        let error = Door::At(taken)
            .open("third")
            .await
            .expect_err("it is taken");
        assert_eq!(error.to_string(), format!("third cannot listen on {taken}"));
    }
}
