//! An exhaustive search of bounded worlds: instead of a drawn order of events, every order.
//!
//! # Theory of operation
//! A world is small: one ReplicaSet, up to three pods, one or two servers and agents, and a few faults ([`bounds::Bounds`]). It
//! runs the machines of production: [`server_session::Session`] and its registry, [`agent_core::agent::Agent`] and
//! [`agent_core::lease::Lease`], with the default times of the agent. Their environment is a small API server ([`api`]) and the
//! effects of the shells ([`effects`]).
//!
//! ```text
//! state ──▶ choices ──▶ happen ──▶ states next to it ──▶ those not met before are visited, nearest first
//!                          │
//!                          └─ machines: (state of a machine, input, time) ─▶ (its state then, outputs), computed once
//! ```
//! A [`state::State`] has the numbers of the states of the machines, and of the messages in flight ([`store`]). Two states of a
//! machine are equal if their `Debug` output is, without fields for inspection and the order of hash maps ([`digest`]). The search
//! is breadth first, so it shows a broken promise on a shortest path.
//!
//! # Events
//! Messages arrive: the next frame of a connection in each direction, in order; a list, a call or a Lease request at the API
//! server; its answer; the next event of a watch. A pod becomes ready, and a user acts. Faults occur: an answer is lost, a process
//! dies, a connection breaks, an agent stops and resumes ([`choice::Choice`]). The events have any order, within these bounds:
//!
//! - **Messages are faster than timers.** Time passes only if nothing is in flight but writes of dead and stopped agents, and
//!   writes whose answers were lost. Such writes take effect at any moment before their deadline, or never. A server notices the
//!   end of a connection at any later time.
//! - **A process that dies takes its sent messages along.** This loses no case: in another order, the peer gets the messages
//!   before the death.
//! - An agent gets answers about the Lease at once, unless it is stopped: before an answer, it does nothing that depends on it.
//! - A dead server restarts at once. Servers in equal states without connections are interchangeable, and one stands for both.
//! - In [`prompt`](bounds::Bounds::prompt) worlds, messages of agents reach servers at once.
//! - Heartbeats are never due: silent links are a matter of the drawn worlds.
//!
//! # Promises
//! In every state, there are never more pods than the maximum desired replicas. The agents never delete below the minimum desired
//! replicas. Deletions hit the uid of the victim, and no name is used twice. Every write needs the Lease and its newest epoch, and a
//! server has one session of the cluster. From every state, the world comes to rest in the desired state with a matching status,
//! whatever happens on the way.
//!
//! **Invariant:** a search visits every state within its bounds or fails.

pub mod agents;
pub mod api;
pub mod bounds;
pub mod choice;
pub mod describe;
pub mod digest;
pub mod effects;
pub mod happen;
pub mod leases;
pub mod machines;
pub mod search;
pub mod servers;
pub mod state;
pub mod store;
