//! An exhaustive search of bounded worlds: instead of a drawn order of events, every order.
//!
//! # Theory of operation
//! A world is small: one ReplicaSet, up to three pods, one or two servers and agents, and a few faults ([`bounds::Bounds`]). It runs the machines of
//! production: [`server_session::Session`] and its registry, [`agent_core::agent::Agent`] and [`agent_core::lease::Lease`], with the
//! default times of the agent. Around them stand a small API server ([`api`]) and what the shells do ([`effects`]).
//!
//! ```text
//! state ──▶ choices ──▶ happen ──▶ states next to it ──▶ those not met before are visited, nearest first
//!                          │
//!                          └─ machines: (state of a machine, input, time) ─▶ (its state then, outputs), computed once
//! ```
//! A [`state::State`] consists of the numbers of the states of the machines and of the messages on their way ([`store`]). Two states of a machine are
//! one if `Debug` shows the same of them, but for what only inspection reads and for the order of hash maps ([`digest`]).
//! As the search goes breadth first, what breaks a promise is shown by a shortest path.
//!
//! # What may happen
//! The next frame of a connection arrives, each way in order; a list, a call or a command for the Lease reaches the API server; its answer arrives; a
//! watch tells its next event; a pod becomes ready; a user acts; an answer is lost; a process dies, a connection breaks, an agent is
//! stopped and goes on ([`choice::Choice`]). All this in any order, with these bounds:
//!
//! - **Messages are faster than timers.** Time passes where nothing else is on its way, but for writes of dead and stopped agents, and of answers
//!   that were lost: those take effect at any moment before their deadline, or never. A server hears of the end of a connection at any later time.
//! - **A half that dies takes along what it has sent.** Nothing is lost by this: what the other half would be told after the death it is told
//!   before it, in another order.
//! - An agent hears of the Lease at once what the API server answers, unless it is stopped: before, it does nothing that depends on it.
//! - A server that has died starts anew at once. Servers in equal states without connections are interchangeable, and one stands for both.
//! - In worlds that are [`prompt`](bounds::Bounds::prompt) what agents send reaches servers at once.
//! - Heartbeats do not come due: silent links are for the drawn worlds.
//!
//! # What must hold
//! In every state: never more pods than were wanted at most, never fewer by our deletions than were wanted at least, deletions hit the uid that was chosen, no
//! name twice, no write but with the Lease and in its newest epoch, one session of the cluster in a server. And from every state the
//! world comes to rest as wanted, with a status that says so, whatever happens on the way.
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
