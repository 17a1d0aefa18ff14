//! Tests any agent against the rules of `docs/protocol.md`, from outside.
//!
//! # Theory of operation
//!
//! An agent is a [`Subject`] that the kit starts, kills and restarts, because some rules are about a restarted agent. [`run_agent`] plays a
//! server to the agent, step by step. Each step notes its observations for its rule. A rule whose step is not reached counts as broken.
//! [`run_unary`] does the same for a controller that calls `Decide` on a timer.
//! The [`Score`] prints a table with links to the rules' sections.
//!
//! **Invariant:** the kit uses only the contract, so it works with third-party agents.
//!
//! Deliberately outside: rules that the contract does not show, or only with harm to others. `docs/internals/conformance.md` lists each such rule.

mod action;
mod ending;
mod fields;
mod history;
mod listener;
mod opening;
mod peer;
mod score;
mod script;
mod subject;
mod unary;

#[cfg(test)]
mod tests;

use std::io;

use listener::Listener;

pub use score::{RULES, Row, Rule, Score, UNARY_RULES};
pub use subject::{Process, Program, Running, Subject};

/// Plays the script to an agent, whose cluster must have one ReplicaSet without pods.
///
/// # Errors
/// If no port is free. An agent that does not start breaks all rules.
pub async fn run_agent(subject: &impl Subject) -> io::Result<Score> {
    let listener = Listener::bind().await?;
    let mut notes = score::Notes::default();
    let end = script::play(subject, listener, &mut notes).await;
    Ok(notes.score(RULES, end))
}

/// Plays the script to a controller that calls `Decide` on a timer, whose cluster must have one ReplicaSet without pods.
///
/// # Errors
/// If no port is free. A controller that does not start breaks all rules.
pub async fn run_unary(subject: &impl Subject) -> io::Result<Score> {
    let listener = Listener::bind().await?;
    let mut notes = score::Notes::default();
    let end = unary::play(subject, listener, &mut notes).await;
    Ok(notes.score(UNARY_RULES, end))
}
