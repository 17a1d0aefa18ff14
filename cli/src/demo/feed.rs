//! What the server has to say, as anyone may hear it: its decisions as they are made, and what is in flight.

use std::time::Duration;

use decree::v1;
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
    time::{MissedTickBehavior, interval},
};
use tonic::Streaming;

use crate::{args::ServerArgs, exit::Failure, server::Server};

/// How many decisions wait to be shown. A feed that is full waits, and the server counts what it misses.
const DECISIONS_MAX: usize = 1_024;
/// How often the server is asked what is in flight.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The news of one server. Dropping it ends its tasks.
#[derive(Debug)]
pub(super) struct Feed {
    decisions: mpsc::Receiver<v1::DecisionRecord>,
    in_flight: watch::Receiver<i64>,
    tasks: [AbortHandle; 2],
}

// === impl Feed ===

impl Feed {
    pub(super) async fn open(url: &str) -> Result<Self, Failure> {
        let args = ServerArgs {
            server: url.to_owned(),
            timeout: PATIENCE,
        };
        let server = Server::connect(&args).await?;
        let mut client = server.inspection();
        let answer = client
            .watch_decisions(v1::WatchDecisionsRequest::default())
            .await;
        let stream = answer
            .map_err(|status| server.failure(&status))?
            .into_inner();
        let (sender, decisions) = mpsc::channel(DECISIONS_MAX);
        let (count, in_flight) = watch::channel(0);
        let tasks = [
            tokio::spawn(carry(stream, sender)),
            tokio::spawn(ask(server, count)),
        ];
        Ok(Self {
            decisions,
            in_flight,
            tasks: tasks.map(|task| task.abort_handle()),
        })
    }

    /// Returns the next decision that has come.
    pub(super) fn try_next(&mut self) -> Option<v1::DecisionRecord> {
        self.decisions.try_recv().ok()
    }

    /// Waits until a decision has come; for ever if the server has ended the feed.
    pub(super) async fn next(&mut self) -> v1::DecisionRecord {
        match self.decisions.recv().await {
            Some(decision) => decision,
            None => std::future::pending().await,
        }
    }

    /// Returns how many batches are in flight.
    pub(super) fn in_flight(&self) -> i64 {
        *self.in_flight.borrow()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

async fn carry(
    mut stream: Streaming<v1::WatchDecisionsResponse>,
    sender: mpsc::Sender<v1::DecisionRecord>,
) {
    while let Ok(Some(next)) = stream.message().await {
        let Some(decision) = next.decision else {
            continue;
        };
        if sender.send(decision).await.is_err() {
            return;
        }
    }
}

async fn ask(server: Server, count: watch::Sender<i64>) {
    let mut client = server.inspection();
    let mut ticks = interval(ASK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Ok(answer) = client.list_sessions(v1::ListSessionsRequest {}).await {
            let sessions = answer.into_inner().sessions;
            count.send_replace(
                sessions
                    .iter()
                    .map(|session| session.batches_in_flight)
                    .sum(),
            );
        }
    }
}
