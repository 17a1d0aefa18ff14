//! The cases of a server.

mod batches;
mod case;
mod ending;
mod faults;
mod link;
mod lists;
mod objects;
mod opening;

use tonic::transport::Channel;

use crate::score::{Row, Score};
use case::Case;
use link::Server;

/// Runs all cases against a server, at the same time. Takes four of its heartbeat intervals.
pub async fn run_server(channel: Channel) -> Score {
    let cases = [
        opening::CASES,
        lists::CASES,
        batches::CASES,
        faults::CASES,
        ending::CASES,
    ];
    let running: Vec<_> = cases
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(number, case)| {
            let server = Server::new(channel.clone(), number);
            (case, tokio::spawn((case.verify)(server)))
        })
        .collect();
    let mut rows = Vec::new();
    for (Case { section, rule, .. }, verdict) in running {
        let verdict = verdict.await.unwrap_or_else(|error| Err(error.to_string()));
        rows.push(Row {
            section,
            rule,
            fault: verdict.err(),
        });
    }
    Score::new(rows)
}
