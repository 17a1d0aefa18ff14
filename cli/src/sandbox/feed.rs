//! The decisions of the server as they are made, as `decree watch` receives them.

use decree::v1;
use tokio::{sync::mpsc, task::AbortHandle};
use tonic::Streaming;

use crate::{exit::Failure, refusal, server::Server};

/// The capacity of the feed. A full feed waits, and the server counts the decisions that it misses.
const DECISIONS_MAX: usize = 1_024;

/// A decision, and the refusal of the cluster before it, if the decision reports it in a status.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) decision: v1::DecisionRecord,
    pub(crate) refused: Option<String>,
}

/// The decisions of one server. Dropping it ends its task.
#[derive(Debug)]
pub(crate) struct Feed {
    decisions: mpsc::Receiver<Decided>,
    task: AbortHandle,
}

// === impl Feed ===

impl Feed {
    pub(crate) async fn open(server: &Server) -> Result<Self, Failure> {
        let mut client = server.inspection();
        let answer = client
            .watch_decisions(v1::WatchDecisionsRequest::default())
            .await;
        let stream = answer
            .map_err(|status| server.failure(&status))?
            .into_inner();
        let (sender, decisions) = mpsc::channel(DECISIONS_MAX);
        let task = tokio::spawn(carry(server.clone(), stream, sender)).abort_handle();
        Ok(Self { decisions, task })
    }

    /// The next decision, if one has arrived.
    pub(crate) fn try_next(&mut self) -> Option<Decided> {
        self.decisions.try_recv().ok()
    }

    /// Waits for the next decision, forever if the server has ended the feed.
    pub(crate) async fn next(&mut self) -> Decided {
        match self.decisions.recv().await {
            Some(decision) => decision,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(
    server: Server,
    mut stream: Streaming<v1::WatchDecisionsResponse>,
    sender: mpsc::Sender<Decided>,
) {
    while let Ok(Some(next)) = stream.message().await {
        let Some(decision) = next.decision else {
            continue;
        };
        let refused = refusal::before(&server, &decision).await;
        let decided = Decided { decision, refused };
        if sender.send(decided).await.is_err() {
            return;
        }
    }
}
