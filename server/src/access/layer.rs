//! The access check before every service.

use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use tonic::{Status, body::Body};
use tower::{Layer, Service};

use super::Access;
use crate::{capacity::PlaceHandle, peer::ConnectionPeer};

/// Wraps a server's services, so that only allowed calls reach them.
#[derive(Clone, Debug)]
pub(crate) struct Authorize(pub(crate) Arc<Access>);

/// A service behind [`Authorize`].
#[derive(Clone, Debug)]
pub(crate) struct Authorized<S> {
    access: Arc<Access>,
    inner: S,
}

impl<S> Layer<S> for Authorize {
    type Service = Authorized<S>;

    fn layer(&self, inner: S) -> Authorized<S> {
        let access = Arc::clone(&self.0);
        Authorized { access, inner }
    }
}

impl<S> Service<Request<Body>> for Authorized<S>
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

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // Only the instance that was polled ready may be called; the clone becomes ready for the next call.
        let next = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, next);
        let access = Arc::clone(&self.access);
        Box::pin(async move {
            let path = request.uri().path();
            let authorized = access.authorize(path, request.headers(), request.extensions());
            match authorized.await {
                Ok(caller) => {
                    if caller.is_proven() {
                        ConnectionPeer::of(request.extensions()).prove(caller.identity());
                        if let Some(place) = request.extensions().get::<PlaceHandle>() {
                            place.prove(caller.identity());
                        }
                    }
                    request.extensions_mut().insert(caller);
                    ready.call(request).await
                }
                Err(refusal) => Ok(Status::from(refusal).into_http()),
            }
        })
    }
}
