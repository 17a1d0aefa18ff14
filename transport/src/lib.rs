//! How server, agent and command line reach each other: plain TCP, Unix sockets, memory of one process, and TLS whose files may change at
//! any time.
//!
//! # Theory of operation
//!
//! ```text
//! server   ListenEndpoint ─▶ Listener ─▶ Socket ─▶ Acceptor ─▶ (Stream, Peer)
//! client   Endpoint ─▶ Connector ─▶ Stream
//! files    TlsArgs ─▶ read, parsed, watched by content ─▶ the TLS settings of the next handshake
//! ```
//! Both sides read certificate, key, CA bundle and revocation list from files, look at these again every few seconds, and use what they
//! hold for the next handshake; open connections go on. What does not parse, or does not belong together, is reported and
//! counted, and the settings stay as they were.
//!
//! A peer with a certificate has it on probation: it is checked again whenever the files change and when it expires, and
//! [`Peer::ended`] tells when it does not hold any more. The server then ends the calls of that peer.
//!
//! **Invariant:** plain text leaves this machine only if `--insecure` says so.
//! **Invariant:** TLS is version 1.3, with certificates checked on each handshake: no session is resumed.
//! **Invariant:** whatever a peer sends before its handshake is over costs one task and ends within the deadline.
//!
//! Deliberately outside: gRPC, and what a peer may do.

mod accept;
mod args;
mod certificate;
mod connect;
mod credentials;
mod endpoint;
mod failure;
mod files;
mod listen;
mod metrics;
mod peer;
mod reload;
mod stream;

pub use accept::Acceptor;
pub use args::{ClientArgs, ClientAuth, ServerArgs, TlsArgs};
pub use certificate::Certificate;
pub use connect::{ConnectError, Connector};
pub use endpoint::{Endpoint, EndpointError, HostPort, ListenEndpoint};
pub use failure::{EXPOSED, HandshakeError, LoadError, SetupError};
pub use listen::{BindError, Listener, Socket};
pub use metrics::Metrics;
pub use peer::{Credential, Ended, Peer, PeerAddress};
pub use stream::ByteStream;
