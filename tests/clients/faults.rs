//! Our agent with a planted fault, of which the conformance kit names the rule.

use std::{
    collections::BTreeMap,
    io,
    net::TcpListener,
    sync::{Arc, Mutex, PoisonError},
};

use conformance::{Running, Subject};
use decree_api::v1::{
    Kind, Pod, ReconcileRequest, SnapshotObjects, decision_service_client::DecisionServiceClient,
    decision_service_server::DecisionServiceServer, done::Object, event::Event, outcome::Outcome,
    reconcile_request::Frame,
};
use tests::sessions::{Answers, Frames, Sessions};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc::{Sender, channel},
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{
    Status,
    transport::{Endpoint, Server},
};

use crate::embedded::{Attending, Embedded};

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
    deleted: Vec<Pod>,
    /// The pods of the open list, and of the list before it.
    open: Vec<Pod>,
    previous: Vec<Pod>,
}

impl Faulty {
    pub(crate) fn new(fault: Fault) -> Self {
        let memory = Memory {
            fault,
            shown: BTreeMap::new(),
            deleted: Vec::new(),
            open: Vec::new(),
            previous: Vec::new(),
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
        let (kit, memory) = (format!("http://{address}"), Arc::clone(&self.memory));
        let open = move |said| proxy(kit.clone(), Arc::clone(&memory), said);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        runtime.spawn(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is bound");
            Server::builder()
                .add_service(DecisionServiceServer::new(Sessions(open)))
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
            Frame::SnapshotBegin(begin) if begin.kind() == Kind::Pod => self.open.clear(),
            Frame::SnapshotObjects(objects) if !objects.pods.is_empty() => {
                self.open.append(&mut objects.pods);
                return Vec::new();
            }
            Frame::SnapshotEnd(end) if end.kind() == Kind::Pod => {
                let pods = self.list();
                end.count = i64::try_from(pods.len()).expect("they are few");
                let objects = SnapshotObjects {
                    pods,
                    ..SnapshotObjects::default()
                };
                return vec![Frame::SnapshotObjects(objects), frame];
            }
            Frame::Hello(_)
            | Frame::SnapshotBegin(_)
            | Frame::SnapshotObjects(_)
            | Frame::SnapshotEnd(_)
            | Frame::Events(_)
            | Frame::Outcomes(_)
            | Frame::Nodes(_)
            | Frame::Costs(_)
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
                        Some(Object::Pod(pod)) => pods.push(pod),
                        Some(Object::ReplicaSet(set)) => sets.push(set),
                        Some(Object::Gone(_)) | None => {}
                    }
                }
            }
            Frame::Hello(_)
            | Frame::SnapshotBegin(_)
            | Frame::Nodes(_)
            | Frame::Costs(_)
            | Frame::Heartbeat(_) => {}
        }
        for pod in &pods {
            if pod.deletion_timestamp.is_none() {
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
                pods.retain(|pod| pod.deletion_timestamp.is_none());
                pods.extend(self.deleted.clone());
            }
        }
        pods
    }
}

/// Opens a session with the kit, and changes the frames of the agent.
async fn proxy(kit: String, memory: Arc<Mutex<Memory>>, said: Frames) -> Result<Answers, Status> {
    let kit = Endpoint::from_shared(kit).expect("it is an address");
    let kit = kit.connect().await;
    let kit = kit.map_err(|error| Status::unavailable(error.to_string()))?;
    let (frames, queue) = channel(64);
    tokio::spawn(relay(said, frames, memory));
    let mut kit = DecisionServiceClient::new(kit);
    let answers = kit.reconcile(ReceiverStream::new(queue)).await?;
    Ok(Box::pin(answers.into_inner()))
}

/// Passes frames on until the agent or the kit ends the stream. The frames have no numbers, because some are left out.
async fn relay(mut said: Frames, frames: Sender<ReconcileRequest>, memory: Arc<Mutex<Memory>>) {
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
