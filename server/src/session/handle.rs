//! How the rest of the server reaches a live session: by questions to its task, and by a signal to end.

use server_core::Timestamp;
use server_session::Session;
use tokio::sync::{mpsc, oneshot};

use crate::{capacity::EndSignal, error::Refusal};

/// The questions that wait while a session is busy; beyond them those who ask wait.
const QUERIES: usize = 16;

/// A question to a session, with the wall clock's time. It is answered in the session's own task, so that nobody else touches
/// its controller and there is no lock on it.
pub(crate) type Query = Box<dyn FnOnce(&Session, Timestamp) + Send>;

/// Reaches one live session. Clones reach the same.
#[derive(Clone, Debug)]
pub(crate) struct SessionHandle {
    queries: mpsc::Sender<Query>,
    end_signal: EndSignal,
}

// === impl SessionHandle ===

impl SessionHandle {
    /// Returns a handle that ends the session by `end_signal`, and what arrives of its questions.
    pub(crate) fn new(end_signal: EndSignal) -> (Self, mpsc::Receiver<Query>) {
        let (queries, arriving) = mpsc::channel(QUERIES);
        (
            Self {
                queries,
                end_signal,
            },
            arriving,
        )
    }

    /// Returns the signal that ends the session.
    pub(crate) const fn end_signal(&self) -> &EndSignal {
        &self.end_signal
    }

    /// Asks the session and waits for the answer.
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
}
