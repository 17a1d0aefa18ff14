//! The cases of a server.

mod batches;
mod case;
mod ending;
mod faults;
mod found;
mod later;
mod link;
mod lists;
mod objects;
mod older;
mod opening;
mod options;
mod outcomes;
mod stop;
mod succession;
mod unread;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tonic::transport::Channel;

use crate::score::{Row, Rule, Score, Verdict};
use case::Case;
use link::Server;

pub use unread::narrow;

/// How many cases run at the same time: no server of note takes fewer streams on a connection than they open.
const AT_ONCE: usize = 32;

/// All cases but those of a server that is stopped. The slowest come first.
const CASES: [&[Case]; 12] = [
    unread::CASES,
    ending::CASES,
    opening::CASES,
    options::CASES,
    succession::CASES,
    lists::CASES,
    older::CASES,
    found::CASES,
    batches::CASES,
    outcomes::CASES,
    faults::CASES,
    later::CASES,
];

/// A server to test, and what of it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The connection, over an endpoint that [`narrow`] has returned.
    pub channel: Channel,
    /// A command of the shell that stops the server; it is run after all other cases. Without it, the rules of a server that is stopped are not tested.
    pub stop: Option<String>,
    /// Only rules that contain this text are tested. Empty for all.
    pub only: String,
}

/// Returns the rules that [`run_server`] tests.
#[must_use]
pub fn server_rules() -> Vec<Rule> {
    let cases = CASES.into_iter().flatten();
    let rules = cases
        .map(|case| (case.section, case.rule))
        .chain(stop::RULES);
    rules
        .map(|(section, rule)| Rule { section, rule })
        .collect()
}

/// Runs the cases against a server, many at the same time. Takes six of its heartbeat intervals, and with [`Target::stop`] as long as it drains.
pub async fn run_server(target: &Target) -> Score {
    let cases = CASES.into_iter().flatten().enumerate();
    let cases = cases.filter(|(_, case)| case.rule.contains(&target.only));
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let running: Vec<_> = cases
        .map(|(number, case)| {
            let server = Server::new(target.channel.clone(), number);
            let (verify, turns) = (case.verify, Arc::clone(&turns));
            let run = async move {
                let _turn = turns.acquire().await;
                verify(server).await
            };
            (case, tokio::spawn(run))
        })
        .collect();
    let mut rows = Vec::new();
    for (Case { section, rule, .. }, verdict) in running {
        let verdict = verdict.await.unwrap_or_else(|error| Err(error.to_string()));
        rows.push(Row::new(section, rule, verdict.into()));
    }
    rows.extend(stop(target).await);
    Score::new(rows)
}

/// Tests the rules of a server that is stopped, if any of them is asked for.
async fn stop(target: &Target) -> Vec<Row> {
    let rules = stop::RULES.into_iter();
    let rules: Vec<_> = rules
        .filter(|(_, rule)| rule.contains(&target.only))
        .collect();
    let Some(command) = target.stop.clone().filter(|_| !rules.is_empty()) else {
        let skipped = || Verdict::Skipped("no command stops the server".to_owned());
        let row = |(section, rule)| Row::new(section, rule, skipped());
        return rules.into_iter().map(row).collect();
    };
    let number = CASES.iter().map(|cases| cases.len()).sum();
    let server = Server::new(target.channel.clone(), number);
    let seen = stop::verify(server, command).await;
    let row = |&(section, rule): &(&'static str, &'static str)| {
        let verdict = seen.iter().find(|(seen, _)| *seen == rule);
        verdict.map(|(_, verdict)| Row::new(section, rule, verdict.clone().into()))
    };
    rules.iter().filter_map(row).collect()
}
