//! A request body whose bytes count for the peer until they form a complete message. In a call with one message, the bytes count until the
//! answer.

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

use crate::{capacity::Slot, error::Refusal, peer::ConnectionPeer, shared::Shared};

/// The flag and the length before each message.
const HEADER: usize = 5;
/// How long the peer of an early answered call may take to end its side. A stream that ends in order is free, but a reset stream counts
/// against its connection.
const LINGER: Duration = Duration::from_secs(1);

/// The body of a request.
#[derive(Debug)]
pub(super) struct Received {
    /// `None` after the end.
    body: Option<Body>,
    is_http2: bool,
    shared: Arc<Shared>,
    peer: ConnectionPeer,
    framing: Framing,
    held: Option<Slot>,
    /// The maximum size of the message in a call with one message. Then all bytes are held.
    only: Option<usize>,
    completed: usize,
}

/// The position of a byte stream in its sequence of messages.
#[derive(Clone, Copy, Debug, Default)]
struct Framing {
    header: [u8; HEADER],
    /// The number of bytes in `header`.
    come: usize,
    /// The missing bytes of the current message.
    left: usize,
}

impl Received {
    /// Counts the bytes of `body` for `peer`.
    pub(super) fn new(
        body: Body,
        is_http2: bool,
        shared: Arc<Shared>,
        peer: ConnectionPeer,
    ) -> Self {
        Self {
            body: Some(body),
            is_http2,
            shared,
            peer,
            framing: Framing::default(),
            held: None,
            only: None,
            completed: 0,
        }
    }

    /// Receives the message of a call with one message, of at most `max` bytes. Returns its bytes, header included, with their slot. There
    /// are no bytes if the message is incomplete.
    pub(super) async fn whole(mut self, max: usize) -> Result<(Bytes, Option<Slot>), Status> {
        self.only = Some(max);
        let mut bytes = Vec::new();
        while let Some(frame) = self.frame().await {
            if let Ok(piece) = frame?.into_data() {
                bytes.extend_from_slice(&piece);
            }
        }
        if self.completed == 0 {
            // Fewer bytes arrived than announced.
            bytes.clear();
        }
        Ok((bytes.into(), self.held.take()))
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Refusal> {
        if let Some(held) = &mut self.held {
            return held.grow(bytes);
        }
        self.held = Some(self.peer.take(&self.shared.received, bytes)?);
        Ok(())
    }

    fn count(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        let (completed, open) = self.framing.advance(piece);
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
            return Err(Refusal::Malformed {
                detail: "more than one message in a call that has one".to_owned(),
            });
        }
        self.hold(piece.len())
    }
}

/// The refusal as a body error, from which the refusal can be read again.
fn refused(refusal: Refusal) -> Status {
    let mut status = Status::from(refusal.clone());
    status.set_source(Arc::new(refusal));
    status
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(held) = &mut self.held
            && let Poll::Ready(why) = held.poll_end(cx)
        {
            self.held = None;
            return Poll::Ready(Some(Err(refused(why))));
        }
        let is_http2 = self.is_http2;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(&mut *body).poll_frame(cx);
        match &polled {
            Poll::Ready(None) if !is_http2 || body.is_end_stream() => self.body = None,
            // hyper also ends the body of a stream of HTTP/2 that was reset without an error. Nobody reads an answer on a broken stream. For tonic,
            // `CANCELLED` would be an end in order, and `INTERNAL` a message that cannot be decoded.
            Poll::Ready(None | Some(Err(_))) => {
                self.body = None;
                return Poll::Ready(Some(Err(Status::aborted("the stream broke"))));
            }
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(piece) = frame.data_ref()
                    && let Err(refusal) = self.count(piece)
                {
                    return Poll::Ready(Some(Err(refused(refusal))));
                }
            }
            Poll::Pending => {}
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
            // A peer that continues to send is reset.
            runtime.spawn(async { drop(timeout(LINGER, rest).await) });
        }
    }
}

impl Framing {
    /// Takes a piece of a body. Returns the number of messages that the piece completes, and the number of its bytes that belong to an
    /// incomplete message.
    fn advance(&mut self, mut piece: &[u8]) -> (usize, usize) {
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
        (completed, open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advanced(pieces: &[&[u8]]) -> Vec<(usize, usize)> {
        let mut framing = Framing::default();
        pieces.iter().map(|piece| framing.advance(piece)).collect()
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
