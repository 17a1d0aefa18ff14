//! A rogue server at the address of the right one. It requests what no correct server requests, and reads the answers of the
//! agent.
//!
//! **Invariant:** the agent admits it as any server, so only the rules and the budget of the agent protect the cluster.

use std::{io, net::SocketAddr, time::Duration};

use decree::v1::{
    self,
    batch::Action,
    decision_service_server::{DecisionService, DecisionServiceServer},
    event::Event,
    outcome::Outcome,
    reconcile_request as request,
    reconcile_response::Frame,
};
use tokio::{
    net::TcpListener,
    sync::mpsc,
    time::{Instant, timeout, timeout_at},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Server, server::TcpIncoming},
};

use crate::{
    exit::{Exit, Failure},
    sandbox::{Threads, poll},
};

/// The capacity of the queue of frames for the agent.
const FRAMES_MAX: usize = 16;
/// Longer than the part takes, so the server sends no heartbeats.
const HEARTBEAT_SECONDS: i64 = 30;
const SESSION: &str = "rogue";
/// The letters of pod name suffixes.
const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";
/// The lists of a session: ReplicaSets and pods.
const LISTS: usize = 2;

/// The server, with the session of the one agent. Dropping it ends its connections.
pub(super) struct Rogue {
    session: Session,
    deadline: Duration,
    /// The ReplicaSet that all requests are about, and its generation.
    set: v1::ObjectRef,
    generation: i64,
    sequence: u64,
    batch: u64,
    _threads: Threads,
}

struct Session {
    outgoing: mpsc::Sender<Result<v1::ReconcileResponse, Status>>,
    incoming: Streaming<v1::ReconcileRequest>,
}

/// Hands over each new session.
struct Service(mpsc::Sender<Session>);

type Reply<T> = Result<Response<T>, Status>;

// === impl Rogue ===

impl Rogue {
    /// Starts the server, and waits until the agent has sent its lists.
    pub(super) async fn start(
        address: SocketAddr,
        deadline: Duration,
        (set, generation): (v1::ObjectRef, i64),
    ) -> Result<Self, Failure> {
        let threads = Threads::start().map_err(cannot_start)?;
        // The killed server may still hold the address.
        let bind = async || TcpListener::bind(address).await;
        let listener = match poll(deadline, async || Ok(bind().await.ok())).await? {
            Some(listener) => listener,
            None => bind().await.map_err(cannot_start)?,
        };
        let listener = listener.into_std().map_err(cannot_start)?;
        let (sessions, mut opened) = mpsc::channel(1);
        let server = Server::builder().add_service(DecisionServiceServer::new(Service(sessions)));
        threads.handle().spawn(async move {
            let incoming = TcpIncoming::from(TcpListener::from_std(listener)?);
            let served = server.serve_with_incoming(incoming).await;
            served.map_err(io::Error::other)
        });
        let session = timeout(deadline, opened.recv()).await.ok().flatten();
        let session = session.ok_or_else(|| Failure::new(Exit::No, "the agent did not come"))?;
        let mut rogue = Self {
            session,
            deadline,
            set,
            generation,
            sequence: 0,
            batch: 0,
            _threads: threads,
        };
        rogue.admit().await?;
        Ok(rogue)
    }

    /// Waits until the agent has sent an event for which `is_it` holds.
    pub(super) async fn sees(&mut self, is_it: impl Fn(&Event) -> bool) -> Result<(), Failure> {
        self.read(|frame| {
            let request::Frame::Events(events) = frame else {
                return false;
            };
            let mut events = events.events.iter().filter_map(|it| it.event.as_ref());
            events.any(&is_it)
        })
        .await
    }

    /// Requests the deletion of pods. Returns the answer of the agent.
    pub(super) async fn delete(&mut self, pods: &[v1::ObjectRef]) -> Result<String, Failure> {
        let victims = pods.iter().map(|pod| v1::Victim {
            pod: Some(pod.clone()),
            ..v1::Victim::default()
        });
        let victims = victims.collect();
        self.ask(Action::Delete(v1::Delete { victims }), pods.len())
            .await
    }

    /// Requests `count` pods, with valid names for pods of the ReplicaSet. Returns the answer of the agent.
    pub(super) async fn create(&mut self, count: usize) -> Result<String, Failure> {
        let letter = |index: usize| LETTERS.chars().nth(index % LETTERS.len());
        let generate_name = format!("{}-", self.set.name);
        let names = (0..count).map(|index| {
            let last = [letter(index / LETTERS.len()), letter(index)];
            let last: String = last.into_iter().flatten().collect();
            format!("{generate_name}rgx{last}")
        });
        let action = Action::Create(v1::Create {
            names: names.collect(),
            generate_name,
            slow_start_initial: i32::try_from(count).unwrap_or(i32::MAX),
        });
        self.ask(action, count).await
    }

