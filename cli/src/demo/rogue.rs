//! A rogue server at the address of the right one. It requests what no correct server requests, and reads the answers of the
//! agent.
//!
//! **Invariant:** the agent admits it as any server, so only the rules and the budget of the agent protect the cluster.

use std::{net::SocketAddr, time::Duration};

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
    time::{Instant, sleep, timeout_at},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Server, server::TcpIncoming},
};

use crate::{
    exit::{Exit, Failure},
    sandbox::Threads,
};

/// The interval of attempts to bind an address that the killed server may still hold.
const BIND_EVERY: Duration = Duration::from_millis(20);
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
    sequence: u64,
    batch: u64,
    _threads: Threads,
}

/// The outcomes of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) done: usize,
    pub(super) refused: usize,
    /// The reason of the last refusal.
    pub(super) words: String,
}

struct Session {
    outgoing: mpsc::Sender<Result<v1::ReconcileResponse, Status>>,
    incoming: Streaming<v1::ReconcileRequest>,
}

/// Hands over each new session.
struct Service(mpsc::Sender<Session>);

type Reply<T> = Result<Response<T>, Status>;

pub(super) fn delete(pods: &[v1::ObjectRef]) -> Action {
    let victims = pods.iter().map(|pod| v1::Victim {
        pod: Some(pod.clone()),
        ..v1::Victim::default()
    });
    let victims = victims.collect();
    Action::Delete(v1::Delete { victims })
}

/// Creates `count` pods, with valid names for pods of the ReplicaSet.
pub(super) fn create(set: &str, count: usize) -> Action {
    let letter = |index: usize| LETTERS.chars().nth(index % LETTERS.len());
    let generate_name = format!("{set}-");
    let names = (0..count).map(|index| {
        let last = [letter(index / LETTERS.len()), letter(index)];
        let last: String = last.into_iter().flatten().collect();
        format!("{generate_name}rgx{last}")
    });
    Action::Create(v1::Create {
        names: names.collect(),
        generate_name,
        slow_start_initial: i32::try_from(count).unwrap_or(i32::MAX),
    })
}

// === impl Rogue ===

impl Rogue {
    /// Starts the server, and waits until the agent has sent its lists.
    pub(super) async fn start(address: SocketAddr, deadline: Duration) -> Result<Self, Failure> {
        let until = Instant::now() + deadline;
        let threads = Threads::start().map_err(|error| cannot_start(&error.to_string()))?;
        let listener = loop {
            match TcpListener::bind(address).await {
                Ok(listener) => break listener.into_std(),
                Err(error) if Instant::now() >= until => {
                    return Err(cannot_start(&error.to_string()));
                }
                Err(_) => sleep(BIND_EVERY).await,
            }
        };
        let listener = listener.map_err(|error| cannot_start(&error.to_string()))?;
        let (sessions, mut opened) = mpsc::channel(1);
        let server = Server::builder().add_service(DecisionServiceServer::new(Service(sessions)));
        threads.spawn(async move {
            let listener = TcpListener::from_std(listener)?;
            let served = server
                .serve_with_incoming(TcpIncoming::from(listener))
                .await;
            served.map_err(std::io::Error::other)
        });
        let session = timeout_at(until, opened.recv()).await.ok().flatten();
        let session = session.ok_or_else(|| Failure::new(Exit::No, "the agent did not come"))?;
        let mut rogue = Self {
            session,
            deadline,
            sequence: 0,
            batch: 0,
            _threads: threads,
        };
        rogue.admit().await?;
        Ok(rogue)
    }

    /// Waits until the agent has sent an event for which `is_it` holds.
    pub(super) async fn sees(&mut self, is_it: impl Fn(&Event) -> bool) -> Result<(), Failure> {
        let until = Instant::now() + self.deadline;
        loop {
            if let request::Frame::Events(events) = self.next(until).await? {
                let mut events = events.events.iter().filter_map(|it| it.event.as_ref());
                if events.any(&is_it) {
                    return Ok(());
                }
            }
        }
    }

    /// Requests an action on a ReplicaSet, and waits for the outcomes of `operations` operations.
    pub(super) async fn ask(
        &mut self,
        set: &v1::ReplicaSet,
        action: Action,
        operations: usize,
    ) -> Result<Answer, Failure> {
        self.batch += 1;
        let batch = v1::Batch {
            id: self.batch,
            replica_set: Some(v1::ObjectRef {
                namespace: set.namespace.clone(),
                name: set.name.clone(),
                uid: set.uid.clone(),
            }),
            generation: set.generation,
            guard: Some(v1::Guard {
                session_id: SESSION.to_owned(),
                epoch: 0,
            }),
            action: Some(action),
            ..v1::Batch::default()
        };
        let batches = vec![batch];
        self.send(Frame::Batches(v1::Batches { batches })).await?;
        let until = Instant::now() + self.deadline;
        let mut answer = Answer::default();
        while answer.done + answer.refused < operations {
            let request::Frame::Outcomes(outcomes) = self.next(until).await? else {
                continue;
            };
            let of_it = outcomes.outcomes.into_iter();
            let of_it = of_it.filter(|outcome| outcome.batch_id == self.batch);
            of_it
                .filter_map(|outcome| outcome.outcome)
                .for_each(|outcome| answer.count(outcome));
        }
        Ok(answer)
    }

    async fn admit(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + self.deadline;
        let mut lists = 0;
        while lists < LISTS {
            match self.next(until).await? {
                request::Frame::Hello(_) => {
                    let welcome = v1::Welcome {
                        protocol: 1,
                        session_id: SESSION.to_owned(),
                        heartbeat_interval: Some(prost_types::Duration {
                            seconds: HEARTBEAT_SECONDS,
                            nanos: 0,
                        }),
                        ..v1::Welcome::default()
                    };
                    self.send(Frame::Welcome(welcome)).await?;
                }
                request::Frame::SnapshotEnd(_) => lists += 1,
                request::Frame::SnapshotBegin(_)
                | request::Frame::SnapshotObjects(_)
                | request::Frame::Events(_)
                | request::Frame::Outcomes(_)
                | request::Frame::Heartbeat(_) => {}
            }
        }
        Ok(())
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

    async fn next(&mut self, until: Instant) -> Result<request::Frame, Failure> {
        loop {
            let message = timeout_at(until, self.session.incoming.message()).await;
            let message = message.map_err(|_| Failure::new(Exit::No, "the agent does not answer"));
            match message? {
                Ok(Some(message)) => {
                    if let Some(frame) = message.frame {
                        return Ok(frame);
                    }
                }
                Ok(None) | Err(_) => return Err(left()),
            }
        }
    }
}

// === impl Answer ===

impl Answer {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Done(_) => self.done += 1,
            Outcome::Failed(failed) => {
                self.refused += 1;
                self.words = failed.message;
            }
            Outcome::NotStarted(not_started) => {
                self.refused += 1;
                self.words = not_started.message;
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

fn cannot_start(cause: &str) -> Failure {
    Failure::new(Exit::No, format!("the rogue server cannot start: {cause}"))
}

fn left() -> Failure {
    Failure::new(Exit::No, "the agent left the rogue server")
}
