//! One event stream: the data of a page, polled twice a second.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::json;
use service::admin::{AdminPeer, KeptConnection};
use service::admission::{Owner, Slot};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use super::{
    answer::Refused,
    reader::{PageReader, event, seconds},
    state::ConsoleState,
    view::PageView,
};
use crate::{
    access::{Caller, OpenStream},
    capacity::EndSignal,
    clock,
    shared::Shared,
};

/// The minimum time between two polls of a page.
const TICK: Duration = Duration::from_millis(500);
/// All streams together may spend one part in this many of the time on polling.
const SHARE: u32 = 4;
/// The maximum time without an event.
const PING: Duration = Duration::from_secs(5);
/// How long the last event has to reach its reader.
const FLUSH: Duration = Duration::from_millis(500);

/// A stream to one reader.
struct PageStream {
    state: Arc<ConsoleState>,
    caller: Caller,
    view: PageView,
    reader: PageReader,
    slot: Slot<(), ()>,
    kept: KeptConnection,
    /// Sent when the caller has lost the permission.
    denied: EndSignal,
    _open: OpenStream,
    /// Counts the stream.
    _counted: Arc<()>,
}

/// Opens a stream. If there are too many streams, the oldest is evicted.
pub(crate) fn open(
    state: &Arc<ConsoleState>,
    caller: Caller,
    peer: &AdminPeer,
    view: PageView,
) -> Result<Response, Refused> {
    let owner = Owner::Unproven(peer.address.ip().into());
    let slot = state
        .pool
        .take(owner, 1, service::admission::EndSignal::default());
    let slot = slot.map_err(|()| {
        let max = state.shared.config.limits.console_streams_max;
        let message = format!("limit of {max} streams of the console reached");
        Refused::new(Code::ResourceExhausted, "LIMIT_REACHED", message)
    })?;
    let (open, denied) = state.shared.access.open_watch(&caller);
    let (reader, events) = PageReader::new();
    let stream = PageStream {
        state: Arc::clone(state),
        caller,
        view,
        reader,
        slot,
        kept: peer.keep(),
        denied,
        _open: open,
        _counted: Arc::clone(&state.streams),
    };
    tokio::spawn(stream.run());
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let body = Body::from_stream(ReceiverStream::new(events));
    Ok((headers, body).into_response())
}

impl PageStream {
    /// Runs until the reader is gone or loses the permission, or another stream takes its slot.
    async fn run(mut self) {
        let (shared, denied) = (Arc::clone(&self.state.shared), self.denied.clone());
        let (taken, queue) = (self.slot.end().clone(), self.reader.queue());
        let last = tokio::select! {
            biased;
            () = queue.closed() => return,
            () = shared.draining.cancelled() => Shared::drain_refusal().into(),
            why = denied.wait() => why.into(),
            () = taken.wait() => {
                let message = "another page took the place of this one".to_owned();
                Refused::new(Code::Aborted, "DISPLACED", message)
            }
            why = self.follow() => why,
        };
        let last = event("end", &last.text());
        let Self { reader, kept, .. } = self;
        drop(reader);
        let _ = timeout(FLUSH, queue.send(Ok(last))).await;
        drop(queue);
        sleep(FLUSH).await;
        drop(kept);
    }

    /// Polls the page repeatedly. Returns the error that ends the stream.
    async fn follow(&mut self) -> Refused {
        loop {
            let began = Instant::now();
            let looked = self.view.poll(&self.state, &self.caller, &mut self.reader);
            if let Err(why) = looked.await {
                return why;
            }
            let streams = Arc::strong_count(&self.state.streams) - 1;
            let streams = u32::try_from(streams).unwrap_or(u32::MAX);
            let rest = (began.elapsed() * SHARE).saturating_mul(streams);
            self.rest(rest.max(TICK)).await;
        }
    }

    /// Pauses polling, with signs of life in a long pause.
    async fn rest(&mut self, length: Duration) {
        let end = Instant::now() + length;
        loop {
            let silent = PING.saturating_sub(self.reader.silence());
            tokio::select! {
                biased;
                () = sleep_until(end) => return,
                () = sleep(silent) => {
                    let data = json!({"seconds": seconds(clock::now())});
                    self.reader.send(event("ping", &data.to_string())).await;
                }
            }
        }
    }
}
