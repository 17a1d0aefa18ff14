//! Ends the streams of a peer whose certificate does not hold any more.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderMap, Response};
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body, codegen::Bytes};
use transport::{Credential, Ended, Peer};

use crate::error::Refusal;

/// A response's body that ends early, with a status that says why.
struct Ending {
    /// `None` after the early end.
    body: Option<Body>,
    ended: Pin<Box<dyn Future<Output = Ended> + Send>>,
}

/// Makes a response end when the peer's certificate does; that of a peer without one is left as it is.
pub(crate) fn until_ended(response: Response<Body>, peer: &Peer) -> Response<Body> {
    if !matches!(peer.credential, Credential::Certificate(_)) {
        return response;
    }
    let ended = Box::pin(peer.clone().ended());
    response.map(|body| {
        Body::new(Ending {
            body: Some(body),
            ended,
        })
    })
}

// === impl Ending ===

impl http_body::Body for Ending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(polled) = Pin::new(body).poll_frame(cx) {
            return Poll::Ready(polled);
        }
        let Poll::Ready(ended) = self.ended.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        // With the body goes whoever fills it: a session learns that nobody reads it.
        self.body = None;
        let mut trailers = HeaderMap::new();
        let status = Status::from(Refusal::CertificateEnded(ended));
        Poll::Ready(Some(
            status
                .add_header(&mut trailers)
                .map(|()| Frame::trailers(trailers)),
        ))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        // It may end early: only the lower bound of nothing is sure, and no exact size.
        SizeHint::default()
    }
}
