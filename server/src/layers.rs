//! What every call passes: a guard against what is not gRPC, counters, and details for statuses that tonic writes itself.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use self::instrumented::InstrumentedCall;
use crate::{error::from_transport, metrics::Metrics};

mod instrumented;

const GRPC: &str = "application/grpc";
/// Says which compressions are spoken; it comes with the refusal of any other.
const ENCODINGS: &str = "grpc-accept-encoding";
const DETAILS: &str = "grpc-status-details-bin";

/// Wraps a server's services.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    pub(crate) metrics: Metrics,
    pub(crate) frame_bytes_max: usize,
}

/// What [`Front`] makes of a service.
#[derive(Clone, Debug)]
pub(crate) struct Fronted<S> {
    front: Front,
    inner: S,
}

impl<S> Layer<S> for Front {
    type Service = Fronted<S>;

    fn layer(&self, inner: S) -> Fronted<S> {
        Fronted {
            front: self.clone(),
            inner,
        }
    }
}

impl<S> Service<Request<Body>> for Fronted<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
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
        let max = self.front.frame_bytes_max;
        let call = InstrumentedCall::start(&self.front.metrics, request.uri().path());
        let response = self.inner.call(request);
        Box::pin(async move { Ok(call.watch(with_details(response.await?, max))) })
    }
}

/// Returns the HTTP answer to what is no gRPC call. A browser's form must not be able to reach a method.
fn not_grpc(request: &Request<Body>) -> Option<Response<Body>> {
    let status = if request.method() != Method::POST {
        StatusCode::METHOD_NOT_ALLOWED
    } else if !is_grpc(request.headers().get(header::CONTENT_TYPE)) {
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    } else {
        return None;
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
    } else {
        headers.insert(header::ACCEPT, HeaderValue::from_static(GRPC));
    }
    Some(response)
}

fn is_grpc(content_type: Option<&HeaderValue>) -> bool {
    let rest = content_type.and_then(|value| value.to_str().ok()?.strip_prefix(GRPC));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// Gives a status that came without details the `ErrorInfo` that every status of this server has.
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
