//! The way out of a session: waits for a slow agent, but not for ever.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};
use tonic::Status;

use super::end::End;
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
    pub(crate) fn new(patience: Duration) -> (Self, LastWord, Frames) {
        let (queue, frames) = mpsc::channel(QUEUE + 1);
        let last = queue.clone().try_reserve_owned();
        let outbox = Self {
            queue,
            patience,
            queued: VecDeque::with_capacity(QUEUE),
        };
        (outbox, LastWord(last.expect("the queue is empty")), frames)
    }

    /// Sends a frame, unless the session is ended while it waits.
    pub(crate) async fn send(&mut self, end_signal: &EndSignal, frame: Bytes) -> Result<(), End> {
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
        let waiting = QUEUE - self.queue.capacity();
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
}

/// Says how a session ended, in a place of the queue that is kept for it: an agent that has left all others unread must not take the end
/// of the stream for one in order when it reads on.
#[derive(Debug)]
pub(crate) struct LastWord(mpsc::OwnedPermit<Result<Bytes, Status>>);

// === impl LastWord ===

impl LastWord {
    pub(crate) fn say(self, refusal: Refusal) {
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
            let (mut outbox, last_word, mut frames) = Outbox::new(Duration::from_secs(1));
            let signal = EndSignal::default();
            for _ in 0..QUEUE {
                let sent = outbox.send(&signal, frame());
                sent.await.expect("there is room");
            }
            let refused = outbox.send(&signal, frame()).await;
            let Err(End::Refused(refusal)) = refused else {
                panic!("{refused:?}");
            };
            drop(outbox);
            last_word.say(refusal);
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
