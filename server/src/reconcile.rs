//! `Reconcile` with the agent's frames as bytes. A session reads them part by part, so that a frame neither keeps others waiting while
//! it is decoded nor takes a multiple of its size in memory.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use decree::v1::{self, decision_service_server::DecisionServiceServer};
use http::{Request, Response};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Status, Streaming,
    body::Body,
    codec::{Codec, DecodeBuf, Decoder},
    server::{Grpc, NamedService, StreamingService},
};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::service::Decisions;

/// The path of the method.
const RECONCILE: &str = "/decree.v1.DecisionService/Reconcile";

/// Serves `DecisionService`: `Reconcile` here, the others by what is generated.
#[derive(Clone, Debug)]
pub(crate) struct DecisionsServer {
    decisions: Decisions,
    unary: DecisionServiceServer<Decisions>,
    frame_bytes_max: usize,
}

/// Takes messages as they are and writes frames.
#[derive(Clone, Copy, Debug)]
struct FrameCodec;

/// Takes messages as they are.
#[derive(Clone, Copy, Debug)]
struct FrameDecoder;

/// The method, as tonic calls it.
struct Reconcile(Decisions);

// === impl DecisionsServer ===

impl DecisionsServer {
    /// Returns a service whose messages have at most so many bytes.
    pub(crate) fn new(decisions: Decisions, frame_bytes_max: usize) -> Self {
        let unary = DecisionServiceServer::new(decisions.clone())
            .max_decoding_message_size(frame_bytes_max)
            .max_encoding_message_size(frame_bytes_max);
        Self {
            decisions,
            unary,
            frame_bytes_max,
        }
    }
}

impl NamedService for DecisionsServer {
    const NAME: &'static str = <DecisionServiceServer<Decisions> as NamedService>::NAME;
}

impl Service<Request<Body>> for DecisionsServer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.uri().path() != RECONCILE {
            return self.unary.call(request);
        }
        let method = Reconcile(self.decisions.clone());
        let mut grpc = Grpc::new(FrameCodec)
            .max_decoding_message_size(self.frame_bytes_max)
            .max_encoding_message_size(self.frame_bytes_max);
        Box::pin(async move { Ok(grpc.streaming(method, request).await) })
    }
}

// === impl Reconcile ===

impl StreamingService<Bytes> for Reconcile {
    type Response = v1::ReconcileResponse;
    type ResponseStream = ReceiverStream<Result<v1::ReconcileResponse, Status>>;
    type Future = std::future::Ready<Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        std::future::ready(self.0.open(request))
    }
}

// === impl FrameCodec ===

impl Codec for FrameCodec {
    type Encode = v1::ReconcileResponse;
    type Decode = Bytes;
    type Encoder = <ProstCodec<v1::ReconcileResponse, ()> as Codec>::Encoder;
    type Decoder = FrameDecoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<v1::ReconcileResponse, ()>::default().encoder()
    }

    fn decoder(&mut self) -> FrameDecoder {
        FrameDecoder
    }
}

// === impl FrameDecoder ===

impl Decoder for FrameDecoder {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}
