//! Admission: bounds on connections, calls, bytes, memory and time, fair between peers.
//!
//! # Theory of operation
//!
//! What may be taken from a holder without harm, such as an idle connection, is held as a [`Place`]: a newcomer displaces the oldest of the
//! peer that holds most. What a holder keeps for long, such as a session, is held as a [`Share`]: it is taken only from an owner with at
//! least two more than the newcomer. [`Memory`] does the same for bytes. An [`EndSignal`] tells a holder to end. What is computed
//! waits in a [`FairQueue`], in which peers alternate, and [`SessionPacer`] and [`ConnectionPacer`] make a busy peer wait there.
//! [`Received`] counts the bytes of a call that has not arrived, and [`deadline`] reads how long its caller waits.
//!
//! **Invariant:** a peer that came first, or with many, does not keep others out.
//! **Invariant:** what is held is given back when its value is dropped.
//!
//! Deliberately outside: sockets, who a peer is, and the words of a refusal. They are types of the owner.

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

pub use activity::{ActiveCall, Activity};
pub use end_signal::EndSignal;
pub use fair_queue::{FairQueue, PeerQueue, Permit};
pub use memory::{Memory, MemoryShare};
pub use pacing::{ConnectionPacer, SessionPacer, paced};
pub use places::{
    Full, PeerIdentity, PeerNetwork, Place, PlaceHandle, PlaceRank, Places, SettledPlace,
};
pub use received::{BodyFault, BodyOwner, Message, Received};
pub use shares::{Owner, Share, Shares};
pub use under_way::UnderWay;
