//! The body of a request, which leaves soon after the request was allowed to, or not at all.
//!
//! Between that check and the first byte on the wire, credentials may be renewed, a connection opened, and a place on it awaited. HTTP takes
//! the body after all of that, and a request without its body has no effect.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use thiserror::Error;
use tokio::time::{Duration, Instant};

/// How long after its check a request may leave: half of the second that decision 11 allows for its way.
const LEAVE_WITHIN: Duration = Duration::from_millis(500);

/// The body of a request, in one piece.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestBody {
    /// `None` once it was taken.
    bytes: Option<Bytes>,
    departure: Option<Departure>,
}

/// The time until which a request may leave. Clones agree on whether it did.
#[derive(Clone, Debug)]
pub(crate) struct Departure {
    until: Instant,
    missed: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug, Error)]
#[error("the request could not leave within {} ms of its check", LEAVE_WITHIN.as_millis())]
pub(crate) struct TooLate;

impl Departure {
    /// A request that is checked now.
    pub(crate) fn checked_now() -> Self {
        Self {
            until: Instant::now() + LEAVE_WITHIN,
            missed: Arc::default(),
        }
    }

    /// Whether the request was held back, and so has no effect.
    pub(crate) fn was_missed(&self) -> bool {
        self.missed.load(Ordering::Acquire)
    }
}

impl RequestBody {
    /// Holds the body back if it is asked for after `departure`; without one, never.
    pub(crate) fn leave_by(&mut self, departure: Option<Departure>) {
        self.departure = departure;
    }
}

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes: Some(bytes.into()),
            departure: None,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = TooLate;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TooLate>>> {
        let bytes = self.bytes.take();
        if let Some(departure) = self.departure.as_ref().filter(|_| bytes.is_some())
            && Instant::now() > departure.until
        {
            departure.missed.store(true, Ordering::Release);
            return Poll::Ready(Some(Err(TooLate)));
        }
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }
}
