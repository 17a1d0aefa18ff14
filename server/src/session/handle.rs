//! Access to a live session from the rest of the server: queries to its task, and a signal to end.

use std::time::Duration;

use admission::ShareId;
use server_core::Timestamp;
use server_session::Session;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{capacity::EndSignal, error::Refusal};

/// The maximum number of queries that wait for a busy session. Further callers wait for a slot.
const QUERIES: usize = 16;

/// A query to a session, with the time of the wall clock. The session's own task runs it, so nobody else touches the controller and
/// there is no lock.
pub(crate) type Query = Box<dyn FnOnce(&Session, Timestamp) + Send>;

/// A handle to one live session. Clones reach the same session.
#[derive(Clone, Debug)]
pub(crate) struct SessionHandle {
    queries: mpsc::Sender<Query>,
    /// Ends the session.
    pub(crate) end_signal: EndSignal,
    /// The share of a registered session in the maximum number of sessions.
    pub(crate) share: Option<ShareId>,
}

// === impl SessionHandle ===

impl SessionHandle {
    /// A handle, and the receiver of its queries.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Query>) {
        let (queries, arriving) = mpsc::channel(QUERIES);
        let end_signal = EndSignal::default();
        let handle = Self {
            queries,
            end_signal,
            share: None,
        };
        (handle, arriving)
    }

    /// Runs a query in the session's task.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Session, Timestamp) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        // The send fails if nobody waits for the answer.
        let query: Query = Box::new(move |session, now| drop(reply.send(query(session, now))));
        let ended = |_| Refusal::SessionEnded;
        self.queries.send(query).await.map_err(ended)?;
        answer.await.map_err(|_| Refusal::SessionEnded)
    }

    /// Waits until the session has ended and left the registry.
    pub(crate) async fn has_ended(&self) {
        self.queries.closed().await;
    }

    /// Runs a query, but does not wait longer for a session that waits for its agent.
    pub(crate) async fn ask_within<T: Send + 'static>(
        &self,
        patience: Duration,
        query: impl FnOnce(&Session, Timestamp) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let answer = timeout(patience, self.ask(query)).await;
        answer.unwrap_or(Err(Refusal::DeadlineExceeded))
    }
}
