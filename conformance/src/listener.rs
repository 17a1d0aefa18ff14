//! The server for agents, which hands each stream and each `Decide` to the script.

use std::{io, pin::Pin};

use decree_api::v1::{
    DecideRequest, DecideResponse, ReconcileRequest, ReconcileResponse, RenewSessionRequest,
    RenewSessionResponse, SimulateRequest, SimulateResponse,
    decision_service_server::{DecisionService, DecisionServiceServer},
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_stream::{
    Stream,
    wrappers::{ReceiverStream, TcpListenerStream},
};
use tonic::{Request, Response, Status, Streaming, transport};

use crate::{
    peer::{ConnectedAgent, PATIENCE},
    unary::Call,
};

/// The window of a stream: less than the outcomes that the script leaves unread.
const WINDOW: u32 = 2 << 10;

pub(crate) struct Listener {
    pub(crate) address: String,
    pub(crate) calls: mpsc::Receiver<Call>,
    streams: mpsc::Receiver<ConnectedAgent>,
    /// An agent whose stream has arrived, but is not accepted yet.
    next: Option<ConnectedAgent>,
}

impl Listener {
    pub(crate) async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let (opened, streams) = mpsc::channel(8);
        let (asked, calls) = mpsc::channel(8);
        let serving = transport::Server::builder()
            .initial_stream_window_size(WINDOW)
            .add_service(DecisionServiceServer::new(Service(opened, asked)))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serving);
        Ok(Self {
            address,
            calls,
            streams,
            next: None,
        })
    }

    pub(crate) async fn accept(&mut self) -> Result<ConnectedAgent, String> {
        self.await_next().await?;
        self.next
            .take()
            .ok_or_else(|| "no stream is there".to_owned())
    }

    /// Forgets the streams that have arrived, because their agent was killed.
    pub(crate) fn forget(&mut self) {
        self.next = None;
        while self.streams.try_recv().is_ok() {}
    }

    /// Waits until the agent opens a stream. The next `accept` returns that stream.
    pub(crate) async fn await_next(&mut self) -> Result<(), String> {
        if self.next.is_none() {
            let stream = timeout(PATIENCE, self.streams.recv()).await;
            let stream = stream.ok().flatten();
            self.next = Some(stream.ok_or("the agent opened no stream within 20 seconds")?);
        }
        Ok(())
    }
}

/// Hands each stream and each call to the script.
struct Service(mpsc::Sender<ConnectedAgent>, mpsc::Sender<Call>);

fn ended<E>(_: E) -> Status {
    Status::unavailable("the script has ended")
}

#[tonic::async_trait]
impl DecisionService for Service {
    type ReconcileStream = Pin<Box<dyn Stream<Item = Result<ReconcileResponse, Status>> + Send>>;

    async fn reconcile(
        &self,
        request: Request<Streaming<ReconcileRequest>>,
    ) -> Result<Response<Self::ReconcileStream>, Status> {
        let (answers, queue) = mpsc::channel(64);
        let agent = ConnectedAgent::new(request.into_inner(), answers);
        self.0.send(agent).await.map_err(ended)?;
        Ok(Response::new(Box::pin(ReceiverStream::new(queue))))
    }

    async fn renew_session(
        &self,
        _: Request<RenewSessionRequest>,
    ) -> Result<Response<RenewSessionResponse>, Status> {
        Err(Status::unimplemented("the script has no such calls"))
    }

    async fn decide(
        &self,
        request: Request<DecideRequest>,
    ) -> Result<Response<DecideResponse>, Status> {
        let (answer, answered) = oneshot::channel();
        let call = (request.into_inner(), answer);
        self.1.send(call).await.map_err(ended)?;
        answered.await.map_err(ended)?.map(Response::new)
    }

    async fn simulate(
        &self,
        _: Request<SimulateRequest>,
    ) -> Result<Response<SimulateResponse>, Status> {
        Err(Status::unimplemented("the script has no such calls"))
    }
}
