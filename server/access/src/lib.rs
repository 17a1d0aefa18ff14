//! Who a peer is and what it may do: identities, the policy file, tokens, and which identity a cluster belongs to.
//!
//! # Theory of operation
//!
//! ```text
//!  certificate, peer of a unix socket ─┐
//!                                      ├─▶ Identity ──▶ Authority: Policy, Ownership ──▶ Permissions, Admission, Denial
//!  token ──▶ token::Verifier ──────────┘                    ▲
//!                                            policy file ───┘
//! ```
//!
//! A connection proves an [`Identity`] by what its transport has verified ([`VerifiedCredential`]), a call by a token
//! ([`token::Verifier`]). [`Authority`] holds the [`Policy`] and the [`Ownership`] of clusters; it says what an identity may call
//! and see ([`Permissions`]) and admits sessions. [`method::need`] says what each method of the contract needs.
//!
//! **Invariant:** once there is a policy, what it does not grant is denied.
//! **Invariant:** a method that [`method::need`] does not know is denied to everyone but admins.
//! **Invariant:** a cluster's uid is served by identities that the policy names for it, or by the one that proved it first.
//! **Invariant:** a token counts only if its key's algorithm, signature, issuer, audience and times are right; which algorithm is
//! used follows from the key, never from the token.
//! **Invariant:** a [`Denial`] says nothing of other identities and clusters.
//!
//! Deliberately outside: sockets, handshakes, files, clocks (times are arguments, in seconds since 1970), and revocation of
//! certificates, which is the transport's.

mod authority;
mod denial;
mod identity;
pub mod method;
mod ownership;
mod pattern;
mod permissions;
mod policy;
mod refusal_log;
pub mod token;

pub use authority::{Admission, Authority};
pub use denial::Denial;
pub use identity::{Identity, IdentityPattern, VerifiedCredential};
pub use ownership::Ownership;
pub use pattern::Pattern;
pub use permissions::{GrantScope, NamedCluster, Permissions};
pub use policy::{Grant, Policy, PolicyError, Role};
pub use refusal_log::RefusalLog;
