//! Counts calls as grpc-prometheus does: started at the first byte, handled when the status is known, and the time between them.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use http::{HeaderMap, Response};
use http_body::Frame;
use server_access::method::{self, SESSION, Shape};
use service::admission::ActiveCall;
use service::transport::{Credential, Ended, Peer};
use tokio::time::{Sleep, sleep_until};
use tonic::{Code, Status, body::Body, codegen::Bytes};

use crate::{
    capacity::Slot,
    error::{Refusal, code_names},
    peer::ConnectionPeer,
    shared::Shared,
};

/// All methods that are not served share one series.
const OTHER: (&str, Shape) = ("/unknown/unknown", Shape::Unary);

/// A call that is counted as started now, and as handled on drop. It has its resources until its response has been sent.
#[derive(Debug)]
pub(super) struct InstrumentedCall {
    shared: Arc<Shared>,
    method: (&'static str, Shape),
    code: Code,
    started: Instant,
    /// The slot of the call, if it needs one.
    pub(super) slot: Option<Slot>,
    /// The mark of the call on its connection.
    active: Option<ActiveCall>,
}

type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;

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

impl InstrumentedCall {
    pub(super) fn start(shared: &Arc<Shared>, path: &str) -> Self {
        let method = method::find(path).map_or(OTHER, |it| (it.path, it.shape));
        let started = &shared.metrics.grpc_started;
        started.get_or_create(&labels(method)).inc();
        Self {
            shared: Arc::clone(shared),
            method,
            code: Code::Cancelled,
            started: Instant::now(),
            slot: None,
            active: None,
        }
    }

    /// Takes the slot of the call. Sessions have separate slots.
    pub(super) fn begin(&mut self, peer: &ConnectionPeer) -> Result<(), Refusal> {
        if let Some(ended) = peer.proved.has_ended() {
            return Err(Refusal::CertificateEnded(ended));
        }
        if !self.is_session() {
            self.slot = Some(peer.take(&self.shared.calls, 1)?);
        }
        self.active = Some(peer.activity.begin_call());
        Ok(())
    }

    pub(super) fn is_session(&self) -> bool {
        self.method.0 == SESSION
    }

    /// Whether the caller sends one message, which is not known of a method that is not served.
    pub(super) fn has_one_message(&self) -> bool {
        self.method != OTHER && self.method.1 != Shape::BidiStream
    }

    /// The end of a response that ends early.
    fn end(&mut self, refusal: Refusal) -> Frame<Bytes> {
        let status = Status::from(refusal);
        self.code = status.code();
        let mut trailers = HeaderMap::new();
        // Metadata that do not fit into a header are left out. The code always fits.
        let _ = status.add_header(&mut trailers);
        Frame::trailers(trailers)
    }

    pub(super) fn refuse(mut self, refusal: Refusal) -> Response<Body> {
        let status = Status::from(refusal);
        self.code = status.code();
        status.into_http()
    }

    /// Watches a response until its status is known. The response ends early if its slot is taken, the deadline passes, or the peer's
    /// certificate is not valid any more.
    pub(super) fn watch(
        mut self,
        response: Response<Body>,
        peer: Peer,
        deadline: Option<tokio::time::Instant>,
    ) -> Response<Body> {
        if let Some(status) = Status::from_header_map(response.headers()) {
            self.code = status.code();
            return response;
        }
        let has_certificate = matches!(peer.credential, Credential::Certificate(_));
        response.map(|body| {
            Body::new(WatchedBody {
                body: Some(body),
                call: self,
                ended: has_certificate.then(|| Box::pin(peer.ended()) as _),
                deadline: deadline.map(|until| Box::pin(sleep_until(until))),
            })
        })
    }
}

/// Ready when the holder of a slot must end; never without a slot.
pub(super) fn poll_end(slot: &mut Option<Slot>, cx: &mut Context<'_>) -> Poll<Refusal> {
    let slot = slot.as_mut();
    slot.map_or(Poll::Pending, |slot| slot.poll_end(cx))
}

fn labels((path, shape): (&'static str, Shape)) -> [(&'static str, &'static str); 3] {
    let (service, method) = path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or_default();
    [
        ("grpc_type", shape.as_str()),
        ("grpc_service", service),
        ("grpc_method", method),
    ]
}

impl Drop for InstrumentedCall {
    fn drop(&mut self) {
        let metrics = &self.shared.metrics;
        let handling = metrics.grpc_handling.get_or_create(&labels(self.method));
        handling.observe(self.started.elapsed().as_secs_f64());
        drop(handling);
        let [kind, service, method] = labels(self.method);
        let labels = [
            kind,
            service,
            method,
            ("grpc_code", code_names(self.code).0),
        ];
        metrics.grpc_handled.get_or_create(&labels).inc();
    }
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        let mut deadline = this.deadline.as_mut();
        // Polled before the body, so that a stream that always has frames ends too.
        let refusal = if let Poll::Ready(refusal) = poll_end(&mut this.call.slot, cx) {
            refusal
        } else if deadline
            .as_mut()
            .is_some_and(|it| it.as_mut().poll(cx).is_ready())
        {
            Refusal::DeadlineExceeded
        } else {
            let polled = Pin::new(body).poll_frame(cx);
            let ended = this.ended.as_mut().filter(|_| polled.is_pending());
            if let Some(Poll::Ready(ended)) = ended.map(|it| it.as_mut().poll(cx)) {
                Refusal::CertificateEnded(ended)
            } else {
                if let Poll::Ready(Some(Ok(frame))) = &polled
                    && let Some(status) = frame.trailers_ref().and_then(Status::from_header_map)
                {
                    this.call.code = status.code();
                }
                return polled;
            }
        };
        // The drop of the body tells a session that its stream has ended.
        this.body = None;
        Poll::Ready(Some(Ok(this.call.end(refusal))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }
}
