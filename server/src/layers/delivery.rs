//! The delivery of the response of a call to a peer that may not read it.
//!
//! hyper does not poll the body of a stream whose peer accepts no more data. Such a body alone could neither end nor be freed, so a peer
//! could leave any number of responses unread. A separate task holds the body and its bytes, and hands them to hyper in small pieces.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use service::transport::{Credential, Ended};
use tokio::{
    sync::mpsc,
    time::{Instant, Sleep, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, body::Body, codegen::Bytes};

use super::instrumented::{InstrumentedCall, poll_end};
use crate::{
    capacity::{Pool, Slot},
    error::Refusal,
    peer::ConnectionPeer,
};

/// The maximum size of a piece, in bytes. A stream that has ended keeps up to two pieces until its peer reads them or its connection ends.
const PIECE: usize = 4 << 10;
/// A piece, and the end of the response, for which there is always room.
const QUEUE: usize = 2;

type Item = Result<Frame<Bytes>, Status>;

/// The body of a response, watched for its status. It can end early.
struct WatchedBody {
    /// `None` after the end.
    body: Option<Body>,
    call: InstrumentedCall,
    /// Ready when the peer's certificate is not valid any more.
    ended: Option<Pin<Box<dyn Future<Output = Ended> + Send>>>,
    /// Ready at the caller's deadline.
    deadline: Option<Pin<Box<Sleep>>>,
}

/// Watches the response of a call until its status is known. The response ends early if its slot is taken, the deadline passes, or the
/// peer's certificate is not valid any more.
pub(super) fn deliver(
    mut call: InstrumentedCall,
    response: Response<Body>,
    peer: ConnectionPeer,
    deadline: Option<Instant>,
) -> Response<Body> {
    if let Some(status) = Status::from_header_map(response.headers()) {
        call.code = status.code();
        return response;
    }
    let proved = peer.proved.clone();
    let has_certificate = matches!(proved.credential, Credential::Certificate(_));
    let (is_session, received) = (call.is_session(), Arc::clone(&call.shared.received));
    response.map(|body| {
        let body = WatchedBody {
            body: Some(body),
            call,
            ended: has_certificate.then(|| Box::pin(proved.ended()) as _),
            deadline: deadline.map(|until| Box::pin(sleep_until(until))),
        };
        // The frames of a session that the agent has not read count already, also after its end.
        if is_session {
            Body::new(body)
        } else {
            in_pieces(body, received, peer)
        }
    })
}

/// A body whose frames come from `body`. Their bytes count for the peer in `bytes` until they are handed over.
fn in_pieces(body: WatchedBody, bytes: Arc<Pool>, peer: ConnectionPeer) -> Body {
    let (pieces, queue) = mpsc::channel(QUEUE);
    let last = pieces.clone().try_reserve_owned();
    let last = last.expect("the queue is empty");
    tokio::spawn(async move {
        // The call is counted as handled before its peer knows that.
        if let Some(end) = hand_over(body, &pieces, &bytes, &peer).await {
            last.send(end);
        }
    });
    Body::new(StreamBody::new(ReceiverStream::new(queue)))
}

/// Hands over the data of a body, and returns its end; `None` if there is no more to send.
async fn hand_over(
    mut body: WatchedBody,
    pieces: &mpsc::Sender<Item>,
    bytes: &Arc<Pool>,
    peer: &ConnectionPeer,
) -> Option<Item> {
    loop {
        let frame = tokio::select! {
            biased;
            () = pieces.closed() => return None,
            frame = body.frame() => frame?,
        };
        let mut data = match frame.map(Frame::into_data) {
            Ok(Ok(data)) => data,
            Ok(Err(trailers)) => return Some(Ok(trailers)),
            Err(status) => return Some(Err(status)),
        };
        let mut held = match peer.take(bytes, data.len()) {
            Ok(held) => held,
            Err(refusal) => return Some(Ok(body.end(refusal))),
        };
        while !data.is_empty() {
            let room = tokio::select! {
                biased;
                refusal = poll_fn(|cx| poll_over(&mut body, &mut held, cx)) => {
                    return Some(Ok(body.end(refusal)));
                }
                room = pieces.reserve() => room.ok()?,
            };
            // A copy, because a part would keep the memory of the whole.
            let piece = data.split_to(data.len().min(PIECE));
            room.send(Ok(Frame::data(Bytes::copy_from_slice(&piece))));
        }
    }
}

impl WatchedBody {
    /// The last frame of a body that ends early.
    fn end(&mut self, refusal: Refusal) -> Frame<Bytes> {
        // The drop of the body tells a session that its stream has ended.
        self.body = None;
        self.call.end(refusal)
    }

    /// Ready when the body must end although its peer may read on.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Refusal> {
        match self.poll_due(cx) {
            Poll::Pending => self.poll_ended(cx),
            due @ Poll::Ready(_) => due,
        }
    }

    /// Ready when the slot of the call is taken, or its deadline has passed.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<Refusal> {
        if let Poll::Ready(refusal) = poll_end(&mut self.call.slot, cx) {
            return Poll::Ready(refusal);
        }
        let deadline = self.deadline.as_mut().map(|it| it.as_mut().poll(cx));
        deadline.map_or(Poll::Pending, |it| it.map(|()| Refusal::DeadlineExceeded))
    }

    /// Ready when the peer's certificate is not valid any more.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Refusal> {
        let ended = self.ended.as_mut().map(|it| it.as_mut().poll(cx));
        ended.map_or(Poll::Pending, |it| it.map(Refusal::CertificateEnded))
    }
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let this = &mut *self;
        if this.body.is_none() {
            return Poll::Ready(None);
        }
        // Polled before the body, so that a stream that always has frames ends too.
        if let Poll::Ready(refusal) = this.poll_due(cx) {
            return Poll::Ready(Some(Ok(this.end(refusal))));
        }
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        if polled.is_pending()
            && let Poll::Ready(refusal) = this.poll_ended(cx)
        {
            return Poll::Ready(Some(Ok(this.end(refusal))));
        }
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(status) = frame.trailers_ref().and_then(Status::from_header_map)
        {
            this.call.code = status.code();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }
}

