//! Server-sent events, each a name and one line of JSON, and their queue to the reader of a stream. The queue is short, so that the rows of thousands of ReplicaSets are made only when they are read.

use std::{collections::BTreeMap, convert::Infallible};

use bytes::Bytes;
use decree_core::Timestamp;
use service::escaped_json;
use tokio::{
    sync::mpsc,
    time::{Duration, Instant},
};

/// The maximum number of events that wait for a slow reader. While events wait, the page is not polled.
const QUEUE: usize = 4;

/// JSON has no line breaks, so the data is one line. A terminal may show it.
pub(crate) fn event(name: &str, data: &str) -> Bytes {
    let data = escaped_json(data);
    format!("event: {name}\ndata: {data}\n\n").into()
}

pub(crate) const fn seconds(time: Timestamp) -> i64 {
    time.0.div_euclid(1_000_000_000)
}

/// The sender to the reader. The stream ends when all clones are dropped.
pub(crate) type EventQueue = mpsc::Sender<Result<Bytes, Infallible>>;

/// The reader of one stream.
#[derive(Debug)]
pub(crate) struct PageReader {
    queue: EventQueue,
    said: Instant,
    /// The last data of the events that are only sent when their data change.
    shown: BTreeMap<&'static str, String>,
}

impl PageReader {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Result<Bytes, Infallible>>) {
        let (queue, events) = mpsc::channel(QUEUE);
        let reader = Self {
            queue,
            said: Instant::now(),
            shown: BTreeMap::new(),
        };
        (reader, events)
    }

    /// The sender to the reader, for the last event and to notice that the reader is gone.
    pub(crate) fn queue(&self) -> EventQueue {
        self.queue.clone()
    }

    /// Sends an event when there is space for it. A reader that is gone is noticed through its [`EventQueue`].
    pub(crate) async fn send(&mut self, event: Bytes) {
        let _ = self.queue.send(Ok(event)).await;
        self.said = Instant::now();
    }

    /// Sends an event if its data have changed.
    pub(crate) async fn show(&mut self, name: &'static str, data: String) {
        if self.shown.get(name) != Some(&data) {
            self.send(event(name, &data)).await;
            self.shown.insert(name, data);
        }
    }

    /// The time since the last event.
    pub(crate) fn silence(&self) -> Duration {
        self.said.elapsed()
    }
}
