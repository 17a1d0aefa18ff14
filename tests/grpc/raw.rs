//! Calls below tonic's client: any method, any header, any bytes.

use std::pin::Pin;

use http::{HeaderMap, Method, Request, Response};
use http_body::Body as _;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tests::body::in_pieces;
use tonic::{Status, body::Body};

use crate::running::{Running, soon};

/// A request: one gRPC message or any other bytes.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body ends.
    pub(crate) ends: bool,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) http: u16,
    pub(crate) headers: HeaderMap,
    /// The status of gRPC, if there was one.
    pub(crate) status: Option<Status>,
}

/// Frames a message as gRPC does.
pub(crate) fn message(flag: u8, length: Option<u32>, bytes: &[u8]) -> Vec<u8> {
    let length = length.unwrap_or_else(|| u32::try_from(bytes.len()).expect("short"));
    [&[flag][..], &length.to_be_bytes(), bytes].concat()
}

// === impl Call ===

impl Call {
    /// Starts a valid call.
    pub(crate) fn new(path: &'static str, body: Vec<u8>) -> Self {
        let headers = vec![
            ("content-type", "application/grpc".to_owned()),
            ("te", "trailers".into()),
        ];
        Self {
            method: Method::POST,
            path,
            headers,
            body,
            ends: true,
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(have, _)| *have != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Leaves the body open.
    pub(crate) fn endless(mut self) -> Self {
        self.ends = false;
        self
    }

    pub(crate) async fn send(self, server: &Running) -> Answer {
        let uri = format!("http://{}{}", server.addresses.grpc, self.path);
        let mut request = Request::builder().method(self.method).uri(uri);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let body = in_pieces([self.body.into()], self.ends);
        // tonic's own client would enforce the deadline by itself.
        let client = Client::builder(TokioExecutor::new())
            .http2_only(true)
            .build_http();
        let answer = client.request(request.body(body).expect("a request"));
        read(soon(answer).await.expect("an answer").map(Body::new)).await
    }
}

async fn read(answer: Response<Body>) -> Answer {
    let (head, mut body) = answer.into_parts();
    let mut status = Status::from_header_map(&head.headers);
    while let Some(Ok(frame)) = soon(std::future::poll_fn(|cx| {
        Pin::new(&mut body).poll_frame(cx)
    }))
    .await
    {
        status = frame
            .trailers_ref()
            .and_then(Status::from_header_map)
            .or(status);
    }
    Answer {
        http: head.status.as_u16(),
        headers: head.headers,
        status,
    }
}
