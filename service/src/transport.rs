//! Connections between server, agent and command line: plain TCP, Unix sockets, and TLS whose files may change at any time.
//!
//! # Theory of operation
//!
//! ```text
//! server   ListenEndpoint ─▶ Listener ─▶ Socket ─▶ Acceptor ─▶ (Stream, Peer)
//! client   Endpoint ─▶ Connector ─▶ Stream
//! files    TlsArgs ─▶ read, parsed, watched by content ─▶ the TLS settings of the next handshake
//! ```
//! Both sides read certificate, key, CA bundle and revocation list from files and check the files every few seconds. A new content
//! applies from the next handshake on; open connections continue. Certificate and key, CAs, and revocation lists are three parts: a part
//! that is invalid or cannot be read is reported and counted, stays as it was, and keeps no other from its change.
//!
//! The certificate of a peer is checked again when the files change and when it expires. [`Peer::ended`] tells when the certificate is not
//! valid any more. The server then ends the calls of that peer.
//!
//! **Invariant:** plain text leaves this machine only with `--insecure`.
//! **Invariant:** TLS is version 1.3, with certificates checked on each handshake: no session is resumed.
//! **Invariant:** all input of a peer before the end of its handshake costs one task, which ends within the deadline.
//!
//! Deliberately outside: gRPC, and the permissions of a peer.

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
pub use connect::Connector;
pub use endpoint::{Endpoint, HostPort, ListenEndpoint};
pub use failure::HandshakeError;
pub use listen::{Listener, Socket};
pub use metrics::Metrics;
pub use peer::{Credential, Ended, Peer, PeerAddress};
pub use stream::ByteStream;
