//! The half of the agent that executes, without sockets: each part is a value that tests can step by hand.
//!
//! ```text
//! lists, watch events ─▶ watch ─▶ view, outbox ─▶ frames to the server
//!                                   │ owners of pods, templates, own writes
//! frames of the server ─▶ link ─▶ execute: slow start, guard, rules, budget ─▶ calls to the cluster
//!                                   outcomes ◀─ replies ◀────────────────────────┘
//! ```
//! [`agent::Agent`] is all of it as one machine. It is told the time and never asks; its only randomness is a seed.
//!
//! | part | content |
//! | --- | --- |
//! | [`api`], [`cluster`] | requests to the cluster and its answers, as messages of the contract; the interface that an adapter implements |
//! | [`watch`] | the lists and watches of a kind, and whether the versions of the cluster go back |
//! | [`nodes`] | the nodes, for preferences that depend on them |
//! | `view` | the pods and ReplicaSets as last seen |
//! | `outbox` | the frames that wait for the server |
//! | [`link`] | the connection to the server, and the decoding of its frames |
//! | [`execute`] | the batches under way, from their checks to the outcome of each operation |
//! | [`budget`] | the limits of creates and deletes in a minute, and their holds |
//! | [`preferences`] | the wishes of a ReplicaSet's owner beyond Kubernetes' rules, from its annotations |
//! | [`asking`] | questions of the server for the deletion costs of pods |
//! | [`lease`], [`take_over`] | which agent may act, and in which namespaces |
//! | [`refusal`] | why an operation is not started |
//! | [`report`], [`recorder`] | data for logs and metrics; events for people |
//! | [`pace`] | waits and rates |
//!
//! **Invariant:** five effects can be expressed, and no sixth: create, delete, adopt, release, write status.
//! **Invariant:** nothing starts for another session, another epoch, an unknown or deleted ReplicaSet, or a namespace off the allow
//! list, and nothing that the rules or the [`budget`] refuse; that is checked just before each operation.
//! **Invariant:** each operation has exactly one outcome, and a create whose effect is unknown is looked up by its name.
//! **Invariant:** where the versions of the cluster go back, the session ends with all that is known ([`watch::history`]); no outcome
//! that came by it is reported.
//! **Invariant:** a new session begins when no call of an older one is in flight and no create of one can still take effect, with
//! lists that contain all own writes.
//!
//! Deliberately outside: every decision about which pods there should be, and all sockets, tasks and clocks.

pub mod agent;
pub mod api;
pub mod asking;
pub mod budget;
pub mod cluster;
pub mod execute;
pub mod lease;
pub mod link;
pub mod nodes;
mod outbox;
pub mod pace;
pub mod preferences;
pub mod recorder;
pub mod refusal;
pub mod report;
pub mod take_over;
#[cfg(test)]
mod tests;
mod view;
pub mod watch;
