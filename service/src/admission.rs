//! Admission: bounds on connections, calls, bytes, memory and time, fair between peers.
//!
//! # Theory of operation
//!
//! A [`Pool`] bounds a resource that peers share, such as connections, sessions or memory. When it is full, the owner that holds most gives
//! way. An [`EndSignal`] tells a holder to end. Computations wait in a [`FairQueue`], in which peers alternate. [`SessionPacer`] and
//! [`ConnectionPacer`] make a busy peer wait in it. [`deadline`] reads how long the caller of a call waits.
//!
//! **Invariant:** a peer that came first, or with many connections, does not keep other peers out.
//! **Invariant:** resources are released on drop.
//!
//! Deliberately outside: sockets, the identity of a peer, and the text of a refusal. The user of this crate supplies their types.

mod activity;
pub mod deadline;
mod end_signal;
mod fair_queue;
mod pacing;
mod pool;

pub use activity::{ActiveCall, Activity};
pub use end_signal::EndSignal;
pub use fair_queue::{FairQueue, PeerQueue, Permit};
pub use pacing::{ConnectionPacer, SessionPacer, paced};
pub use pool::{Owner, PeerIdentity, PeerNetwork, Pool, SettledSlot, Slot, SlotHandle, Yields};
