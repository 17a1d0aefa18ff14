//! Our agent with a planted fault, of which the conformance kit names the rule.

use std::{
    collections::BTreeMap,
    io,
    net::TcpListener,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use conformance::{Running, Subject};
use decree::v1::{
    DecideRequest, DecideResponse, Kind, Pod, ReconcileRequest, ReconcileResponse,
    RenewSessionRequest, RenewSessionResponse, SimulateRequest, SimulateResponse, SnapshotObjects,
    decision_service_client::DecisionServiceClient,
    decision_service_server::{DecisionService, DecisionServiceServer},
    done::Object,
    event::Event,
    outcome::Outcome,
    reconcile_request::Frame,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc::{Sender, channel},
    time::sleep,
};
use tokio_stream::{
    Stream, StreamExt as _,
    wrappers::{ReceiverStream, TcpListenerStream},
};
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Endpoint, Server},
};

use crate::embedded::{Attending, Embedded};

/// The time after the first list of a session until a create of the session before takes effect.
const LATE: Duration = Duration::from_millis(700);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// All versions are equal.
    VersionsStay,
    /// Lists have no labels.
    LabelsLost,
    /// A list is the one before it.
    ListsLag,
    /// Lists have the pods that were deleted.
    DeletedListed,
    /// Creates in flight at the end of a session take effect during the next one.
    CreatesLate,
}

/// Our agent behind a proxy that changes its frames.
pub(crate) struct Faulty {
    agent: Embedded,
    memory: Arc<Mutex<Memory>>,
}

/// The agent and its proxy.
pub(crate) struct Proxied {
    agent: Attending,
    proxy: Option<Runtime>,
}

/// The proxy's knowledge, over all sessions.
struct Memory {
    fault: Fault,
    /// The pods that were shown, by uid.
    shown: BTreeMap<String, Pod>,
    /// The uid of the first pod that an outcome has shown, and the number of sessions since.
    reported: Option<String>,
    sessions: u32,
    deleted: Vec<Pod>,
    /// The pods of the open list, and of the list before it.
    open: Vec<Pod>,
    previous: Vec<Pod>,
    /// The time of the first list of the session.
    listed: Option<Instant>,
}

struct Proxy {
    kit: String,
    memory: Arc<Mutex<Memory>>,
}

impl Faulty {
    pub(crate) fn new(fault: Fault) -> Self {
        let memory = Memory {
            fault,
            shown: BTreeMap::new(),
            reported: None,
            sessions: 0,
            deleted: Vec::new(),
            open: Vec::new(),
            previous: Vec::new(),
            listed: None,
        };
        Self {
            agent: Embedded::new(),
            memory: Arc::new(Mutex::new(memory)),
        }
    }
}

impl Subject for Faulty {
    type Running = Proxied;

    fn start(&self, address: &str, replicas: usize) -> io::Result<Proxied> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let own = listener.local_addr()?.to_string();
        let proxy = Proxy {
            kit: format!("http://{address}"),
            memory: Arc::clone(&self.memory),
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        runtime.spawn(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is bound");
            Server::builder()
                .add_service(DecisionServiceServer::new(proxy))
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await
        });
        Ok(Proxied {
            agent: self.agent.start(&own, replicas)?,
            proxy: Some(runtime),
        })
    }
}

impl Running for Proxied {
    fn stop(&mut self) -> io::Result<()> {
        self.agent.stop()
    }

    fn has_ended(&mut self) -> bool {
        self.agent.has_ended()
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        if let Some(proxy) = self.proxy.take() {
            proxy.shutdown_background();
        }
    }
}

impl Memory {
    /// Returns what the kit gets for a frame.
    fn change(&mut self, mut frame: Frame) -> Vec<Frame> {
        self.note(&mut frame);
        match &mut frame {
            Frame::Hello(_) => {
                self.listed = None;
                self.sessions += u32::from(self.reported.is_some());
            }
            Frame::SnapshotBegin(begin) if begin.kind() == Kind::Pod => self.open.clear(),
            Frame::SnapshotObjects(objects) if !objects.pods.is_empty() => {
                self.open.append(&mut objects.pods);
                return Vec::new();
            }
            Frame::SnapshotEnd(end) if end.kind() == Kind::Pod => {
                let pods = self.list();
                self.listed.get_or_insert_with(Instant::now);
                end.count = i64::try_from(pods.len()).expect("they are few");
                let objects = SnapshotObjects {
                    pods,
                    ..SnapshotObjects::default()
                };
                return vec![Frame::SnapshotObjects(objects), frame];
            }
            Frame::Events(events) if self.fault == Fault::CreatesLate => {
                let is_hidden = |event: &Option<Event>| matches!(event, Some(Event::PodApplied(pod)) if self.is_late(pod));
                events.events.retain(|event| !is_hidden(&event.event));
                if events.events.is_empty() {
                    return Vec::new();
                }
            }
            Frame::SnapshotBegin(_)
            | Frame::SnapshotObjects(_)
            | Frame::SnapshotEnd(_)
            | Frame::Events(_)
            | Frame::Outcomes(_)
            | Frame::Heartbeat(_) => {}
        }
        vec![frame]
    }

