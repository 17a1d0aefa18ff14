//! The queue of frames to an agent, which waits for a slow agent up to a limit.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status;

use super::end::SessionEnd;
use crate::{
    capacity::{EndSignal, Pool},
    error::Refusal,
    peer::ConnectionPeer,
};

/// The maximum number of frames that wait for HTTP/2. Beyond it, a session stops reading until the agent reads.
const QUEUE: usize = 16;

/// The frames for the agent.
#[derive(Debug)]
pub(crate) struct Frames {
    queue: mpsc::Receiver<Result<Bytes, Status>>,
    _gone: DropGuard,
}

/// The sender of a session's frames.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Result<Bytes, Status>>,
    patience: Duration,
    /// The times at which the waiting frames were queued, and their sizes, oldest first.
    queued: VecDeque<(Instant, usize)>,
    /// The size of the last frame that HTTP/2 has taken, and perhaps not sent.
    taken: usize,
    /// Cancelled when nobody reads any more.
    gone: CancellationToken,
}

impl Outbox {
    /// `patience` is how long a frame may wait for the agent to read. [`FinalStatus`] reports the end of the session without the outbox;
    /// [`Frames`] is the receiver for the agent.
    pub(crate) fn new(patience: Duration) -> (Self, FinalStatus, Frames) {
        let (queue, frames) = mpsc::channel(QUEUE + 1);
        let last = queue.clone().try_reserve_owned();
        let gone = CancellationToken::new();
        let frames = Frames {
            queue: frames,
            _gone: gone.clone().drop_guard(),
        };
        let outbox = Self {
            queue,
            patience,
            queued: VecDeque::with_capacity(QUEUE),
            taken: 0,
            gone,
        };
        (
            outbox,
            FinalStatus(last.expect("the queue is empty")),
            frames,
        )
    }

    /// Sends a frame. Stops waiting if the session is told to end.
    pub(crate) async fn send(
        &mut self,
        end_signal: &EndSignal,
        frame: Bytes,
    ) -> Result<(), SessionEnd> {
        let deadline = self.give_up_at();
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.patience);
        let size = frame.len();
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
        self.queued.push_back((Instant::now(), size));
        Ok(())
    }

    /// The time at which an unread frame is too old; `None` if the agent has read all frames.
    pub(crate) fn give_up_at(&mut self) -> Option<Instant> {
        let patience = self.patience;
        let oldest = self.unread().front();
        oldest.map(|(queued, _)| *queued + patience)
    }

    /// The size of the frames that wait, in bytes.
    pub(crate) fn bytes(&mut self) -> usize {
        self.unread().iter().map(|(_, size)| size).sum()
    }

    fn unread(&mut self) -> &VecDeque<(Instant, usize)> {
        // The place of the final status is free again once that is gone.
        let waiting = QUEUE.saturating_sub(self.queue.capacity());
        let read = self.queued.len().saturating_sub(waiting);
        if let Some((_, size)) = self.queued.drain(..read).next_back() {
            self.taken = size;
        }
        &self.queued
    }

    /// Leaves the frames to an agent that may never read them. Their bytes count for its peer in `bytes` until it has read them or is gone. If
    /// others need these bytes, the connection ends: nothing else frees frames that HTTP/2 has taken.
    pub(crate) fn leave(mut self, peer: &ConnectionPeer, bytes: &Arc<Pool>) {
        let unread = self.bytes() + self.taken;
        let Ok(slot) = peer.take(bytes, unread) else {
            return peer.end();
        };
        let (gone, peer) = (self.gone, peer.clone());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                _ = slot.end().wait() => peer.end(),
            }
        });
    }

    /// Ends the session of an agent that has left a frame unread for too long.
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

impl Stream for Frames {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.queue.poll_recv(cx)
    }
}

/// Sends why a session ended. One slot of the queue is reserved for the status, so an agent that stopped reading gets it when reading
/// again.
#[derive(Debug)]
pub(crate) struct FinalStatus(mpsc::OwnedPermit<Result<Bytes, Status>>);

impl FinalStatus {
    pub(crate) fn send(self, refusal: Refusal) {
        self.0.send(Err(refusal.into()));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use service::admission::Yields;
    use service::transport::{Credential, Peer, PeerAddress};
    use tokio::task::yield_now;
    use tokio_stream::StreamExt as _;

    use super::*;
    use crate::capacity::Owner;

    const BYTES_MAX: usize = 8;

    #[tokio::test]
    async fn outbox_outlives_its_final_status() {
        let (mut outbox, final_status, _frames) = Outbox::new(Duration::from_secs(1));
        drop(final_status);
        assert_eq!(outbox.give_up_at(), None);
        assert_eq!(outbox.bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn agent_that_reads_after_its_session_has_ended_learns_why() {
        let (mut outbox, final_status, mut frames) = Outbox::new(Duration::from_secs(1));
        let signal = EndSignal::default();
        for _ in 0..QUEUE {
            let sent = outbox.send(&signal, Bytes::new());
            sent.await.expect("there is room");
        }
        let refused = outbox.send(&signal, Bytes::new()).await;
        let Err(SessionEnd::Refused(refusal)) = refused else {
            panic!("{refused:?}");
        };
        drop(outbox);
        final_status.send(refusal);
        for _ in 0..QUEUE {
            let frame = frames.next().await.expect("it is queued");
            frame.expect("it is no end");
        }
        let end = frames.next().await.expect("the stream ends with words");
        let code = end.expect_err("an end").code();
        assert_eq!(code, tonic::Code::DeadlineExceeded);
        assert!(frames.next().await.is_none());
    }

    #[tokio::test]
    async fn connection_of_unread_frames_ends_only_if_others_need_their_bytes() {
        let pool = |max| Pool::new(max, Yields::Oldest, Refusal::exhausted("places", max));
        let owner = || Owner::Unproven(IpAddr::from(Ipv4Addr::LOCALHOST).into());
        let (connections, bytes) = (pool(1), pool(BYTES_MAX));
        for is_gone in [true, false] {
            let connection = connections.take(owner(), 1, EndSignal::default());
            let connection = connection.expect("there is room");
            let proved = Peer::new(PeerAddress::Unix, Credential::None);
            let peer = ConnectionPeer::new(proved, connection.handle());
            let (mut outbox, _final_status, frames) = Outbox::new(Duration::from_secs(1));
            let signal = EndSignal::default();
            let sent = outbox.send(&signal, Bytes::from_static(b"frame"));
            sent.await.expect("there is room");
            outbox.leave(&peer, &bytes);
            let _unread = (!is_gone).then_some(frames);
            yield_now().await;
            let others = bytes.take(owner(), BYTES_MAX, EndSignal::default());
            let _others = others.expect("newcomers get their bytes");
            for _ in 0..3 {
                yield_now().await;
            }
            assert_eq!(connection.end().is_sent(), !is_gone);
        }
    }
}
