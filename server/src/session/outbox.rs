//! The queue of frames to an agent. It waits for a slow agent, but not for ever.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};
use tonic::Status;

use super::end::SessionEnd;
use crate::{capacity::EndSignal, error::Refusal};

/// The frames that wait for HTTP/2 to take them; beyond them a session stops reading until the agent reads.
const QUEUE: usize = 16;

/// What the agent reads.
pub(crate) type Frames = mpsc::Receiver<Result<Bytes, Status>>;

/// Where a session's frames go.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Result<Bytes, Status>>,
    patience: Duration,
    /// When the frames that wait were queued, the oldest first.
    queued: VecDeque<Instant>,
}

// === impl Outbox ===

impl Outbox {
    /// Returns an outbox that waits as long as `patience` for the agent to read, a way to say how the session ended that does not need
    /// the outbox, and the end that the agent reads.
    pub(crate) fn new(patience: Duration) -> (Self, FinalStatus, Frames) {
        let (queue, frames) = mpsc::channel(QUEUE + 1);
        let last = queue.clone().try_reserve_owned();
        let outbox = Self {
            queue,
            patience,
            queued: VecDeque::with_capacity(QUEUE),
        };
        (
            outbox,
            FinalStatus(last.expect("the queue is empty")),
            frames,
        )
    }

    /// Sends a frame, unless the session is ended while it waits.
    pub(crate) async fn send(
        &mut self,
        end_signal: &EndSignal,
        frame: Bytes,
    ) -> Result<(), SessionEnd> {
        let deadline = self.give_up_at();
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.patience);
        let permit = tokio::select! {
            biased;
            refusal = end_signal.wait() => return Err(SessionEnd::Refused(refusal)),
            permit = timeout_at(deadline, self.queue.reserve()) => permit,
        };
        match permit {
            Ok(Ok(permit)) => permit.send(Ok(frame)),
            Ok(Err(_)) => return Err(SessionEnd::Gone),
            Err(_) => return Err(self.not_read()),
        }
        self.queued.push_back(Instant::now());
        Ok(())
    }

    /// Returns when the agent has left a frame unread for too long; `None` while it has read all.
    pub(crate) fn give_up_at(&mut self) -> Option<Instant> {
        let waiting = QUEUE - self.queue.capacity();
        let read = self.queued.len().saturating_sub(waiting);
        self.queued.drain(..read);
        self.queued.front().map(|oldest| *oldest + self.patience)
    }

    /// Gives an agent up that has left a frame unread for too long.
    pub(crate) fn check_read(&mut self) -> Result<(), SessionEnd> {
        match self.give_up_at() {
            Some(deadline) if deadline <= Instant::now() => Err(self.not_read()),
            Some(_) | None => Ok(()),
        }
    }

    const fn not_read(&self) -> SessionEnd {
        SessionEnd::Refused(Refusal::SlowReader(self.patience))
    }
}

/// Sends why a session ended. One slot of the queue is reserved for it, so that an agent that stopped reading still learns the reason when
/// it reads on.
#[derive(Debug)]
pub(crate) struct FinalStatus(mpsc::OwnedPermit<Result<Bytes, Status>>);

// === impl FinalStatus ===

impl FinalStatus {
    pub(crate) fn send(self, refusal: Refusal) {
        self.0.send(Err(refusal.into()));
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    fn frame() -> Bytes {
        Bytes::new()
    }

    #[test]
    fn agent_that_reads_after_its_session_has_ended_learns_why() {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.expect("a runtime").block_on(async {
            let (mut outbox, final_status, mut frames) = Outbox::new(Duration::from_secs(1));
            let signal = EndSignal::default();
            for _ in 0..QUEUE {
                let sent = outbox.send(&signal, frame());
                sent.await.expect("there is room");
            }
            let refused = outbox.send(&signal, frame()).await;
            let Err(SessionEnd::Refused(refusal)) = refused else {
                panic!("{refused:?}");
            };
            drop(outbox);
            final_status.send(refusal);
            for _ in 0..QUEUE {
                let frame = frames.recv().await.expect("it is queued");
                frame.expect("it is no end");
            }
            let end = frames.recv().await.expect("the stream ends with words");
            assert_eq!(
                end.expect_err("an end").code(),
                tonic::Code::DeadlineExceeded
            );
            assert!(frames.recv().await.is_none());
        });
    }
}
