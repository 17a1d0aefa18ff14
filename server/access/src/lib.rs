//! The identity of a peer, and its permissions: identities, the policy file, and tokens.
//!
//! # Theory of operation
//!
//! ```text
//!  certificate, peer of a unix socket ─┐
//!                                      ├─▶ Identity ──▶ Authority: Policy ──▶ Permissions, Admission, Denial
//!  token ──▶ token::Verifier ──────────┘                    ▲
//!                                            policy file ───┘
//! ```
//!
//! A connection proves an [`Identity`] by a credential that its transport has verified, a call by a token
//! ([`token::Verifier`]). [`Authority`] holds the [`Policy`]. It decides what an identity may call and see ([`Permissions`]), and
//! admits sessions. [`method::METHODS`] has the need of each method.
//!
//! **Invariant:** once there is a policy, everything that it does not grant is denied.
//! **Invariant:** a method that [`method::find`] does not know is denied to everyone but admins.
//! **Invariant:** a cluster whose UID the policy names is served only by the identities that it names for that.
//! **Invariant:** a token is valid only if its key's algorithm, signature, issuer, audience and times are right. The key determines the
//! algorithm, never the token.
//! **Invariant:** a [`Denial`] says nothing about other identities and clusters.
//!
//! Deliberately outside: sockets, handshakes, files, clocks (times are arguments, in seconds since 1970), and the revocation of
//! certificates, which is a task of the transport.

mod authority;
mod denial;
mod identity;
pub mod method;
mod pattern;
mod permissions;
mod policy;
pub mod token;

pub use authority::{Admission, Authority};
pub use denial::Denial;
pub use identity::Identity;
pub use permissions::{NamedCluster, Permissions};
pub use policy::{Policy, PolicyError};
