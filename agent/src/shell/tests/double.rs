//! A server that a test controls, over a real connection on a free port.

use std::time::Duration;

use decree_api::v1::{
    self,
    decision_service_server::{DecisionService, DecisionServiceServer},
    reconcile_request::Frame,
    reconcile_response,
};
use tokio::{net::TcpListener, sync::mpsc, time::timeout};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming, transport::Server};

/// How long a test waits for expected input: only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// The server. Dropping it ends its connections.
pub(super) struct Double {
    pub(super) url: String,
    sessions: mpsc::Receiver<Session>,
    task: tokio::task::JoinHandle<()>,
}

/// One stream of an agent.
pub(super) struct Session {
    incoming: Streaming<v1::ReconcileRequest>,
    outgoing: mpsc::Sender<Result<v1::ReconcileResponse, Status>>,
    sequence: u64,
}

struct Service(mpsc::Sender<Session>);

type Answer<T> = Result<Response<T>, Status>;

impl Double {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (sender, sessions) = mpsc::channel(4);
        let service = DecisionServiceServer::new(Service(sender));
        let server = Server::builder().add_service(service);
        let task = tokio::spawn(async move {
            let served = server
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await;
            served.expect("the listener lives as long as the test");
        });
        Self {
            url,
            sessions,
            task,
        }
    }

    async fn accept(&mut self) -> Session {
        let session = timeout(PATIENCE, self.sessions.recv()).await;
        session
            .expect("an agent connects")
            .expect("the server lives")
    }

    /// Waits for the next stream and opens a session on it. Returns the Hello.
    pub(super) async fn open(&mut self, id: &str) -> (Session, v1::Hello) {
        let mut session = self.accept().await;
        let Some(Frame::Hello(hello)) = session.receive().await else {
            panic!("the first frame is a Hello")
        };
        let welcome = v1::Welcome {
            protocol: 1,
            session_id: id.into(),
            ..v1::Welcome::default()
        };
        session
            .send(reconcile_response::Frame::Welcome(welcome))
            .await;
        (session, hello)
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Session {
    /// Waits for the next frame; `None` when the agent has closed its half.
    pub(super) async fn receive(&mut self) -> Option<Frame> {
        let message = timeout(PATIENCE, self.incoming.message())
            .await
            .expect("a frame comes");
        message.expect("the stream is whole")?.frame
    }

    pub(super) async fn send(&mut self, frame: reconcile_response::Frame) {
        self.sequence += 1;
        let frame = v1::ReconcileResponse {
            sequence: self.sequence,
            frame: Some(frame),
        };
        self.outgoing
            .send(Ok(frame))
            .await
            .expect("the agent listens");
    }

    pub(super) async fn send_batch(&mut self, batch: v1::Batch) {
        let batches = v1::Batches {
            batches: vec![batch],
        };
        self.send(reconcile_response::Frame::Batches(batches)).await;
    }

    pub(super) async fn receive_lists(&mut self) -> (Vec<v1::ReplicaSet>, Vec<v1::Pod>) {
        let (mut replica_sets, mut pods, mut ends) = (Vec::new(), Vec::new(), 0);
        while ends < 2 {
            let frame = self.receive().await.expect("the lists come");
            if let Frame::SnapshotObjects(objects) = frame {
                replica_sets.extend(objects.replica_sets);
                pods.extend(objects.pods);
            } else if let Frame::SnapshotEnd(_) = frame {
                ends += 1;
            }
        }
        (replica_sets, pods)
    }

    /// Receives frames of any kind, until there are `count` outcomes.
    pub(super) async fn receive_outcomes(&mut self, count: usize) -> Vec<v1::Outcome> {
        let mut outcomes = Vec::new();
        while outcomes.len() < count {
            if let Some(Frame::Outcomes(frame)) = self.receive().await {
                outcomes.extend(frame.outcomes);
            }
        }
        outcomes
    }

    /// Receives frames of any kind until the agent closes its half.
    pub(super) async fn receive_to_end(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.receive().await {
            frames.push(frame);
        }
        frames
    }
}

#[tonic::async_trait]
impl DecisionService for Service {
    type ReconcileStream = ReceiverStream<Result<v1::ReconcileResponse, Status>>;

    async fn reconcile(
        &self,
        request: Request<Streaming<v1::ReconcileRequest>>,
    ) -> Answer<Self::ReconcileStream> {
        let (outgoing, stream) = mpsc::channel(16);
        let session = Session {
            incoming: request.into_inner(),
            outgoing,
            sequence: 0,
        };
        self.0
            .send(session)
            .await
            .map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn decide(&self, _: Request<v1::DecideRequest>) -> Answer<v1::DecideResponse> {
        Err(Status::unimplemented("an agent does not ask"))
    }

    async fn simulate(&self, _: Request<v1::SimulateRequest>) -> Answer<v1::SimulateResponse> {
        Err(Status::unimplemented("an agent does not ask"))
    }

    async fn renew_session(
        &self,
        _: Request<v1::RenewSessionRequest>,
    ) -> Answer<v1::RenewSessionResponse> {
        Err(Status::unimplemented("no session of these tests expires"))
    }
}
