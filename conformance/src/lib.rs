//! Tests servers and agents of any make against the rules of `docs/protocol.md`, from outside.
//!
//! # Theory of operation
//!
//! A case verifies one rule of a server: it opens sessions of its own, each for a cluster that no other case has, says what an agent says or must not say, and
//! returns what it saw where that is not what the rule demands. Cases know nothing of each other, so they run at the same time; the slowest waits until a
//! silent session is given up. [`run_server`] gives a [`Score`], which prints as a table with a link to the section of each rule.
//!
//! An agent is a [`Subject`] that the kit starts, kills and starts again, because some rules are about what an agent finds when it comes back. [`run_agent`]
//! plays the server to it, step by step; what each step shows is noted under its rule, and a rule whose step was not reached counts as broken.
//!
//! **Invariant:** the kit sees servers and agents through the contract alone, so it holds for those of any make.
//! That something does *not* come is seen by what comes in its place: a pod that must be rejected follows, and its Rejection has to arrive first.
//!
//! What a server does that is stopped is tested last and only where a command is given that stops it ([`Target::stop`]). Streams that are not read have small
//! windows, so that they hold up no other session of their connection.
//!
//! Deliberately outside is what cannot be seen through the contract, or not without harm to others: `docs/conformance.md` lists each such rule with its reason.

mod agent;
mod score;
mod server;

pub use agent::{Process, Program, Running, Subject, agent_rules, run_agent};
pub use score::{Row, Rule, Score, Verdict};
pub use server::{Target, narrow, run_server, server_rules};
