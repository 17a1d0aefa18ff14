//! The body of a request, with its bytes counted while they can be of no use: those of a message that has not arrived completely,
//! and all of a call that has one message.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use tokio::{runtime::Handle, time::timeout};
use tonic::{Status, body::Body, codegen::Bytes};

use crate::{
    error::{Refusal, from_transport},
    peer::Peer,
    places::{Full, Place, Rank},
    shared::Shared,
};

/// The flag and the length before each message.
const HEADER: usize = 5;
/// How long the peer of a call that has been answered early may take to end its side. A stream that ends in order costs nothing; one
/// that is reset counts against its connection.
const LINGER: Duration = Duration::from_secs(1);

/// The body of a request.
#[derive(Debug)]
pub(super) struct Received {
    /// `None` once it has ended.
    body: Option<Body>,
    shared: Arc<Shared>,
    peer: Peer,
    framing: Framing,
    held: Option<Place>,
    /// The most bytes of the one message of the call, where it has one. Then all bytes are held.
    only: Option<usize>,
    completed: usize,
}

/// The one message of a call as it came, its header included, and the place of its bytes.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) bytes: Bytes,
    pub(super) held: Option<Place>,
}

/// Where in the sequence of messages a stream of bytes is.
#[derive(Clone, Copy, Debug, Default)]
struct Framing {
    header: [u8; HEADER],
    /// How much of `header` has come.
    come: usize,
    /// What is missing of the message behind it.
    left: usize,
}

/// What a piece of a body leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    /// How many messages it completes.
    completed: usize,
    /// How many of its bytes belong to a message that it does not complete.
    open: usize,
}

// === impl Received ===

impl Received {
    pub(super) fn new(body: Body, shared: &Arc<Shared>, peer: &Peer) -> Self {
        Self {
            body: Some(body),
            shared: Arc::clone(shared),
            peer: peer.clone(),
            framing: Framing::default(),
            held: None,
            only: None,
            completed: 0,
        }
    }

    /// Receives the one message of a call.
    pub(super) async fn whole(mut self, max: usize) -> Result<Message, Refusal> {
        self.only = Some(max);
        let mut bytes = Vec::new();
        while let Some(frame) = self.frame().await {
            let frame = frame.map_err(|status| from_transport(&status, max))?;
            if let Ok(piece) = frame.into_data() {
                bytes.extend_from_slice(&piece);
            }
        }
        if self.completed == 0 {
            // Whatever there is says less than it announces.
            bytes.clear();
        }
        Ok(Message {
            bytes: bytes.into(),
            held: self.held.take(),
        })
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Refusal> {
        let held = match &self.held {
            Some(held) => held.grow(bytes),
            None => self
                .peer
                .take_weight(&self.shared.received, Rank::Settled, bytes)
                .map(|place| self.held = Some(place)),
        };
        held.map_err(|Full| self.shared.received_refusal())
    }

    /// Counts a piece of the body.
    fn count(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        let Progress { completed, open } = self.framing.advance(piece);
        let Some(max) = self.only else {
            if completed > 0 {
                self.held = None;
            }
            return if open > 0 { self.hold(open) } else { Ok(()) };
        };
        if self.framing.left > max {
            return Err(Refusal::TooLarge { max });
        }
        self.completed += completed;
        if self.completed > 1 || (self.completed == 1 && open > 0) {
            let detail = "more than one message in a call that has one".to_owned();
            return Err(Refusal::Malformed { detail });
        }
        self.hold(piece.len())
    }
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(held) = &mut self.held
            && held.poll_taken(cx).is_ready()
        {
            self.held = None;
            return Poll::Ready(Some(Err(failed(self.shared.received_refusal()))));
        }
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        match &polled {
            Poll::Ready(None) => self.body = None,
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(piece) = frame.data_ref()
                    && let Err(refusal) = self.count(piece)
                {
                    return Poll::Ready(Some(Err(failed(refusal))));
                }
            }
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        let Some(mut body) = self.body.take() else {
            return;
        };
        if let Ok(runtime) = Handle::try_current()
            && !body.is_end_stream()
        {
            let rest = async move { while let Some(Ok(_)) = body.frame().await {} };
            // A peer that goes on is reset.
            runtime.spawn(async { drop(timeout(LINGER, rest).await) });
        }
    }
}

/// Returns a refusal as an error of a body, from which it can be told again.
fn failed(refusal: Refusal) -> Status {
    let mut status = Status::from(refusal.clone());
    status.set_source(Arc::new(refusal));
    status
}

// === impl Framing ===

impl Framing {
    fn advance(&mut self, mut piece: &[u8]) -> Progress {
        let (mut completed, mut open) = (0, 0);
        while !piece.is_empty() {
            if self.come < HEADER {
                let (come, rest) = piece.split_at(piece.len().min(HEADER - self.come));
                self.header[self.come..][..come.len()].copy_from_slice(come);
                self.come += come.len();
                open += come.len();
                piece = rest;
                if self.come < HEADER {
                    break;
                }
                let [_, length @ ..] = self.header;
                self.left = u32::from_be_bytes(length) as usize;
            }
            let here = piece.len().min(self.left);
            self.left -= here;
            open += here;
            piece = &piece[here..];
            if self.left == 0 {
                *self = Self::default();
                completed += 1;
                open = 0;
            }
        }
        Progress { completed, open }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advanced(pieces: &[&[u8]]) -> Vec<(usize, usize)> {
        let mut framing = Framing::default();
        let progress = pieces.iter().map(|piece| framing.advance(piece));
        progress.map(|it| (it.completed, it.open)).collect()
    }

    #[test]
    fn only_what_a_message_lacks_is_open() {
        let whole = [0, 0, 0, 0, 2, 7, 7];
        let empty = [0, 0, 0, 0, 0];
        let parts = [&whole[..3], &whole[3..6], &whole[6..]];
        let one_and_a_half = [&whole[..], &whole[..4]].concat();
        let empty_and_a_part = [&empty[..], &whole[..6]].concat();
        assert_eq!(advanced(&[&whole]), [(1, 0)]);
        assert_eq!(advanced(&[&empty]), [(1, 0)]);
        assert_eq!(advanced(&parts), [(0, 3), (0, 3), (1, 0)]);
        assert_eq!(advanced(&[&one_and_a_half, &whole[4..]]), [(1, 4), (1, 0)]);
        assert_eq!(advanced(&[&empty_and_a_part]), [(1, 6)]);
    }
}
