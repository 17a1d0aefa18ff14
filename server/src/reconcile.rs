//! The methods of `DecisionService` whose messages may be large, as bytes.
//!
//! A session reads its frames part by part, so that one neither keeps others waiting while it is decoded nor takes a multiple of its size
//! in memory. Decisions are read and written by the threads that compute them.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, BufMut as _, Bytes};
use decree::v1::decision_service_server::DecisionServiceServer;
use http::{Request, Response};
use server_session::OutgoingFrame;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Status, Streaming,
    body::Body,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server::{Grpc, NamedService, StreamingService, UnaryService},
};
use tower::Service;

use crate::service::Decisions;

const RECONCILE: &str = "/decree.v1.DecisionService/Reconcile";
const DECIDE: &str = "/decree.v1.DecisionService/Decide";
const SIMULATE: &str = "/decree.v1.DecisionService/Simulate";

/// Serves `DecisionService`: what may be large here, the others by what is generated.
#[derive(Clone, Debug)]
pub(crate) struct DecisionsServer {
    decisions: Decisions,
    unary: DecisionServiceServer<Decisions>,
    frame_bytes_max: usize,
}

/// Takes messages as they are and writes frames.
#[derive(Clone, Copy, Debug)]
struct FrameCodec;

/// Writes frames.
#[derive(Clone, Copy, Debug)]
struct FrameEncoder;

/// Takes messages as they are.
#[derive(Clone, Copy, Debug)]
struct FrameDecoder;

/// Takes and writes messages as they are.
#[derive(Clone, Copy, Debug)]
struct MessageCodec;

/// Writes messages as they are.
#[derive(Clone, Copy, Debug)]
struct MessageEncoder;

type Answer = Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, Status>> + Send>>;

/// The methods, as tonic calls them.
struct Reconcile(Decisions);
struct Decide(Decisions);
struct Simulate(Decisions);

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
        let (max, decisions) = (self.frame_bytes_max, self.decisions.clone());
        match request.uri().path() {
            RECONCILE => {
                let mut grpc = bounded(FrameCodec, max);
                let method = Reconcile(decisions);
                Box::pin(async move { Ok(grpc.streaming(method, request).await) })
            }
            DECIDE => {
                let mut grpc = bounded(MessageCodec, max);
                Box::pin(async move { Ok(grpc.unary(Decide(decisions), request).await) })
            }
            SIMULATE => {
                let mut grpc = bounded(MessageCodec, max);
                Box::pin(async move { Ok(grpc.unary(Simulate(decisions), request).await) })
            }
            _ => self.unary.call(request),
        }
    }
}

fn bounded<C: Codec>(codec: C, max: usize) -> Grpc<C> {
    Grpc::new(codec)
        .max_decoding_message_size(max)
        .max_encoding_message_size(max)
}

// === impl Reconcile ===

impl StreamingService<Bytes> for Reconcile {
    type Response = OutgoingFrame;
    type ResponseStream = ReceiverStream<Result<OutgoingFrame, Status>>;
    type Future = std::future::Ready<Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        std::future::ready(self.0.open(request))
    }
}

// === impl Decide ===

impl UnaryService<Bytes> for Decide {
    type Response = Bytes;
    type Future = Answer;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Answer {
        let decisions = self.0.clone();
        Box::pin(async move { decisions.decide_bytes(request).await })
    }
}

// === impl Simulate ===

impl UnaryService<Bytes> for Simulate {
    type Response = Bytes;
    type Future = Answer;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Answer {
        let decisions = self.0.clone();
        Box::pin(async move { decisions.simulate_bytes(request).await })
    }
}

// === impl FrameCodec ===

impl Codec for FrameCodec {
    type Encode = OutgoingFrame;
    type Decode = Bytes;
    type Encoder = FrameEncoder;
    type Decoder = FrameDecoder;

    fn encoder(&mut self) -> FrameEncoder {
        FrameEncoder
    }

    fn decoder(&mut self) -> FrameDecoder {
        FrameDecoder
    }
}

// === impl FrameEncoder ===

impl Encoder for FrameEncoder {
    type Item = OutgoingFrame;
    type Error = Status;

    fn encode(&mut self, frame: OutgoingFrame, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        frame.encode(to);
        Ok(())
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

// === impl MessageCodec ===

impl Codec for MessageCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = MessageEncoder;
    type Decoder = FrameDecoder;

    fn encoder(&mut self) -> MessageEncoder {
        MessageEncoder
    }

    fn decoder(&mut self) -> FrameDecoder {
        FrameDecoder
    }
}

// === impl MessageEncoder ===

impl Encoder for MessageEncoder {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}
