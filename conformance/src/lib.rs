//! Tests any server or agent against the rules of `docs/protocol.md`, from outside.
//!
//! # Theory of operation
//!
//! A case verifies one rule of a server. The case opens its own sessions, each for a separate cluster, and sends valid or invalid frames of an
//! agent. A case that breaks the rule returns its observation. Cases are independent, so they run at the same time; the slowest waits
//! until the server ends a silent session. [`run_server`] returns a [`Score`], which prints a table with links to the rules' sections.
//!
//! An agent is a [`Subject`] that the kit starts, kills and restarts, because some rules are about a restarted agent. [`run_agent`] plays a
//! server to the agent, step by step. Each step notes its observations for its rule. A rule whose step is not reached counts as broken.
//!
//! **Invariant:** the kit uses only the contract, so it works with third-party servers and agents.
//! The absence of a frame is verified by its successor: the kit sends an invalid pod, and the Rejection of that pod must arrive first.
//!
//! The rules for a stopped server are tested last, and only with a command that stops the server ([`Target::stop`]). Unread streams have
//! small windows, so that they do not block other sessions of their connection.
//!
//! Deliberately outside: rules that the contract does not show, or only with harm to others. `docs/internals/conformance.md` lists each such rule.

mod agent;
mod score;
mod server;

pub use agent::{Process, Program, Running, Subject, agent_rules, run_agent};
pub use score::{Row, Rule, Score, Verdict};
pub use server::{Target, narrow, run_server, server_rules};
