//! One stream of `Reconcile` that can send any bytes.

use std::{error::Error as _, time::Duration};

use bytes::{BufMut as _, Bytes};
use decree_api::v1;
use prost::Message as _;
use tokio::{sync::mpsc, time};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code, Request, Status, Streaming,
    client::Grpc,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
    transport::Channel,
};
use tonic_types::StatusExt as _;

const RECONCILE: &str = "/decree.v1.DecisionService/Reconcile";
/// The timeout for opening a stream, which only a hanging server reaches.
const OPENING: Duration = Duration::from_mins(2);
/// The capacity of the queue of frames.
const QUEUE: usize = 16;

pub(crate) struct Stream {
    pub(crate) frames: Option<mpsc::Sender<Bytes>>,
    pub(crate) answers: Streaming<v1::ReconcileResponse>,
}

/// Sends bytes unchanged, and reads frames.
#[derive(Clone, Copy, Default)]
struct AnyFrames;

/// The end of a call in words: `OK`, or the code and the reason of the refusal.
pub(crate) fn ending(status: &Status) -> String {
    if status.code() == Code::Ok {
        return "OK".to_owned();
    }
    // A client reports a broken connection as one of two codes, by the moment of the break. A status from a server has no source.
    if status.code() == Code::Unknown && status.source().is_some() {
        return format!("{:?}", Code::Unavailable);
    }
    let reason = status.get_details_error_info().map(|info| info.reason);
    let code = format!("{:?}", status.code());
    match reason {
        Some(reason) => format!("{code} {reason}"),
        None => code,
    }
}

impl Stream {
    /// Opens a stream, with an optional header `authorization`, and sends nothing.
    pub(crate) async fn open(
        channel: Channel,
        authorization: Option<String>,
    ) -> Result<Self, Status> {
        let (frames, outbound) = mpsc::channel(QUEUE);
        let mut client = Grpc::new(channel).max_decoding_message_size(64 << 20);
        let ready = client.ready().await;
        ready.map_err(|_| Status::unavailable("the connection is gone"))?;
        let mut request = Request::new(ReceiverStream::new(outbound));
        if let Some(value) = authorization {
            let value = value.parse().expect("tokens are printable");
            request.metadata_mut().insert("authorization", value);
        }
        let path = PathAndQuery::from_static(RECONCILE);
        let opened = time::timeout(OPENING, client.streaming(request, path, AnyFrames)).await;
        let opened = opened.map_err(|_| Status::unavailable("no answer"))?;
        Ok(Self {
            frames: Some(frames),
            answers: opened?.into_inner(),
        })
    }

    /// Sends bytes as one message. No error if the stream has ended.
    pub(crate) async fn send(&self, bytes: Bytes) {
        if let Some(frames) = &self.frames {
            // The answers show the end of the stream.
            let _ = frames.send(bytes).await;
        }
    }
}

impl Codec for AnyFrames {
    type Encode = Bytes;
    type Decode = v1::ReconcileResponse;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for AnyFrames {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

impl Decoder for AnyFrames {
    type Item = v1::ReconcileResponse;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let decoded = v1::ReconcileResponse::decode(from);
        decoded
            .map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}
