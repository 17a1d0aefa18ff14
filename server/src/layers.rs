//! The layer of every call: a check that it is gRPC, bounds, counters, access, details for the statuses of tonic, and the end of calls
//! whose peer has an invalid certificate.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use service::admission::deadline;
use tokio::time::Instant;
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use self::{delivery::deliver, instrumented::InstrumentedCall, received::Received};
use crate::{access::Access, error::from_transport, peer::ConnectionPeer, shared::Shared};

mod delivery;
mod instrumented;
mod received;
mod single;

const GRPC: &str = "application/grpc";
/// The header with the supported compressions, part of the refusal of any other.
const ENCODINGS: &str = "grpc-accept-encoding";
const DETAILS: &str = "grpc-status-details-bin";
const INSPECTION: &str = "/decree.v1.InspectionService/";
/// The largest message to that service: a watch keeps it, and a list gives it to each session.
const QUESTION_BYTES_MAX: usize = 64 << 10;

#[derive(Clone, Debug)]
pub(crate) struct CallLayer(pub(crate) Arc<Shared>);

#[derive(Clone, Debug)]
pub(crate) struct CallService<S> {
    shared: Arc<Shared>,
    inner: S,
}

impl<S> Layer<S> for CallLayer {
    type Service = CallService<S>;

    fn layer(&self, inner: S) -> CallService<S> {
        let shared = Arc::clone(&self.0);
        CallService { shared, inner }
    }
}

impl<S> Service<Request<Body>> for CallService<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if let Some(refused) = not_grpc(&request) {
            return Box::pin(async { Ok(refused) });
        }
        let shared = Arc::clone(&self.shared);
        let max = message_max(&request, &shared);
        let mut counted = InstrumentedCall::start(&shared, request.uri().path());
        let peer = ConnectionPeer::of(request.extensions());
        if let Err(refusal) = counted.begin(&peer) {
            return Box::pin(async { Ok(counted.refuse(refusal)) });
        }
        // Read before tonic starts its timeout, so that this deadline passes first.
        let (asked, limit) = (
            deadline::requested(request.headers()),
            shared.config.deadline,
        );
        let until = Instant::now() + asked.map_or(limit, |asked| asked.min(limit));
        // The caller's deadline bounds streams too. A session is the exception, because it ends with a frame.
        let last = asked.filter(|_| !counted.is_session());
        let last = last.map(|asked| Instant::now() + asked);
        let is_http2 = request.version() == Version::HTTP_2;
        let mut request =
            request.map(|body| Received::new(body, is_http2, Arc::clone(&shared), peer.clone()));
        if let Some(slot) = &counted.slot {
            request.extensions_mut().insert(slot.handle().clone());
        }
        // Only the instance that was polled ready may be called.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        let access = Arc::clone(&shared.access);
        let call = move |request| guarded(access, ready, request);
        Box::pin(async move {
            // Many calls with credentials to check may arrive at once. The queue lets sessions run between them.
            peer.queue(&shared.beginning).pass().await;
            let response = if counted.has_one_message() {
                single::answer(max, call, request, until, &mut counted.slot).await?
            } else {
                call(request.map(Body::new)).await?
            };
            Ok(deliver(counted, with_details(response, max), peer, last))
        })
    }
}

/// The size of the largest message of a call.
fn message_max(request: &Request<Body>, shared: &Shared) -> usize {
    let max = shared.config.limits.frame_bytes_max;
    if request.uri().path().starts_with(INSPECTION) {
        max.min(QUESTION_BYTES_MAX)
    } else {
        max
    }
}

async fn guarded<S>(
    access: Arc<Access>,
    mut service: S,
    mut request: Request<Body>,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<Body>>,
{
    if let Err(refusal) = access.guard(&mut request).await {
        return Ok(Status::from(refusal).into_http());
    }
    service.call(request).await
}

/// The HTTP response to a request that is not gRPC. A browser's form must not be able to reach a method.
fn not_grpc(request: &Request<Body>) -> Option<Response<Body>> {
    let (status, header, value) = if request.method() != Method::POST {
        (StatusCode::METHOD_NOT_ALLOWED, header::ALLOW, "POST")
    } else if !is_grpc(request.headers().get(header::CONTENT_TYPE)) {
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, header::ACCEPT, GRPC)
    } else {
        return None;
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let value = HeaderValue::from_static(value);
    response.headers_mut().insert(header, value);
    Some(response)
}

fn is_grpc(content_type: Option<&HeaderValue>) -> bool {
    let rest = content_type.and_then(|value| value.to_str().ok()?.strip_prefix(GRPC));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// Adds the `ErrorInfo` that every status of this server has to a status without details.
fn with_details(response: Response<Body>, frame_bytes_max: usize) -> Response<Body> {
    let headers = response.headers();
    let Some(status) = Status::from_header_map(headers) else {
        return response;
    };
    if status.code() == Code::Ok || headers.contains_key(DETAILS) {
        return response;
    }
    let mut detailed: Response<Body> =
        Status::from(from_transport(&status, frame_bytes_max)).into_http();
    if let Some(encodings) = headers.get(ENCODINGS) {
        detailed.headers_mut().insert(ENCODINGS, encodings.clone());
    }
    detailed
}
