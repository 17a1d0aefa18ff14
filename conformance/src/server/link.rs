//! One session from the agent's side, frame by frame.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use decree::v1::{
    Batch, Done, Failed, FailureClass, Hello, Kind, NotStarted, NotStartedCause, Outcome, Outcomes,
    Pod, ReconcileRequest, ReplicaSet, SnapshotBegin, SnapshotEnd, SnapshotObjects, Welcome,
    WriteStatus, batch::Action, decision_service_client::DecisionServiceClient, done, event,
    outcome, reconcile_request::Frame, reconcile_response::Frame as Answer,
};
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming, transport::Channel};
use tonic_types::StatusExt as _;

use super::objects;

/// The maximum time that the kit waits for a server, except for the end of a silent session.
const PATIENCE: Duration = Duration::from_secs(20);

/// The server of one case, with a separate cluster.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) channel: Channel,
    cluster: String,
}

/// A session. Frames are numbered automatically, except for explicit numbers.
pub(super) struct Link {
    frames: Option<mpsc::Sender<ReconcileRequest>>,
    answers: Streaming<decree::v1::ReconcileResponse>,
    sent: u64,
    received: u64,
}

/// A frame of the server, or the end of the stream.
pub(super) type Next = Result<Answer, Status>;

// === impl Server ===

impl Server {
    pub(super) fn new(channel: Channel, number: usize) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        Self {
            channel,
            cluster: format!("conformance-{now}-{number}"),
        }
    }

    /// A Hello that a server accepts.
    pub(super) fn hello(&self) -> Hello {
        Hello {
            protocol_min: 1,
            protocol_max: 1,
            agent_instance: "conformance".to_owned(),
            cluster_uid: self.cluster.clone(),
            ..Hello::default()
        }
    }

    /// Opens a stream and sends nothing.
    pub(super) async fn connect(&self) -> Result<Link, String> {
        self.connect_for(None).await
    }

    /// Opens a stream with a deadline, and sends nothing.
    pub(super) async fn connect_for(&self, deadline: Option<Duration>) -> Result<Link, String> {
        let (frames, queue) = mpsc::channel(64);
        let mut client = DecisionServiceClient::new(self.channel.clone());
        let mut request = Request::new(ReceiverStream::new(queue));
        if let Some(deadline) = deadline {
            request.set_timeout(deadline);
        }
        let answers = client.reconcile(request).await;
        Ok(Link {
            frames: Some(frames),
            answers: answers
                .map_err(|status| wrong("a stream", &status))?
                .into_inner(),
            sent: 0,
            received: 0,
        })
    }

    /// Opens a stream, sends a Hello, and returns the first frame or the refusal.
    pub(super) async fn first_answer(&self) -> Result<Option<Answer>, Status> {
        let frame = ReconcileRequest {
            sequence: 1,
            frame: Some(Frame::Hello(self.hello())),
        };
        let mut client = DecisionServiceClient::new(self.channel.clone());
        let answers = client.reconcile(tokio_stream::once(frame)).await?;
        let first = answers.into_inner().message().await?;
        Ok(first.and_then(|answer| answer.frame))
    }

    pub(super) async fn open_as(&self, hello: Hello) -> Result<(Link, Welcome), String> {
        let mut link = self.connect().await?;
        link.send(Frame::Hello(hello)).await;
        let welcome = link.expect_welcome().await?;
        Ok((link, welcome))
    }

    pub(super) async fn open(&self) -> Result<Link, String> {
        self.open_as(self.hello()).await.map(|(link, _)| link)
    }

    pub(super) async fn open_shard(&self, name: &str) -> Result<(Link, Welcome), String> {
        self.open_as(Hello {
            shard: name.to_owned(),
            ..self.hello()
        })
        .await
    }

    pub(super) async fn open_with(
        &self,
        sets: Vec<ReplicaSet>,
        pods: Vec<Pod>,
    ) -> Result<Link, String> {
        let mut link = self.open().await?;
        link.list(sets, pods).await;
        Ok(link)
    }

    /// Opens a session with this ReplicaSet and no pods.
    pub(super) async fn open_set(&self, set: ReplicaSet) -> Result<Link, String> {
        self.open_with(vec![set], Vec::new()).await
    }
}

