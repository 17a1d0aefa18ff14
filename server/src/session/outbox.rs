//! The way out of a session: waits for a slow agent, but not for ever.

use std::time::Duration;

use decree::v1;
use tokio::sync::mpsc;
use tonic::Status;

use super::{end::End, end_signal::EndSignal};
use crate::error::Refusal;

/// The frames that wait for HTTP/2 to take them; beyond them a session stops reading until the agent reads.
const QUEUE: usize = 16;

/// What the agent reads.
pub(crate) type Frames = mpsc::Receiver<Result<v1::ReconcileResponse, Status>>;

/// Where a session's frames go.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Result<v1::ReconcileResponse, Status>>,
    patience: Duration,
}

// === impl Outbox ===

impl Outbox {
    /// Returns an outbox that waits as long as `patience` for the agent to read, and the end that the agent reads.
    pub(crate) fn new(patience: Duration) -> (Self, Frames) {
        let (queue, frames) = mpsc::channel(QUEUE);
        (Self { queue, patience }, frames)
    }

    /// Sends a frame, unless the session is ended while it waits.
    pub(crate) async fn send(
        &self,
        end_signal: &EndSignal,
        frame: v1::ReconcileResponse,
    ) -> Result<(), End> {
        tokio::select! {
            biased;
            refusal = end_signal.wait() => Err(End::Refused(refusal)),
            sent = self.queue.send_timeout(Ok(frame), self.patience) => sent.map_err(|error| match error {
                mpsc::error::SendTimeoutError::Closed(_) => End::Gone,
                mpsc::error::SendTimeoutError::Timeout(_) => {
                    End::Refused(Refusal::SlowReader(self.patience))
                }
            }),
        }
    }

    /// Returns a way to say how the session ended that does not need the outbox.
    pub(crate) fn last_word(&self) -> LastWord {
        LastWord(self.queue.clone())
    }
}

/// Says how a session ended.
#[derive(Debug)]
pub(crate) struct LastWord(mpsc::Sender<Result<v1::ReconcileResponse, Status>>);

// === impl LastWord ===

impl LastWord {
    /// Says it, if the agent reads within `patience`.
    pub(crate) async fn say(self, refusal: Refusal, patience: Duration) {
        // An agent that does not read learns it from the closed stream.
        let _ = self.0.send_timeout(Err(refusal.into()), patience).await;
    }
}
