//! The cases of a server.

mod batches;
mod case;
mod ending;
mod faults;
mod later;
mod link;
mod lists;
mod objects;
mod opening;
mod stop;
mod verdict;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tonic::transport::Channel;

use crate::score::{Row, Rule, Score, Verdict};
use case::Case;
use link::Server;

pub use ending::narrow;

/// The number of cases that run at the same time. Together, they open fewer streams than common servers allow on a connection.
const AT_ONCE: usize = 32;

/// All cases except those for a stopped server. The slowest cases come first.
const CASES: [&[Case]; 6] = [
    ending::CASES,
    opening::CASES,
    lists::CASES,
    batches::CASES,
    faults::CASES,
    later::CASES,
];

/// A server under test, and the tested rules.
#[derive(Clone, Debug)]
pub struct Target {
    /// The connection, over an endpoint that [`narrow`] has returned.
    pub channel: Channel,
    /// A shell command that stops the server, run after all other cases. Without it, the rules for a stopped server are skipped.
    pub stop: Option<String>,
    /// Only rules that contain this text are tested. Empty for all rules.
    pub only: String,
}

/// The rules that [`run_server`] tests.
#[must_use]
pub fn server_rules() -> Vec<Rule> {
    let cases = CASES.into_iter().flatten();
    cases.map(|case| case.rule).chain(stop::RULES).collect()
}

/// Runs the cases against a server, many at the same time. Takes nine heartbeat intervals of the server, and its drain with [`Target::stop`].
pub async fn run_server(target: &Target) -> Score {
    let cases = CASES.into_iter().flatten().enumerate();
    let cases = cases.filter(|(_, case)| case.rule.rule.contains(&target.only));
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let running: Vec<_> = cases
        .map(|(number, case)| {
            let server = Server::new(target.channel.clone(), number);
            let (verify, turns) = (case.verify, Arc::clone(&turns));
            let run = async move {
                let _turn = turns.acquire().await;
                verify(server).await
            };
            (case.rule, tokio::spawn(run))
        })
        .collect();
    let mut rows = Vec::new();
    for (rule, verdict) in running {
        let verdict = verdict.await.unwrap_or_else(|error| Err(error.to_string()));
        rows.push(Row::new(rule, verdict));
    }
    rows.extend(stop(target).await);
    Score::new(rows)
}

/// Tests the rules for a stopped server, if the filter contains any of them.
async fn stop(target: &Target) -> Vec<Row> {
    let is_tested = |rule: &Rule| rule.rule.contains(&target.only);
    let Some(command) = target
        .stop
        .clone()
        .filter(|_| stop::RULES.iter().any(is_tested))
    else {
        let skipped = || Verdict::Skipped("no command stops the server".to_owned());
        let rules = stop::RULES.into_iter().filter(is_tested);
        return rules.map(|rule| Row::new(rule, skipped())).collect();
    };
    let number = CASES.iter().map(|cases| cases.len()).sum();
    let server = Server::new(target.channel.clone(), number);
    let seen = stop::verify(server, command).await;
    let seen = seen.into_iter().filter(|(rule, _)| is_tested(rule));
    seen.map(|(rule, verdict)| Row::new(rule, verdict))
        .collect()
}