// === impl Link ===

impl Link {
    pub(super) async fn send(&mut self, frame: Frame) {
        self.sent += 1;
        self.send_as(self.sent, frame).await;
    }

    /// Sends a frame with this number.
    pub(super) async fn send_as(&mut self, sequence: u64, frame: Frame) {
        let frame = ReconcileRequest {
            sequence,
            frame: Some(frame),
        };
        if let Some(frames) = &self.frames {
            // A stream that the server has ended takes no frames. The next read returns the reason.
            let _ = frames.send(frame).await;
        }
    }

    pub(super) fn close(&mut self) {
        self.frames = None;
    }

    /// The next frame other than a heartbeat. Verifies the server's numbers on the way.
    pub(super) async fn next(&mut self) -> Result<Next, String> {
        loop {
            let next = self.any().await?;
            if !matches!(next, Ok(Answer::Heartbeat(_))) {
                return Ok(next);
            }
        }
    }

    /// The next frame, or the end of the stream.
    pub(super) async fn any(&mut self) -> Result<Next, String> {
        let next = timeout(PATIENCE, self.answers.message()).await;
        let message = match next.map_err(|_| "nothing came within 20 seconds".to_owned())? {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(Err(Status::ok(""))),
            Err(status) => return Ok(Err(status)),
        };
        self.received += 1;
        if message.sequence != self.received {
            return Err(format!(
                "frame {} where {} was due",
                message.sequence, self.received
            ));
        }
        let frame = message.frame.ok_or("a frame without content")?;
        Ok(Ok(frame))
    }

    pub(super) async fn expect_end(&mut self, code: Code, reason: &str) -> Result<Status, String> {
        loop {
            if let Err(status) = self.next().await? {
                let info = status.get_details_error_info();
                let is_right = status.code() == code
                    && info
                        .as_ref()
                        .is_some_and(|info| info.reason == reason && info.domain == "decree.dev");
                let found = wrong(&format!("{code:?} {reason}"), &(status.code(), info));
                return is_right.then_some(status).ok_or(found);
            }
        }
    }

    /// Expects that the session ends with this code and reason, whatever the other details.
    pub(super) async fn ends_with(&mut self, code: Code, reason: &str) -> Result<(), String> {
        self.expect_end(code, reason).await.map(drop)
    }

    /// Expects a frame with one batch.
    pub(super) async fn batch(&mut self) -> Result<Batch, String> {
        match self.next().await? {
            Ok(Answer::Batches(mut batches)) if batches.batches.len() == 1 => {
                batches.batches.pop().ok_or_else(String::new)
            }
            other => Err(wrong("one batch", &other)),
        }
    }

    /// Reads this many batches, in one or several frames.
    pub(super) async fn batches(&mut self, count: usize) -> Result<BTreeMap<u64, Batch>, String> {
        let mut batches = BTreeMap::new();
        while batches.len() < count {
            match self.next().await? {
                Ok(Answer::Batches(frame)) => {
                    batches.extend(frame.batches.into_iter().map(|batch| (batch.id, batch)));
                }
                other => return Err(wrong("batches", &other)),
            }
        }
        Ok(batches)
    }

    pub(super) async fn expect_welcome(&mut self) -> Result<Welcome, String> {
        match self.next().await? {
            Ok(Answer::Welcome(welcome)) => Ok(welcome),
            other => Err(wrong("a Welcome", &other)),
        }
    }

    pub(super) async fn expect_ok(&mut self) -> Result<(), String> {
        match self.next().await? {
            Err(status) if status.code() == Code::Ok => Ok(()),
            other => Err(wrong("the end with OK", &other)),
        }
    }

    /// Expects a batch of creates, and returns the names.
    pub(super) async fn creates(&mut self) -> Result<(Batch, Vec<String>), String> {
        names_of(self.batch().await?)
    }

