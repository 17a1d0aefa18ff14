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
//! | `hostile` | does whoever wants to do harm harm nobody else? |
//! | `fuzz` | is every promise about an input kept, whatever the bytes are? |
//! | `tidy` | are the architecture, the documents and the style as they should be? |
//!
//! # The simulation
//! A [`world::World`] holds one to three servers, each with the real [`server_session::Session`] behind the real
//! [`server_session::SessionRegistry`], one or more processes of the real [`agent_core::agent::Agent`] or of [`actors::foreign::ForeignAgent`], which contend for the real
//! [`agent_core::lease::Lease`], and the model [`agent_fake::Cluster`]. Each process has a clock of its own. They talk in frames of the contract; only sockets and clocks are
//! missing. Several worlds may share their servers: [`clusters`]. One [`schedule::Schedule`] says what happens next, one [`rng::Rng`] draws every delay, fault and death
//! from the seed.
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
//! Beside the machines stand two accounts that share no code with them, and know only messages of the contract and calls: [`ledger::Ledger`] traces each effect to its decision,
//! [`oracle::Oracle`] reads the frames that a session is given, by which each batch is judged as it leaves. What of the protocol was
//! met on the way (drains, rejections, silent links) is counted in [`encounters::Encounters`], so that a fault that is drawn and never
//! happens is seen.
//!
//! **Invariant:** same seed, same world, same trace. A failure prints its seed and the command that repeats it.
//!
//! **Invariant:** every checker is seen to object to a world that is broken on purpose ([`mutants::Mutant`]).
//!
//! Beside the drawn worlds stand small ones of which every state is visited: [`explore`]. In [`sharded`], processes with several Leases each
//! share the cluster of a world out. What is wrong for a while has worlds of its own, [`troubled`], and another controller beside a shadow: [`shadowed`].
//!
//! To grow it: a new fault is a field of [`chaos::Chaos`] and a function in `world/faults.rs`; a new story is a [`workloads::Workload`]; a new
//! promise is a function in [`invariants`] or [`rest`] and a mutant that it catches.
//!
//! Beside the drawn deaths stand enumerated ones: [`crashes`] lets each half die at each boundary of an operation that a quiet world
//! passes (a frame, call or list is sent, received, handled), one run each. A boundary is passed in `world/strikes.rs`.

pub mod actors;
pub mod admin;
pub mod bad_fields;
pub mod binaries;
pub mod body;
pub mod builders;
pub mod chaos;
pub mod clusters;
pub mod collector;
pub mod crashes;
pub mod depth;
pub mod encounters;
pub mod explore;
pub mod facts;
pub mod fenced;
pub mod golden;
pub mod invariants;
pub mod issuer;
mod lease_api;
pub mod ledger;
pub mod limits;
pub mod load;
pub mod malicious_server;
pub mod mutants;
pub mod objects;
pub mod oracle;
pub mod other_controller;
pub mod pki;
pub mod real;
pub mod recordings;
pub mod rest;
pub mod rng;
pub mod running;
pub mod schedule;
pub mod shadowed;
pub mod sharded;
pub mod simulation;
pub mod table;
pub mod template;
pub mod tools;
pub mod trace;
pub mod troubled;
pub mod workloads;
pub mod world;
