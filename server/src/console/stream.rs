//! One stream of events: what a page shows, looked at twice a second, and decisions as they are made.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use admission::Rank;
use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use runtime::admin::{AdminPeer, Kept};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{console_state::ConsoleState, event, reader::Reader, view::View};
use crate::{
    access::{Caller, OpenStream},
    capacity::{EndSignal, Place},
    error::{Limit, Refusal},
    watchers::{Viewer, Watch},
};

/// How often a page is looked at, at most.
const TICK: Duration = Duration::from_millis(500);
/// The share of the time that looking may take, of all streams together: one in so much.
const SHARE: u32 = 4;
/// How long a stream is silent at most.
const PING: Duration = Duration::from_secs(5);
/// How long the last event has to reach its reader.
const FLUSH: Duration = Duration::from_millis(500);

/// A stream to one reader.
struct Stream {
    state: Arc<ConsoleState>,
    caller: Caller,
    view: View,
    reader: Reader,
    place: Place,
    kept: Kept,
    end_signal: EndSignal,
    watch: Option<Watch>,
    _open: OpenStream,
    _counted: Counted,
}

/// Counts a stream until it is dropped.
struct Counted(Arc<ConsoleState>);

/// Opens a stream. Where there are too many, the oldest gives way.
pub(super) fn open(
    state: &Arc<ConsoleState>,
    caller: Caller,
    peer: &AdminPeer,
    view: View,
) -> Result<Response, Refusal> {
    let place = state.places.take(peer.address.ip().into(), Rank::Settled);
    let place = place.map_err(|_| Refusal::Exhausted {
        what: Limit::ConsoleStreams,
        max: state.places.max(),
    })?;
    let watch = match view.subject() {
        Some(subject) => {
            let (viewer, _) = viewer(state, &caller);
            let last_word = state.shared.drain_refusal();
            let watchers = Arc::clone(&state.shared.watchers);
            Some(watchers.watch(subject.watch(), viewer, last_word)?)
        }
        None => None,
    };
    let (viewer, end_signal) = viewer(state, &caller);
    let (reader, events) = Reader::new();
    let stream = Stream {
        state: Arc::clone(state),
        caller,
        view,
        reader,
        place,
        kept: peer.keep(),
        end_signal,
        watch,
        _open: viewer.open,
        _counted: Counted::new(state),
    };
    tokio::spawn(stream.run());
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let body = Body::from_stream(ReceiverStream::new(events));
    Ok((headers, body).into_response())
}

/// Follows whether the caller may still look.
fn viewer(state: &ConsoleState, caller: &Caller) -> (Viewer, EndSignal) {
    let end_signal = EndSignal::default();
    let viewer = Viewer {
        caller: caller.clone(),
        end_signal: end_signal.clone(),
        open: state.shared.access.open_watch(caller, &end_signal),
    };
    (viewer, end_signal)
}

// === impl Counted ===

impl Counted {
    fn new(state: &Arc<ConsoleState>) -> Self {
        state.streams.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(state))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let streams: &AtomicU32 = &self.0.streams;
        streams.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Stream ===

impl Stream {
    /// Runs until the reader is gone or may look no more, or the place goes to another.
    async fn run(mut self) {
        let draining = self.state.shared.draining.clone();
        let (end_signal, taken) = (self.end_signal.clone(), self.place.wait_taken());
        let queue = self.reader.queue();
        let last = tokio::select! {
            biased;
            () = queue.closed() => return,
            () = draining.cancelled() => event::end(&self.state.shared.drain_refusal()),
            why = end_signal.wait() => event::end(&why),
            () = taken => event::displaced(),
            why = self.follow() => event::end(&why),
        };
        let Self { reader, kept, .. } = self;
        drop(reader);
        let _ = timeout(FLUSH, queue.send(Ok(last))).await;
        drop(queue);
        sleep(FLUSH).await;
        kept.end();
    }

    /// Sends what is new, again and again, and returns what went wrong.
    async fn follow(&mut self) -> Refusal {
        loop {
            let began = Instant::now();
            let looked = self.view.poll(&self.state, &self.caller, &mut self.reader);
            if let Err(why) = looked.await {
                return why;
            }
            let streams = self.state.streams.load(Ordering::Relaxed).max(1);
            self.rest((began.elapsed() * SHARE * streams).max(TICK))
                .await;
        }
    }

    /// Does not look for a while, and passes decisions on as they are made.
    async fn rest(&mut self, length: Duration) {
        let end = Instant::now() + length;
        while Instant::now() < end {
            let silent = PING.saturating_sub(self.reader.silence());
            self.pass_decisions(end.min(Instant::now() + silent)).await;
            if self.reader.silence() >= PING {
                self.reader.send(event::ping()).await;
            }
        }
    }

    async fn pass_decisions(&mut self, until: Instant) {
        while let Some(watch) = &mut self.watch {
            tokio::select! {
                biased;
                () = sleep_until(until) => return,
                decision = watch.next() => match decision {
                    Some(Ok(decision)) => {
                        let text = self.state.json.text("WatchDecisionsResponse", &decision);
                        self.reader.send(event::event("decision", &text)).await;
                    }
                    // Whoever ends the watch ends the stream, with the reason.
                    Some(Err(_)) | None => self.watch = None,
                },
            }
        }
        sleep_until(until).await;
    }
}
