//! Admission: bounds on connections, calls, bytes, memory and time, fair between peers.
//!
//! # Theory of operation
//!
//! A [`Place`] is a resource that can be taken from its holder without harm, such as an idle connection. A newcomer displaces the oldest
//! place of the peer that holds most. A [`Share`] is held for long, such as a session. A newcomer takes a share only from an owner with at
//! least two more than its own. [`Memory`] does the same for bytes. An [`EndSignal`] tells a holder to end. Computations wait in a
//! [`FairQueue`], in which peers alternate. [`SessionPacer`] and [`ConnectionPacer`] make a busy peer wait in it. [`Received`] counts
//! the bytes of a call that is still arriving, and [`deadline`] reads how long its caller waits.
//!
//! **Invariant:** a peer that came first, or with many connections, does not keep other peers out.
//! **Invariant:** resources are released on drop.
//!
//! Deliberately outside: sockets, the identity of a peer, and the text of a refusal. The user of this crate supplies their types.

mod activity;
pub mod deadline;
mod end_signal;
mod fair_queue;
mod memory;
mod pacing;
mod places;
mod received;
mod shares;
mod under_way;
mod usage;

pub use activity::{ActiveCall, Activity};
pub use end_signal::EndSignal;
pub use fair_queue::{FairQueue, PeerQueue, Permit};
pub use memory::{Memory, MemoryShare};
pub use pacing::{ConnectionPacer, SessionPacer, paced};
pub use places::{
    Full, PeerIdentity, PeerNetwork, Place, PlaceHandle, PlaceRank, Places, SettledPlace,
};
pub use received::{BodyFault, BodyOwner, Received};
pub use shares::{Owner, Share, ShareId, Shares};
pub use under_way::UnderWay;
