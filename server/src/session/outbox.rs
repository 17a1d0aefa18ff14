//! The way out of a session: numbers the frames and waits for a slow agent, but not for ever.

use std::time::Duration;

use decree::v1::{self, reconcile_response::Frame};
use tokio::{sync::mpsc, time::Instant};
use tonic::Status;

use super::{End, ending::Ending};
use crate::error::Refusal;

/// The frames that wait for HTTP/2 to take them; beyond them a session stops reading until the agent reads.
const QUEUE: usize = 16;

/// What the agent reads.
pub(crate) type Frames = mpsc::Receiver<Result<v1::ReconcileResponse, Status>>;

/// Where a session's frames go.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Result<v1::ReconcileResponse, Status>>,
    sequence: u64,
    last: Instant,
    patience: Duration,
}

// === impl Outbox ===

impl Outbox {
    /// Returns an outbox that waits as long as `patience` for the agent to read, and the end that the agent reads.
    pub(crate) fn new(patience: Duration) -> (Self, Frames) {
        let (queue, frames) = mpsc::channel(QUEUE);
        (
            Self {
                queue,
                sequence: 0,
                last: Instant::now(),
                patience,
            },
            frames,
        )
    }

    /// Returns when the last frame left.
    pub(crate) const fn last(&self) -> Instant {
        self.last
    }

    /// Sends a frame, unless the session is ended while it waits.
    pub(crate) async fn send(&mut self, ending: &Ending, frame: Frame) -> Result<(), End> {
        self.sequence = self.sequence.saturating_add(1);
        let frame = v1::ReconcileResponse {
            sequence: self.sequence,
            frame: Some(frame),
        };
        tokio::select! {
            biased;
            refusal = ending.wait() => return Err(End::Refused(refusal)),
            sent = self.queue.send_timeout(Ok(frame), self.patience) => match sent {
                Ok(()) => {}
                Err(mpsc::error::SendTimeoutError::Closed(_)) => return Err(End::Gone),
                Err(mpsc::error::SendTimeoutError::Timeout(_)) => {
                    return Err(End::Refused(Refusal::SlowReader(self.patience)));
                }
            },
        }
        self.last = Instant::now();
        Ok(())
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
