//! gRPC-web, for the pages of declared origins: a browser can neither speak gRPC nor, without TLS, HTTP/2.
//!
//! A call becomes one of gRPC before [`CallLayer`](crate::layers::CallLayer) sees it, so its identity, its permissions and its limits are those of every
//! call. The origin of a page proves nothing: the page sends a token. Browsers send neither cookies nor client certificates here, because no
//! response allows credentials.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use server_access::method::{self, Need};
use tonic::body::Body;
use tonic_web::{GrpcWebLayer, GrpcWebService};
use tower::{Layer, Service};

use crate::peer::ConnectionPeer;

/// The headers of a request that a page may set.
const ALLOWED: &str = "authorization, content-type, grpc-timeout, x-grpc-web, x-user-agent";
/// The headers of a response that a page may read: the status of a call that was refused.
const EXPOSED: &str = "grpc-status, grpc-message, grpc-status-details-bin";
/// How long a browser may remember the answer about an origin, in seconds.
const REMEMBERED: &str = "600";

#[derive(Clone, Debug)]
pub(crate) struct WebLayer(pub(crate) Arc<[HeaderValue]>);

#[derive(Clone, Debug)]
pub(crate) struct WebService<S> {
    origins: Arc<[HeaderValue]>,
    inner: GrpcWebService<S>,
}

impl<S> Layer<S> for WebLayer
where
    GrpcWebLayer: Layer<S, Service = GrpcWebService<S>>,
{
    type Service = WebService<S>;

    fn layer(&self, inner: S) -> WebService<S> {
        WebService {
            origins: Arc::clone(&self.0),
            inner: GrpcWebLayer::new().layer(inner),
        }
    }
}

impl<S> Service<Request<Body>> for WebService<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Service::<Request<Body>>::poll_ready(&mut self.inner, cx)
    }

    /// Answers a request, and lets a page of a declared origin read the response. Another page is refused also where its browser would not ask
    /// first: a page whose name was pointed to this server is of its own origin.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(origin) = request.headers().get(header::ORIGIN).cloned() else {
            return Box::pin(self.inner.call(request));
        };
        if !self.origins.contains(&origin) {
            let peer = ConnectionPeer::of(request.extensions()).address;
            tracing::warn!(%peer, ?origin, "page refused: its origin is not in --grpc-web-origins");
            return Box::pin(async { Ok(with_status(StatusCode::FORBIDDEN)) });
        }
        if request.method() == Method::OPTIONS {
            return Box::pin(async { Ok(permission(origin)) });
        }
        let method = method::find(request.uri().path());
        if method.is_some_and(|method| method.need == Need::Agent) {
            // No page is an agent.
            return Box::pin(async { Ok(with_status(StatusCode::FORBIDDEN)) });
        }
        let answered = self.inner.call(request);
        Box::pin(async { Ok(readable_by(origin, answered.await?)) })
    }
}

fn with_status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Tells a browser what a page may send.
fn permission(origin: HeaderValue) -> Response<Body> {
    let mut response = readable_by(origin, with_status(StatusCode::NO_CONTENT));
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED),
        (header::ACCESS_CONTROL_MAX_AGE, REMEMBERED),
    ] {
        add(&mut response, name, value);
    }
    response
}

fn readable_by(origin: HeaderValue, mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    add(&mut response, header::VARY, "origin");
    add(
        &mut response,
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        EXPOSED,
    );
    response
}

fn add(response: &mut Response<Body>, name: HeaderName, value: &'static str) {
    let value = HeaderValue::from_static(value);
    response.headers_mut().insert(name, value);
}

/// Parses an origin as browsers write it, so that it equals what they send.
///
/// # Errors
/// The correct format.
pub(crate) fn origin(text: &str) -> Result<HeaderValue, String> {
    let is_origin = text.parse().is_ok_and(|uri: Uri| {
        let (scheme, authority) = (uri.scheme_str(), uri.authority());
        let (Some(scheme @ ("http" | "https")), Some(authority)) = (scheme, authority) else {
            return false;
        };
        let is_default = authority.port_u16() == Some(if scheme == "http" { 80 } else { 443 });
        !is_default
            && !text.contains('@')
            && text == format!("{scheme}://{authority}").to_lowercase()
    });
    let value = HeaderValue::from_str(text).ok().filter(|_| is_origin);
    value.ok_or_else(|| {
        "must be an origin as a browser writes it, such as https://dashboard.example.org or http://localhost:3000"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_those_that_browsers_send() {
        for text in [
            "https://dashboard.example.org",
            "http://localhost:3000",
            "http://[::1]:3000",
        ] {
            assert_eq!(origin(text), Ok(HeaderValue::from_static(text)));
        }
        for text in [
            "",
            "*",
            "null",
            "dashboard.example.org",
            "https://*.example.org/",
            "https://example.org/",
            "https://example.org/page",
            "https://Example.org",
            "https://example.org:443",
            "http://example.org:80",
            "https://user@example.org",
            "file:///page.html",
        ] {
            assert!(origin(text).is_err(), "{text}");
        }
    }
}
