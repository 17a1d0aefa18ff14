//! The connection to the server: one at a time, with frames in bounded channels.

use std::{error::Error as _, future::pending, path::PathBuf, time::Duration};

use agent_core::link::{Disconnect, LinkCommand, frame};
use decree_api::v1::{self, decision_service_client::DecisionServiceClient, reconcile_response};
use service::failure::chain;
use service::transport::Connector;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{
    Code, Status, Streaming,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder},
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;
use tonic_types::StatusExt as _;

pub(crate) use self::renewal::Proof;

mod renewal;

/// The longest time to open a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The interval of HTTP/2 pings that check the server, even while nothing else is sent.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(20);
/// How long the answer to a ping may take.
const KEEPALIVE_MAX: Duration = Duration::from_secs(10);
/// The largest message in either direction. Frames are far smaller, but a single object may not be.
const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The window of the stream and of the connection: a burst fits without waiting for the other side.
const WINDOW_BYTES: u32 = 2 * 1024 * 1024;
/// How many frames may wait for the socket. They are few: the rest waits in the agent, which keeps the latest event of each object.
const FRAMES_OUT_MAX: usize = 4;
/// How many frames may wait for the agent.
const FRAMES_IN_MAX: usize = 16;

/// The contract's method for sessions.
const RECONCILE: &str = "/decree.v1.DecisionService/Reconcile";
/// The domain of the reasons that docs/protocol.md lists.
const DOMAIN: &str = "decree.dev";
/// The reason that ends a session for another one of its cluster and shard.
const SUPERSEDED: &str = "SESSION_SUPERSEDED";

/// The output of the connection.
#[derive(Debug)]
pub(crate) enum News {
    Connected,
    Frame(v1::ReconcileResponse),
    Disconnected(Disconnect),
}

/// The way to one server. Dropping it drops the connection.
#[derive(Debug)]
pub(crate) struct Uplink {
    connector: Connector,
    token: Option<PathBuf>,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    /// `None` after this half of the stream is closed.
    frames: Option<mpsc::Sender<v1::ReconcileRequest>>,
    news: mpsc::Receiver<News>,
    _task: AbortOnDropHandle<()>,
}

impl Uplink {
    pub(crate) const fn new(connector: Connector, token: Option<PathBuf>) -> Self {
        Self {
            connector,
            token,
            connection: None,
        }
    }

    pub(crate) fn command(&mut self, command: LinkCommand) {
        match command {
            LinkCommand::Connect => {
                let (frames, outgoing) = mpsc::channel(FRAMES_OUT_MAX);
                let (sender, news) = mpsc::channel(FRAMES_IN_MAX);
                let (connector, token) = (self.connector.clone(), self.token.clone());
                let task = tokio::spawn(serve(connector, token, outgoing, sender));
                self.connection = Some(Connection {
                    frames: Some(frames),
                    news,
                    _task: AbortOnDropHandle::new(task),
                });
            }
            LinkCommand::Close => {
                if let Some(connection) = &mut self.connection {
                    connection.frames = None;
                }
            }
            LinkCommand::Abort => self.connection = None,
        }
    }

    /// A permit to send one frame, if the uplink takes one now.
    pub(crate) fn try_reserve(&self) -> Option<mpsc::Permit<'_, v1::ReconcileRequest>> {
        let frames = self.connection.as_ref()?.frames.as_ref()?;
        frames.try_reserve().ok()
    }

    /// Waits until a frame can be sent; forever without a connection.
    pub(crate) async fn writable(frames: Option<mpsc::Sender<v1::ReconcileRequest>>) {
        let Some(frames) = frames else {
            return pending().await;
        };
        if frames.reserve().await.is_err() {
            // The connection is over; its output says so.
            pending::<()>().await;
        }
    }

    /// The channel of frames, for a wait beside the wait for output.
    pub(crate) fn frames(&self) -> Option<mpsc::Sender<v1::ReconcileRequest>> {
        self.connection.as_ref()?.frames.clone()
    }

    /// Waits for output; forever without a connection.
    pub(crate) async fn next(&mut self) -> News {
        let Some(connection) = &mut self.connection else {
            return pending().await;
        };
        let ended = || News::Disconnected(Disconnect::Lost("the connection ended".into()));
        connection.news.recv().await.unwrap_or_else(ended)
    }

    pub(crate) fn try_next(&mut self) -> Option<News> {
        self.connection.as_mut()?.news.try_recv().ok()
    }
}

/// The encoding of a session's frames. Frames of the server are decoded by [`frame::read`], which bounds their memory.
#[derive(Debug)]
struct FrameCodec;

