//! The test of an agent: the kit's own server plays a script to the agent, in which each step verifies a rule.

mod action;
mod ending;
mod listener;
mod notes;
mod opening;
mod peer;
mod script;
mod subject;

use std::io;

use crate::score::{Row, Rule, Score};
use listener::Listener;
use notes::{Notes, RULES};

pub use subject::{Process, Program, Running, Subject};

/// Plays the script to an agent, whose cluster must have one ReplicaSet without pods.
///
/// # Errors
/// If no port is free. An agent that does not start breaks all rules.
pub async fn run_agent(subject: &impl Subject) -> io::Result<Score> {
    let listener = Listener::bind().await?;
    let mut notes = Notes::default();
    let end = script::play(subject, listener, &mut notes).await;
    let fault = match end {
        Ok(()) => "not reached".to_owned(),
        Err(why) => format!("not reached: {why}"),
    };
    let rows = RULES.iter().map(|rule| {
        let verdict = notes.verdict(rule.rule).cloned();
        Row::new(*rule, verdict.unwrap_or_else(|| Err(fault.clone())))
    });
    Ok(Score::new(rows.collect()))
}

/// The rules that [`run_agent`] tests.
#[must_use]
pub fn agent_rules() -> Vec<Rule> {
    RULES.to_vec()
}
