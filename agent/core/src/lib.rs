//! The half of the agent that executes, without sockets: each part is a value that tests can step by hand.
//!
//! ```text
//! lists, watch events ─▶ watch ─▶ view, outbox ─▶ frames to the server
//!                                   │ owners of pods, templates, own writes
//! frames of the server ─▶ link ─▶ guard ─▶ batches: slow start, steps ─▶ calls to the cluster
//!                                             outcomes ◀─ replies ◀──────────┘
//! ```
//! [`agent::Agent`] is all of it as one machine. It is told the time and never asks; its only randomness is a seed.
//!
//! Objects come in as messages of the contract. The adapter of a cluster knows how the cluster writes them.
//!
//! **Invariant:** five effects can be expressed, and no sixth: create, delete, adopt, release, write status.
//! **Invariant:** nothing starts for another session, another epoch, an unknown or deleted ReplicaSet, or a namespace off the allow
//! list, and nothing that the [`rules`] or the [`budget`] refuse; that is checked just before each operation.
//! **Invariant:** each operation has exactly one outcome, and a create whose effect is unknown is looked up by its name.
//! **Invariant:** where the versions of the cluster go back, the session ends with all that is known ([`history`]); no outcome that came
//! by it is reported.
//! **Invariant:** a new session begins when no call of an older one is in flight and no create of one can still take effect, with
//! lists that contain all own writes.
//!
//! Deliberately outside: every decision about which pods there should be, and all sockets, tasks and clocks.

pub mod agent;
pub mod api;
pub mod backoff;
mod batch;
mod batches;
pub mod budget;
pub mod cluster;
pub mod creates;
mod effects;
pub mod frame;
pub mod guard;
pub mod history;
pub mod lease;
pub mod link;
pub mod note;
mod operation;
mod outbox;
pub mod packed_pods;
mod pods;
pub mod recorder;
pub mod report;
pub mod resume;
pub mod rules;
pub mod shard;
pub mod take_over;
mod template;
#[cfg(test)]
mod tests;
pub mod token_bucket;
mod view;
pub mod watch;