    /// Expects a batch of creates, possibly after status writes.
    pub(super) async fn creates_after_statuses(
        &mut self,
        set: &ReplicaSet,
    ) -> Result<(Batch, Vec<String>), String> {
        loop {
            let batch = self.batch().await?;
            let Some(Action::WriteStatus(write)) = batch.action else {
                return names_of(batch);
            };
            self.wrote(batch.id, write, set).await;
        }
    }

    /// Expects status writes until one has the desired number of pods, all ready and available. Earlier ones may predate the creates.
    pub(super) async fn settles(&mut self, set: &ReplicaSet) -> Result<(), String> {
        loop {
            let batch = self.batch().await?;
            let Some(Action::WriteStatus(write)) = batch.action else {
                return Err(wrong("a status of every pod", &batch.action));
            };
            let counts = write.status.as_ref().map(|status| {
                [
                    status.replicas,
                    status.ready_replicas,
                    status.available_replicas,
                ]
            });
            self.wrote(batch.id, write, set).await;
            if counts == set.replicas.map(|wanted| [wanted; 3]) {
                return Ok(());
            }
        }
    }

    /// Expects a Resync for a list.
    pub(super) async fn expect_resync(&mut self, kind: Kind) -> Result<(), String> {
        match self.next().await? {
            Ok(Answer::Resync(resync)) if resync.kind() == kind => Ok(()),
            other => Err(wrong("a Resync", &other)),
        }
    }

    /// Reports a status write, with a new version unless the ReplicaSet has none.
    pub(super) async fn wrote(&mut self, batch: u64, write: WriteStatus, set: &ReplicaSet) {
        let mut resource_version = set.resource_version.clone();
        if !resource_version.is_empty() {
            resource_version = format!("3{batch:03}");
        }
        let written = ReplicaSet {
            resource_version: resource_version.clone(),
            status: write.status,
            ..set.clone()
        };
        let done = Done {
            uid: written.uid.clone(),
            resource_version,
            object: Some(done::Object::ReplicaSet(written)),
            ..Done::default()
        };
        self.report(batch, 0, outcome::Outcome::Done(done)).await;
    }

    /// Expects no frame other than the Rejection of an invalid pod.
    pub(super) async fn expect_nothing(&mut self) -> Result<(), String> {
        let bad = Pod {
            name: "Bad Name".to_owned(),
            ..objects::pod("bad", "none")
        };
        self.event(event::Event::PodApplied(bad)).await;
        match self.next().await? {
            Ok(Answer::Rejection(_)) => Ok(()),
            other => Err(wrong("nothing but a Rejection", &other)),
        }
    }

    pub(super) async fn event(&mut self, event: event::Event) {
        self.traced_event(event, "").await;
    }

    pub(super) async fn traced_event(&mut self, event: event::Event, traceparent: &str) {
        let event = decree::v1::Event {
            event: Some(event),
            traceparent: traceparent.to_owned(),
        };
        self.send(Frame::Events(decree::v1::Events {
            events: vec![event],
        }))
        .await;
    }

    pub(super) async fn begin(&mut self, kind: Kind) {
        self.send(Frame::SnapshotBegin(SnapshotBegin { kind: kind.into() }))
            .await;
    }

    pub(super) async fn end(&mut self, kind: Kind, count: usize, version: &str) {
        let end = SnapshotEnd {
            kind: kind.into(),
            resource_version: version.to_owned(),
            count: i64::try_from(count).unwrap_or(i64::MAX),
        };
        self.send(Frame::SnapshotEnd(end)).await;
    }

    pub(super) async fn pods(&mut self, pods: Vec<Pod>) {
        let objects = SnapshotObjects {
            pods,
            ..SnapshotObjects::default()
        };
        self.send(Frame::SnapshotObjects(objects)).await;
    }

    pub(super) async fn list(&mut self, sets: Vec<ReplicaSet>, pods: Vec<Pod>) {
        self.list_sets(sets).await;
        self.list_pods(pods).await;
    }