/// Ready when a response that nobody reads must end.
fn poll_over(body: &mut WatchedBody, held: &mut Slot, cx: &mut Context<'_>) -> Poll<Refusal> {
    match held.poll_end(cx) {
        Poll::Pending => body.poll_over(cx),
        over @ Poll::Ready(_) => over,
    }
}

#[cfg(test)]
mod tests {
    use http::Extensions;
    use http_body_util::{Collected, Full};
    use tokio::task::yield_now;
    use tonic::Code;

    use super::*;
    use crate::{session::tests::shared, shared::Shared};

    /// So many responses of this size do not fit the maximum number of bytes.
    const COUNT: usize = 17;
    const SIZE: usize = 4 << 20;

    fn response(shared: &Arc<Shared>, bytes: usize) -> Body {
        let peer = ConnectionPeer::of(&Extensions::new());
        let mut call = InstrumentedCall::start(shared, "/decree.v1.DecisionService/Decide");
        call.begin(&peer).expect("there is room");
        let body = Body::new(Full::new(Bytes::from(vec![0; bytes])));
        deliver(call, Response::new(body), peer, None).into_body()
    }

    /// Lets the tasks run until they wait for readers.
    async fn settle() {
        for _ in 0..COUNT {
            yield_now().await;
        }
    }

    async fn read(body: Body) -> Collected<Bytes> {
        body.collect().await.expect("it ends in order")
    }

    #[tokio::test]
    async fn responses_that_nobody_reads_give_way_and_free_their_bytes() {
        let shared = shared();
        let mut unread = Vec::from_iter((0..COUNT).map(|_| response(&shared, SIZE)));
        settle().await;
        let last = unread.pop().expect("there are several");
        let first = read(unread.swap_remove(0)).await;
        let status = first.trailers().and_then(Status::from_header_map);
        assert_eq!(status.map(|it| it.code()), Some(Code::ResourceExhausted));
        assert!(first.to_bytes().len() <= PIECE);
        assert_eq!(read(last).await.to_bytes().len(), SIZE);
    }

    #[tokio::test]
    async fn call_whose_response_nobody_reads_gives_its_slot_back() {
        let shared = shared();
        let calls = shared.config.limits.calls_max;
        let _unread = Vec::from_iter((0..calls).map(|_| response(&shared, 2 * PIECE)));
        settle().await;
        let _newcomer = response(&shared, 2 * PIECE);
        settle().await;
        let ended = [
            ("grpc_type", "unary"),
            ("grpc_service", "decree.v1.DecisionService"),
            ("grpc_method", "Decide"),
            ("grpc_code", "ResourceExhausted"),
        ];
        let handled = shared.metrics.grpc_handled.get_or_create_owned(&ended);
        assert_eq!(handled.get(), 1);
    }
}