    /// Requests an action on the ReplicaSet, and waits for the outcomes of `operations` operations.
    async fn ask(&mut self, action: Action, operations: usize) -> Result<String, Failure> {
        self.batch += 1;
        let id = self.batch;
        let batch = v1::Batch {
            id,
            replica_set: Some(self.set.clone()),
            generation: self.generation,
            guard: Some(v1::Guard {
                session_id: SESSION.to_owned(),
                epoch: 0,
            }),
            action: Some(action),
            ..v1::Batch::default()
        };
        let batches = vec![batch];
        self.send(Frame::Batches(v1::Batches { batches })).await?;
        let (mut done, mut refused, mut words) = (0, 0, String::new());
        self.read(|frame| {
            let request::Frame::Outcomes(outcomes) = frame else {
                return false;
            };
            let of_it = outcomes.outcomes.into_iter().filter(|it| it.batch_id == id);
            for outcome in of_it.filter_map(|it| it.outcome) {
                let message = match outcome {
                    Outcome::Done(_) => {
                        done += 1;
                        continue;
                    }
                    Outcome::Failed(failed) => failed.message,
                    Outcome::NotStarted(not_started) => not_started.message,
                };
                refused += 1;
                words = message;
            }
            done + refused >= operations
        })
        .await?;
        Ok(format!("{done} done, {refused} refused: {words}"))
    }

    async fn admit(&mut self) -> Result<(), Failure> {
        self.read(|frame| matches!(frame, request::Frame::Hello(_)))
            .await?;
        let heartbeat_interval = prost_types::Duration {
            seconds: HEARTBEAT_SECONDS,
            nanos: 0,
        };
        let welcome = v1::Welcome {
            protocol: 1,
            session_id: SESSION.to_owned(),
            heartbeat_interval: Some(heartbeat_interval),
            ..v1::Welcome::default()
        };
        self.send(Frame::Welcome(welcome)).await?;
        let mut lists = 0;
        self.read(|frame| {
            lists += usize::from(matches!(frame, request::Frame::SnapshotEnd(_)));
            lists == LISTS
        })
        .await
    }

    async fn send(&mut self, frame: Frame) -> Result<(), Failure> {
        self.sequence += 1;
        let response = v1::ReconcileResponse {
            sequence: self.sequence,
            frame: Some(frame),
        };
        let sent = self.session.outgoing.send(Ok(response)).await;
        sent.map_err(|_| left())
    }

    /// Reads the frames of the agent up to the first for which `is_last` holds.
    async fn read(
        &mut self,
        mut is_last: impl FnMut(request::Frame) -> bool,
    ) -> Result<(), Failure> {
        let until = Instant::now() + self.deadline;
        loop {
            let message = timeout_at(until, self.session.incoming.message()).await;
            let message = message.map_err(|_| Failure::new(Exit::No, "the agent does not answer"));
            let Ok(Some(message)) = message? else {
                return Err(left());
            };
            if message.frame.is_some_and(&mut is_last) {
                return Ok(());
            }
        }
    }
}

// === impl Service ===

#[tonic::async_trait]
impl DecisionService for Service {
    type ReconcileStream = ReceiverStream<Result<v1::ReconcileResponse, Status>>;

    async fn reconcile(
        &self,
        request: Request<Streaming<v1::ReconcileRequest>>,
    ) -> Reply<Self::ReconcileStream> {
        let (outgoing, stream) = mpsc::channel(FRAMES_MAX);
        let incoming = request.into_inner();
        let session = Session { outgoing, incoming };
        let opened = self.0.try_send(session);
        opened.map_err(|_| Status::unavailable("one session at a time"))?;
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn decide(&self, _: Request<v1::DecideRequest>) -> Reply<v1::DecideResponse> {
        Err(Status::unimplemented("an agent does not ask"))
    }

    async fn renew_session(
        &self,
        _: Request<v1::RenewSessionRequest>,
    ) -> Reply<v1::RenewSessionResponse> {
        Err(Status::unimplemented("the session needs no renewal"))
    }

    async fn simulate(&self, _: Request<v1::SimulateRequest>) -> Reply<v1::SimulateResponse> {
        Err(Status::unimplemented("an agent does not ask"))
    }
}

fn cannot_start(cause: io::Error) -> Failure {
    Failure::new(Exit::No, format!("the rogue server cannot start: {cause}"))
}

fn left() -> Failure {
    Failure::new(Exit::No, "the agent left the rogue server")
}