    pub(super) async fn list_pods(&mut self, pods: Vec<Pod>) {
        self.list_pods_at(pods, "100").await;
    }

    pub(super) async fn list_pods_at(&mut self, pods: Vec<Pod>, version: &str) {
        let count = pods.len();
        self.begin(Kind::Pod).await;
        self.pods(pods).await;
        self.end(Kind::Pod, count, version).await;
    }

    pub(super) async fn list_sets(&mut self, replica_sets: Vec<ReplicaSet>) {
        self.list_sets_at(replica_sets, "100").await;
    }

    pub(super) async fn list_sets_at(&mut self, replica_sets: Vec<ReplicaSet>, version: &str) {
        let count = replica_sets.len();
        self.begin(Kind::ReplicaSet).await;
        let objects = SnapshotObjects {
            replica_sets,
            ..SnapshotObjects::default()
        };
        self.send(Frame::SnapshotObjects(objects)).await;
        self.end(Kind::ReplicaSet, count, version).await;
    }

    pub(super) async fn report(&mut self, batch: u64, operation: usize, outcome: outcome::Outcome) {
        let outcome = Outcome {
            batch_id: batch,
            operation: u32::try_from(operation).unwrap_or(u32::MAX),
            outcome: Some(outcome),
            ..Outcome::default()
        };
        self.send(Frame::Outcomes(Outcomes {
            outcomes: vec![outcome],
        }))
        .await;
    }

    /// Reports the creation of each name, with versions from `version` on.
    pub(super) async fn created(&mut self, batch: &Batch, names: &[String], version: u64) {
        for ((at, name), version) in names.iter().enumerate().zip(version..) {
            let mut pod = objects::pod(name, "web");
            pod.resource_version = version.to_string();
            self.report(batch.id, at, done(pod)).await;
        }
    }
}

fn names_of(batch: Batch) -> Result<(Batch, Vec<String>), String> {
    match &batch.action {
        Some(Action::Create(create)) => {
            let names = create.names.clone();
            Ok((batch, names))
        }
        other => Err(wrong("a create", other)),
    }
}

/// The outcome of a write with the resulting pod.
pub(super) fn done(pod: Pod) -> outcome::Outcome {
    outcome::Outcome::Done(Done {
        uid: pod.uid.clone(),
        resource_version: pod.resource_version.clone(),
        object: Some(done::Object::Pod(pod)),
        ..Done::default()
    })
}

pub(super) fn failed(class: FailureClass) -> outcome::Outcome {
    outcome::Outcome::Failed(Failed {
        class: class.into(),
        ..Failed::default()
    })
}

pub(super) fn guarded() -> outcome::Outcome {
    outcome::Outcome::NotStarted(NotStarted {
        cause: NotStartedCause::Guard.into(),
        ..NotStarted::default()
    })
}

/// The verdict for a condition. The error names the expected and the found value.
pub(super) fn holds(is_right: bool, expected: &str, found: &impl Debug) -> Result<(), String> {
    is_right.then_some(()).ok_or_else(|| wrong(expected, found))
}

/// Expects these facts in the metadata of a status.
pub(super) fn expect_facts(status: &Status, facts: &[(&str, &str)]) -> Result<(), String> {
    let info = status.get_details_error_info();
    let stated = info.map(|info| info.metadata).unwrap_or_default();
    let states = |(key, value): &(&str, &str)| stated.get(*key).is_some_and(|it| it == value);
    holds(facts.iter().all(states), &format!("{facts:?}"), &stated)
}

pub(super) fn interval_of(welcome: &Welcome) -> Duration {
    let given = welcome.heartbeat_interval;
    let given = given.and_then(|given| Duration::try_from(given).ok());
    given.unwrap_or(Duration::from_secs(5))
}

pub(super) fn wrong(expected: &str, found: &impl Debug) -> String {
    let mut found = format!("{found:?}");
    if let Some((at, _)) = found.char_indices().nth(200) {
        found.truncate(at);
        found.push('…');
    }
    format!("{found} in place of {expected}")
}