impl Codec for FrameCodec {
    type Encode = v1::ReconcileRequest;
    type Decode = v1::ReconcileResponse;
    type Encoder = <ProstCodec<v1::ReconcileRequest, ()> as Codec>::Encoder;
    type Decoder = Self;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<v1::ReconcileRequest, ()>::default().encoder()
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Decoder for FrameCodec {
    type Item = v1::ReconcileResponse;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let bytes = bytes::Buf::copy_to_bytes(message, bytes::Buf::remaining(message));
        let read = frame::read(bytes).map(Some);
        read.map_err(|error| Status::internal(format!("the server broke the protocol: {error}")))
    }
}

pub(crate) async fn connect(connector: &Connector) -> Result<Channel, String> {
    let endpoint = Endpoint::from(connector.endpoint().uri())
        .user_agent(concat!("decree-agent/", env!("CARGO_PKG_VERSION")))
        .expect("a name and a version are a header")
        .connect_timeout(CONNECT_MAX)
        .http2_keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_MAX)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    let channel = endpoint.connect_with_connector(connector.clone()).await;
    channel.map_err(|error| chain(&error))
}

async fn serve(
    connector: Connector,
    token: Option<PathBuf>,
    outgoing: mpsc::Receiver<v1::ReconcileRequest>,
    sender: mpsc::Sender<News>,
) {
    let channel = connect(&connector).await;
    let cause = match (Proof::read(token.as_deref()), channel) {
        (Ok(proof), Ok(channel)) => {
            let ended = stream(channel, proof, outgoing, &sender).await;
            ended.unwrap_or_else(|status| disconnect(&status))
        }
        (Err(error), _) => Disconnect::Lost(chain(&error)),
        (_, Err(error)) => Disconnect::Lost(error),
    };
    // Nobody needs the output if the uplink is gone.
    let _ = sender.send(News::Disconnected(cause)).await;
}

/// Passes frames on in both directions until the stream ends. The error is that of a stream that the server has not opened.
async fn stream(
    channel: Channel,
    proof: Proof,
    outgoing: mpsc::Receiver<v1::ReconcileRequest>,
    sender: &mpsc::Sender<News>,
) -> Result<Disconnect, Status> {
    if sender.send(News::Connected).await.is_err() {
        return Ok(Disconnect::Ended);
    }
    let request = proof.request(ReceiverStream::new(outgoing));
    let mut grpc = Grpc::new(channel.clone())
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::from_error(error.into()))?;
    let path = PathAndQuery::from_static(RECONCILE);
    let incoming = grpc.streaming(request, path, FrameCodec).await?;
    let client = DecisionServiceClient::new(channel);
    let (welcome, welcomed) = oneshot::channel();
    tokio::select! {
        biased;
        cause = receive(incoming.into_inner(), sender, welcome) => Ok(cause),
        never = proof.keep(client, welcomed) => match never {},
    }
}

/// Passes frames on until the stream ends, and the session's id to `welcome`.
async fn receive(
    mut incoming: Streaming<v1::ReconcileResponse>,
    sender: &mpsc::Sender<News>,
    welcome: oneshot::Sender<String>,
) -> Disconnect {
    let mut welcome = Some(welcome);
    loop {
        match incoming.message().await {
            Ok(Some(frame)) => {
                if let Some(reconcile_response::Frame::Welcome(frame)) = &frame.frame
                    && let Some(welcome) = welcome.take()
                {
                    // Nobody waits for the id if there is no token to renew.
                    let _ = welcome.send(frame.session_id.clone());
                }
                if sender.send(News::Frame(frame)).await.is_err() {
                    return Disconnect::Ended;
                }
            }
            Ok(None) => return Disconnect::Ended,
            Err(status) => return disconnect(&status),
        }
    }
}

/// Tells an unreachable server from a refusal. A broken stream shows as UNKNOWN with the transport's error as its source, not as
/// UNAVAILABLE.
fn disconnect(status: &Status) -> Disconnect {
    let info = status.get_details_error_info();
    if info.is_some_and(|it| it.domain == DOMAIN && it.reason == SUPERSEDED) {
        return Disconnect::Superseded(said(status));
    }
    let retry_after = status
        .get_details_retry_info()
        .and_then(|info| info.retry_delay);
    use Code::{
        Aborted, Cancelled, DataLoss, DeadlineExceeded, Internal, Ok, Unavailable, Unknown,
    };
    let is_broken = matches!(status.code(), Unknown | Internal | DataLoss);
    let away = matches!(
        status.code(),
        Ok | Cancelled | DeadlineExceeded | Aborted | Unavailable
    ) || (is_broken && status.source().is_some());
    let text = said(status);
    if away && retry_after.is_none() {
        return Disconnect::Lost(text);
    }
    Disconnect::Refused {
        status: text,
        retry_after,
    }
}

/// The text of a status, for people: the transport's error, if the transport made the status.
pub(crate) fn said(status: &Status) -> String {
    match status.source() {
        Some(source) => format!("{:?}: {}", status.code(), chain(source)),
        None => format!("{:?}: {}", status.code(), status.message()),
    }
}

#[cfg(test)]
mod tests;
