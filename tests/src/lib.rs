//! The harness that the tiers share.
//!
//! # Theory of operation
//! Each tier is a test binary of this package, and each asks one kind of question:
//!
//! | tier | asks |
//! | --- | --- |
//! | `golden` | does the core decide as recorded of upstream, and as before? |
//! | `sim` | do both halves together keep their promises, whatever dies, breaks or comes late? |
//! | `grpc`, `process` | do the shells do what the machines say, over real sockets and in real processes? |
//! | `kube` | do they do so against a real API server? |
//! | `journey` | do the manifests do so on nodes of a whole cluster, from the first pod to the last? |
//! | `hostile` | do harmful peers harm only themselves? |
//! | `fuzz` | is every promise about an input kept, whatever the bytes are? |
//! | `tidy` | are the architecture, the documents and the style as they should be? |
//!
//! # The simulation
//! A [`world::World`] has one to three servers, each with the real [`server_session::Session`] behind the real
//! [`server_session::SessionRegistry`], and the model [`agent_fake::Cluster`]. One or more processes contend for the real
//! [`agent_core::lease::Lease`], each with the real [`agent_core::agent::Agent`]. Each process has a separate clock. They
//! exchange frames of the contract, without sockets and real clocks. Several worlds may share their servers: [`clusters`]. One [`schedule::Schedule`] orders the events, and one [`rng::Rng`] draws every delay, fault and
//! death from the seed.
//!
//! ```text
//! seed ─▶ chaos, workload's plan
//!            │
//!            ▼      acts of users, deaths, cuts
//!   schedule ──▶ step ──▶ one happening: a frame, a call, an answer, a watch event arrives
//!                 │       and all that both halves want then
//!                 ▼
//!               facts ──▶ invariants, after every step ──▶ rest (i8), when the plan is done and the world healed
//! ```
//!
//! Two models share no code with the machines, and know only messages of the contract and calls. [`ledger::Ledger`] traces each
//! effect to its decision. [`oracle::Oracle`] reads the frames of a session, and judges each outgoing batch.
//! [`encounters::Encounters`] counts encounters with the protocol (drains, rejections, silent links), so that a drawn fault
//! without an effect is noticed.
//!
//! **Invariant:** same seed, same world, same trace. A failure prints its seed and the command that repeats it.
//!
//! **Invariant:** every checker objects to a world that is broken on purpose ([`mutants::Mutant`]).
//!
//! The Leases of agents with shards are in [`layouts`]. Faults that last for a while are in [`troubled`], and a session in shadow mode
//! beside a world in [`shadow`].
//!
//! To extend the simulation, add a fault as a field of [`chaos::Chaos`] and a function in `world/faults.rs`. Add a story as a
//! [`workloads::Workload`]. Add a promise as a function in [`invariants`] or [`rest`], with a mutant that it catches.
//!
//! In [`crashes`], server and agent die at each boundary of an operation in a quiet world, with one run each. A boundary is the
//! moment at which a frame, call or list is sent, received or handled. `world/processes.rs` passes a boundary.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Defines an enum of plain variants, and lists of the variants in their order.
macro_rules! listed {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$list_meta:meta])* $list:ident: [$($(#[$variant_meta:meta])* $variant:ident,)*])+
        }
    ) => {
        $(#[$meta])*
        pub enum $name { $($($(#[$variant_meta])* $variant,)*)+ }

        impl $name {
            $($(#[$list_meta])* pub const $list: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];)+
        }
    };
}

pub mod actors;
pub mod admin;
pub mod bad_fields;
pub mod binaries;
pub mod body;
pub mod builders;
pub mod chaos;
pub mod clusters;
pub mod crashes;
pub mod depth;
pub mod encounters;
pub mod facts;
pub mod failure;
pub mod fenced;
pub mod golden;
pub mod http2;
pub mod invariants;
pub mod issuer;
pub mod layouts;
mod lease_api;
pub mod ledger;
pub mod limits;
pub mod load;
pub mod malicious_server;
pub mod mutants;
pub mod objects;
pub mod oracle;
pub mod other_controller;
pub mod paid;
pub mod pki;
pub mod protobuf;
pub mod real;
pub mod recordings;
pub mod rest;
pub mod rng;
pub mod running;
pub mod schedule;
pub mod sessions;
pub mod shadow;
pub mod simulation;
pub mod table;
pub mod template;
pub mod tools;
pub mod trace;
pub mod troubled;
pub mod usage;
pub mod workloads;
pub mod world;

/// Locks a mutex, also one that a failed test has held.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
