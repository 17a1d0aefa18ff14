//! Where the events of a stream go: a short queue, so that what is shown of thousands of ReplicaSets is made as it is read.

use std::convert::Infallible;

use bytes::Bytes;
use tokio::{
    sync::mpsc,
    time::{Duration, Instant},
};

/// The events that wait for a slow reader. While they do, its page is not looked at.
const QUEUE: usize = 4;

/// What leads to the reader; the stream ends when all clones of it are dropped.
pub(crate) type EventQueue = mpsc::Sender<Result<Bytes, Infallible>>;

/// The reader of one stream.
#[derive(Debug)]
pub(crate) struct PageReader {
    queue: EventQueue,
    said: Instant,
}

// === impl PageReader ===

impl PageReader {
    /// Returns a reader, and what it reads.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Result<Bytes, Infallible>>) {
        let (queue, events) = mpsc::channel(QUEUE);
        let said = Instant::now();
        (Self { queue, said }, events)
    }

    /// Returns what leads to the reader, to tell it the last event and to notice when it is gone.
    pub(crate) fn queue(&self) -> EventQueue {
        self.queue.clone()
    }

    /// Sends an event when there is room for it. One that is gone is noticed by its [`EventQueue`].
    pub(crate) async fn send(&mut self, event: Bytes) {
        let _ = self.queue.send(Ok(event)).await;
        self.said = Instant::now();
    }

    /// Returns for how long nothing was sent.
    pub(crate) fn silence(&self) -> Duration {
        self.said.elapsed()
    }
}