    /// Notes the pods of a frame, and changes its versions.
    fn note(&mut self, frame: &mut Frame) {
        let mut versions = Vec::new();
        let (mut pods, mut sets) = (Vec::new(), Vec::new());
        match frame {
            Frame::SnapshotObjects(objects) => {
                pods.extend(&mut objects.pods);
                sets.extend(&mut objects.replica_sets);
            }
            Frame::SnapshotEnd(end) => versions.push(&mut end.resource_version),
            Frame::Events(events) => {
                for event in events
                    .events
                    .iter_mut()
                    .filter_map(|one| one.event.as_mut())
                {
                    match event {
                        Event::PodApplied(pod) => pods.push(pod),
                        Event::ReplicaSetApplied(set) => sets.push(set),
                        Event::Deleted(deleted) => {
                            let uid = deleted.object.as_ref().map(|object| &object.uid);
                            self.deleted
                                .extend(uid.and_then(|uid| self.shown.remove(uid)));
                            versions.push(&mut deleted.resource_version);
                        }
                        Event::Bookmark(mark) => versions.push(&mut mark.resource_version),
                    }
                }
            }
            Frame::Outcomes(outcomes) => {
                for outcome in outcomes
                    .outcomes
                    .iter_mut()
                    .filter_map(|one| one.outcome.as_mut())
                {
                    let Outcome::Done(done) = outcome else {
                        continue;
                    };
                    versions.push(&mut done.resource_version);
                    match &mut done.object {
                        Some(Object::Pod(pod)) => {
                            self.reported.get_or_insert_with(|| pod.uid.clone());
                            pods.push(pod);
                        }
                        Some(Object::ReplicaSet(set)) => sets.push(set),
                        Some(Object::Gone(_)) | None => {}
                    }
                }
            }
            Frame::Hello(_) | Frame::SnapshotBegin(_) | Frame::Heartbeat(_) => {}
        }
        for pod in &pods {
            if pod.deleted.is_none() {
                self.shown.insert(pod.uid.clone(), Pod::clone(pod));
            } else {
                self.deleted.extend(self.shown.remove(&pod.uid));
            }
        }
        if self.fault == Fault::VersionsStay {
            versions.extend(pods.into_iter().map(|pod| &mut pod.resource_version));
            versions.extend(sets.into_iter().map(|set| &mut set.resource_version));
            versions
                .into_iter()
                .for_each(|version| *version = "7".to_owned());
        }
    }

    fn list(&mut self) -> Vec<Pod> {
        let mut pods = std::mem::take(&mut self.open);
        match self.fault {
            Fault::VersionsStay => {}
            Fault::LabelsLost => pods.iter_mut().for_each(|pod| pod.labels.clear()),
            Fault::ListsLag => pods = std::mem::replace(&mut self.previous, pods),
            Fault::DeletedListed => {
                pods.retain(|pod| pod.deleted.is_none());
                pods.extend(self.deleted.clone());
            }
            Fault::CreatesLate => pods.retain(|pod| !self.is_late(pod)),
        }
        pods
    }

    fn is_late(&self, pod: &Pod) -> bool {
        let is_early = self.listed.is_none_or(|at| at.elapsed() < LATE);
        is_early && self.sessions == 1 && self.reported.as_ref() != Some(&pod.uid)
    }
}

#[tonic::async_trait]
impl DecisionService for Proxy {
    type ReconcileStream = Pin<Box<dyn Stream<Item = Result<ReconcileResponse, Status>> + Send>>;

    async fn reconcile(
        &self,
        request: Request<Streaming<ReconcileRequest>>,
    ) -> Result<Response<Self::ReconcileStream>, Status> {
        let kit = Endpoint::from_shared(self.kit.clone()).expect("it is an address");
        let kit = kit.connect().await;
        let kit = kit.map_err(|error| Status::unavailable(error.to_string()))?;
        let mut kit = DecisionServiceClient::new(kit);
        let (frames, queue) = channel(64);
        let memory = Arc::clone(&self.memory);
        tokio::spawn(relay(request.into_inner(), frames, memory));
        let answers = kit.reconcile(ReceiverStream::new(queue)).await?;
        // The agent begins what it was sent before it notices the cut.
        let late = answers.into_inner().then(|answer| async {
            if answer.is_err() {
                sleep(LATE / 2).await;
            }
            answer
        });
        Ok(Response::new(Box::pin(late)))
    }

    async fn renew_session(
        &self,
        _: Request<RenewSessionRequest>,
    ) -> Result<Response<RenewSessionResponse>, Status> {
        Err(Status::unimplemented("it relays sessions only"))
    }

    async fn decide(&self, _: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        Err(Status::unimplemented("it relays sessions only"))
    }

    async fn simulate(
        &self,
        _: Request<SimulateRequest>,
    ) -> Result<Response<SimulateResponse>, Status> {
        Err(Status::unimplemented("it relays sessions only"))
    }
}

/// Passes frames on until the agent or the kit ends the stream. The frames have no numbers, because some are left out.
async fn relay(
    mut said: Streaming<ReconcileRequest>,
    frames: Sender<ReconcileRequest>,
    memory: Arc<Mutex<Memory>>,
) {
    while let Ok(Some(message)) = said.message().await {
        let Some(frame) = message.frame else { continue };
        let changed = memory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .change(frame);
        for frame in changed {
            let message = ReconcileRequest {
                sequence: 0,
                frame: Some(frame),
            };
            if frames.send(message).await.is_err() {
                return;
            }
        }
    }
}
