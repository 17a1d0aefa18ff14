//! Sockets that a process listens on.

use std::{io, net::SocketAddr};

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
