//! A rogue server. It requests what no correct server requests, and reads the answers of the agent.
//!
//! **Invariant:** the agent admits it as any server, so only the rules of the agent protect the cluster.

use std::{net::SocketAddr, time::Duration};

use decree::v1::{
    self,
    batch::Action,
    decision_service_server::{DecisionService, DecisionServiceServer},
    outcome::Outcome,
    reconcile_request as request,
    reconcile_response::Frame,
};
use tokio::{
    net::TcpListener,
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Server, server::TcpIncoming},
};

use crate::{
    exit::{Exit, Failure},
    sandbox::{self, AGAIN},
};

const FRAMES_MAX: usize = 16;
/// Longer than the part takes, so the server sends no heartbeats.
const HEARTBEAT_SECONDS: i64 = 30;
const SESSION: &str = "rogue";
/// The lists of a session: ReplicaSets and pods.
const LISTS: usize = 2;

/// Requests operations on the ReplicaSet `set` of each agent, and hands over what the agent answered.
struct Rogue {
    set: &'static str,
    answers: mpsc::Sender<Vec<String>>,
}

struct Session {
    incoming: Streaming<v1::ReconcileRequest>,
    outgoing: mpsc::Sender<Result<v1::ReconcileResponse, Status>>,
    sequence: u64,
}

type Reply<T> = Result<Response<T>, Status>;

/// Runs a rogue server at the address of a killed one. Returns a line for each request, with the answer of the agent.
pub(super) fn run(
    address: SocketAddr,
    set: &'static str,
    within: Duration,
) -> Result<Vec<String>, Failure> {
    let threads = sandbox::threads(1)?;
    let answering = async {
        let (answers, mut answered) = mpsc::channel(1);
        let service = DecisionServiceServer::new(Rogue { set, answers });
        let listener = loop {
            match TcpListener::bind(address).await {
                Ok(listener) => break listener,
                // The killed server still holds the address.
                Err(_) => sleep(AGAIN).await,
            }
        };
        let incoming = TcpIncoming::from(listener);
        let serving = Server::builder().add_service(service);
        tokio::spawn(serving.serve_with_incoming(incoming));
        answered.recv().await
    };
    let answered = threads.block_on(async { timeout(within, answering).await });
    // The connections of the agent end with the threads.
    threads.shutdown_background();
    let answered = answered.ok().flatten();
    answered.ok_or_else(|| Failure::new(Exit::No, "the agent does not answer the rogue server"))
}

impl Session {
    async fn next(&mut self) -> Option<request::Frame> {
        self.incoming.message().await.ok()??.frame
    }

    async fn send(&mut self, frame: Frame) -> Option<()> {
        self.sequence += 1;
        let response = v1::ReconcileResponse {
            sequence: self.sequence,
            frame: Some(frame),
        };
        self.outgoing.send(Ok(response)).await.ok()
    }

    /// Admits the agent, and requests operations on one of its ReplicaSets. `None` if the agent leaves.
    async fn play(mut self, name: &str) -> Option<Vec<String>> {
        self.next().await?;
        let heartbeat_interval = prost_types::Duration {
            seconds: HEARTBEAT_SECONDS,
            nanos: 0,
        };
        self.send(Frame::Welcome(v1::Welcome {
            protocol: 1,
            session_id: SESSION.to_owned(),
            heartbeat_interval: Some(heartbeat_interval),
            ..v1::Welcome::default()
        }))
        .await?;
        let (mut sets, mut pods, mut lists) = (Vec::new(), Vec::new(), 0);
        while lists < LISTS {
            let frame = self.next().await?;
            lists += usize::from(matches!(frame, request::Frame::SnapshotEnd(_)));
            if let request::Frame::SnapshotObjects(objects) = frame {
                sets.extend(objects.replica_sets);
                pods.extend(objects.pods);
            }
        }
        let set = sets.into_iter().find(|set| set.name == name)?;
        let victim = |pod: v1::Pod| v1::Victim {
            pod: Some(v1::ObjectRef {
                namespace: pod.namespace,
                name: pod.name,
                uid: pod.uid,
            }),
            ..v1::Victim::default()
        };
        let is_own = |pod: &v1::Pod| pod.controller.as_ref().is_some_and(|it| it.uid == set.uid);
        let (own, others): (Vec<_>, Vec<_>) = pods.into_iter().partition(is_own);
        // Suffixes of pods backwards are suffixes, too.
        let suffix = |pod: &v1::Pod| pod.name.chars().rev().take(5).collect::<String>();
        let create = v1::Create {
            names: own
                .iter()
                .map(|pod| format!("{name}-{}", suffix(pod)))
                .collect(),
            generate_name: format!("{name}-"),
            slow_start_initial: i32::try_from(own.len()).unwrap_or(i32::MAX),
        };
        let delete = |pods: Vec<v1::Pod>| {
            let victims = pods.into_iter().map(victim).collect();
            Action::Delete(v1::Delete { victims })
        };
        let (count, more) = (own.len(), others.len());
        let all = self.ask(&set, 1, count, delete(own)).await?;
        let of_others = self.ask(&set, 2, more, delete(others)).await?;
        let created = self.ask(&set, 3, count, Action::Create(create)).await?;
        Some(vec![
            format!("delete all pods of {name}: {all}"),
            format!("delete {more} pods of others: {of_others}"),
            format!("create {count} more pods: {created}"),
        ])
    }

    /// Requests an action, and counts the outcomes of its operations.
    async fn ask(
        &mut self,
        set: &v1::ReplicaSet,
        id: u64,
        operations: usize,
        action: Action,
    ) -> Option<String> {
        let batch = v1::Batch {
            id,
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
        let (mut done, mut refused, mut words) = (0, 0, String::new());
        while done + refused < operations {
            let request::Frame::Outcomes(outcomes) = self.next().await? else {
                continue;
            };
            let own = outcomes.outcomes.into_iter().filter(|it| it.batch_id == id);
            for outcome in own.filter_map(|it| it.outcome) {
                (refused, words) = match outcome {
                    Outcome::Done(_) => {
                        done += 1;
                        continue;
                    }
                    Outcome::Failed(failed) => (refused + 1, failed.message),
                    Outcome::NotStarted(not_started) => (refused + 1, not_started.message),
                };
            }
        }
        Some(format!("{done} done, {refused} refused: {words}"))
    }
}

#[tonic::async_trait]
impl DecisionService for Rogue {
    type ReconcileStream = ReceiverStream<Result<v1::ReconcileResponse, Status>>;

    async fn reconcile(
        &self,
        request: Request<Streaming<v1::ReconcileRequest>>,
    ) -> Reply<Self::ReconcileStream> {
        let (outgoing, stream) = mpsc::channel(FRAMES_MAX);
        let session = Session {
            incoming: request.into_inner(),
            outgoing,
            sequence: 0,
        };
        let (set, answers) = (self.set, self.answers.clone());
        tokio::spawn(async move {
            if let Some(said) = session.play(set).await {
                // Only the first agent counts.
                let _ = answers.try_send(said);
            }
        });
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
