//! The score of an agent: a server of our own plays a script to it, in which each step verifies a rule.

mod peer;
mod script;
mod subject;

use std::io;

use crate::score::{Row, Score};
use peer::Listener;

pub use subject::Subject;

/// Plays the script to an agent, whose cluster must have one ReplicaSet without pods.
///
/// # Errors
/// Where no port is free, or the agent does not start.
pub async fn run_agent(subject: &Subject) -> io::Result<Score> {
    let listener = Listener::bind().await?;
    let mut notes = script::Notes::default();
    let end = script::play(subject, listener, &mut notes).await;
    let fault = end.err().map(|why| format!("not reached: {why}"));
    let rows = script::RULES.iter().map(|&(section, rule)| {
        let verdict = notes.verdict(rule).cloned();
        let unreached = || Err(fault.clone().unwrap_or_else(|| "not reached".to_owned()));
        Row {
            section,
            rule,
            fault: verdict.unwrap_or_else(unreached).err(),
        }
    });
    Ok(Score {
        rows: rows.collect(),
    })
}
