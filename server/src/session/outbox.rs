//! The way out of a session: waits for a slow agent, but not for ever.

use std::{collections::VecDeque, time::Duration};

use decree::v1;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};
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
    /// When the frames that wait were queued, the oldest first.
    queued: VecDeque<Instant>,
}

// === impl Outbox ===

impl Outbox {
    /// Returns an outbox that waits as long as `patience` for the agent to read, and the end that the agent reads.
    pub(crate) fn new(patience: Duration) -> (Self, Frames) {
        let (queue, frames) = mpsc::channel(QUEUE);
        let queued = VecDeque::with_capacity(QUEUE);
        (
            Self {
                queue,
                patience,
                queued,
            },
            frames,
        )
    }

    /// Sends a frame, unless the session is ended while it waits.
    pub(crate) async fn send(
        &mut self,
        end_signal: &EndSignal,
        frame: v1::ReconcileResponse,
    ) -> Result<(), End> {
        let deadline = self.give_up_at();
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.patience);
        let permit = tokio::select! {
            biased;
            refusal = end_signal.wait() => return Err(End::Refused(refusal)),
            permit = timeout_at(deadline, self.queue.reserve()) => permit,
        };
        match permit {
            Ok(Ok(permit)) => permit.send(Ok(frame)),
            Ok(Err(_)) => return Err(End::Gone),
            Err(_) => return Err(self.not_read()),
        }
        self.queued.push_back(Instant::now());
        Ok(())
    }

    /// Returns when the agent has left a frame unread for too long; `None` while it has read all.
    pub(crate) fn give_up_at(&mut self) -> Option<Instant> {
        let waiting = self.queue.max_capacity() - self.queue.capacity();
        let read = self.queued.len().saturating_sub(waiting);
        self.queued.drain(..read);
        self.queued.front().map(|oldest| *oldest + self.patience)
    }

    /// Gives an agent up that has left a frame unread for too long.
    pub(crate) fn check_read(&mut self) -> Result<(), End> {
        match self.give_up_at() {
            Some(deadline) if deadline <= Instant::now() => Err(self.not_read()),
            Some(_) | None => Ok(()),
        }
    }

    const fn not_read(&self) -> End {
        End::Refused(Refusal::SlowReader(self.patience))
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
