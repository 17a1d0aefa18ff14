//! One session from the agent's side, frame by frame.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    objects::{at, done, failed, pod, pod_of, web},
    verdict::{Verdict, expect_reason, wrong},
};
use decree::v1::{
    Batch, Done, Hello, Kind, Outcome, Outcomes, Pod, ReconcileRequest, ReplicaSet, SnapshotBegin,
    SnapshotEnd, SnapshotObjects, Welcome, WriteStatus, batch::Action,
    decision_service_client::DecisionServiceClient, done, event, outcome, reconcile_request::Frame,
    reconcile_response::Frame as Answer,
};
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming, transport::Channel};

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
    /// The server's first frame, once it has arrived.
    pub(super) welcome: Welcome,
    frames: Option<mpsc::Sender<ReconcileRequest>>,
    answers: Streaming<decree::v1::ReconcileResponse>,
    sent: u64,
    received: u64,
    /// The last ReplicaSet of the last list, which is the one that status writes are about.
    set: ReplicaSet,
}

/// A frame of the server, or the end of the stream.
pub(super) type Next = Result<Answer, Status>;

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
        self.hello_at(0)
    }

    pub(super) fn hello_at(&self, epoch: i64) -> Hello {
        Hello {
            protocol_min: 1,
            protocol_max: 1,
            agent_instance: "conformance".to_owned(),
            cluster_uid: self.cluster.clone(),
            epoch,
            ..Hello::default()
        }
    }

    /// Opens a stream, if required with a deadline, and sends nothing.
    pub(super) async fn connect(&self, deadline: Option<Duration>) -> Result<Link, String> {
        let (frames, queue) = mpsc::channel(64);
        let mut client = DecisionServiceClient::new(self.channel.clone());
        let mut request = Request::new(ReceiverStream::new(queue));
        if let Some(deadline) = deadline {
            request.set_timeout(deadline);
        }
        let answers = client.reconcile(request).await;
        Ok(Link {
            welcome: Welcome::default(),
            frames: Some(frames),
            answers: answers
                .map_err(|status| wrong("a stream", &status))?
                .into_inner(),
            sent: 0,
            received: 0,
            set: ReplicaSet::default(),
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

    pub(super) async fn open(&self) -> Result<Link, String> {
        self.open_as(self.hello()).await
    }

    pub(super) async fn open_as(&self, hello: Hello) -> Result<Link, String> {
        let mut link = self.connect(None).await?;
        link.send(Frame::Hello(hello)).await;
        link.expect_welcome().await?;
        Ok(link)
    }

    pub(super) async fn open_shard(&self, name: &str) -> Result<Link, String> {
        let mut hello = self.hello();
        hello.shard = name.to_owned();
        self.open_as(hello).await
    }

    /// Opens a session with one ReplicaSet and these pods.
    pub(super) async fn open_with(
        &self,
        set: ReplicaSet,
        pods: impl IntoIterator<Item = Pod>,
    ) -> Result<Link, String> {
        let mut link = self.open().await?;
        link.list([set], pods).await;
        Ok(link)
    }

    /// Opens a session with a ReplicaSet without pods, and expects its creates.
    pub(super) async fn creates(
        &self,
        set: ReplicaSet,
    ) -> Result<(Link, Batch, Vec<String>), String> {
        let mut link = self.open_with(set, []).await?;
        let (batch, names) = link.creates().await?;
        Ok((link, batch, names))
    }

    /// Sends this Hello, and expects that it is refused for this reason.
    pub(super) async fn refuses(&self, hello: Hello, reason: &str) -> Result<Status, String> {
        let mut link = self.connect(None).await?;
        link.send(Frame::Hello(hello)).await;
        link.ends(reason, &[]).await
    }
}

impl Link {
    pub(super) async fn send(&mut self, frame: Frame) {
        self.sent += 1;
        self.send_as(self.sent, frame).await;
    }

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

    /// Expects that the session ends for this reason, with these facts. Ignores the frames before the end.
    pub(super) async fn ends(
        &mut self,
        reason: &str,
        facts: &[(&str, &str)],
    ) -> Result<Status, String> {
        loop {
            if let Err(status) = self.next().await? {
                expect_reason(&status, reason, facts)?;
                return Ok(status);
            }
        }
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

    pub(super) async fn expect_welcome(&mut self) -> Verdict {
        match self.next().await? {
            Ok(Answer::Welcome(welcome)) => self.welcome = welcome,
            other => return Err(wrong("a Welcome", &other)),
        }
        Ok(())
    }

    /// The heartbeat interval of the Welcome.
    pub(super) fn interval(&self) -> Duration {
        let given = self.welcome.heartbeat_interval;
        let given = given.and_then(|given| Duration::try_from(given).ok());
        given.unwrap_or(Duration::from_secs(5))
    }

    /// The number of operations that may be in flight, by the Welcome.
    pub(super) fn in_flight_max(&self) -> usize {
        let limits = self.welcome.limits.unwrap_or_default();
        usize::try_from(limits.max_operations_in_flight).unwrap_or(0)
    }

    pub(super) async fn expect_ok(&mut self) -> Verdict {
        match self.next().await? {
            Err(status) if status.code() == Code::Ok => Ok(()),
            other => Err(wrong("the end with OK", &other)),
        }
    }

    /// Expects a batch of creates, and returns the names.
    pub(super) async fn creates(&mut self) -> Result<(Batch, Vec<String>), String> {
        names_of(self.batch().await?)
    }

    /// Lists a ReplicaSet without pods, and expects a create.
    pub(super) async fn expect_served(&mut self) -> Verdict {
        self.list([web(1)], []).await;
        self.creates().await.map(drop)
    }

    /// Expects a batch of creates, possibly after status writes, and returns the names.
    pub(super) async fn creates_after_statuses(&mut self) -> Result<Vec<String>, String> {
        loop {
            let batch = self.batch().await?;
            let Some(Action::WriteStatus(write)) = batch.action else {
                return names_of(batch).map(|(_, names)| names);
            };
            self.wrote(batch.id, write).await;
        }
    }

    /// Expects a status write, and returns the number of its batch.
    pub(super) async fn status_write(&mut self) -> Result<(u64, WriteStatus), String> {
        let batch = self.batch().await?;
        match batch.action {
            Some(Action::WriteStatus(write)) => Ok((batch.id, write)),
            other => Err(wrong("a status", &other)),
        }
    }

    /// Expects status writes until one has the desired number of pods, all ready and available. Earlier ones may predate the creates.
    pub(super) async fn settles(&mut self) -> Verdict {
        loop {
            let (batch, write) = self.status_write().await?;
            let counts = write.status.as_ref().map(|status| {
                [
                    status.replicas,
                    status.ready_replicas,
                    status.available_replicas,
                ]
            });
            self.wrote(batch, write).await;
            if counts == self.set.replicas.map(|wanted| [wanted; 3]) {
                return Ok(());
            }
        }
    }

    /// Expects a Resync for a list of pods.
    pub(super) async fn expect_resync(&mut self) -> Verdict {
        match self.next().await? {
            Ok(Answer::Resync(resync)) if resync.kind() == Kind::Pod => Ok(()),
            other => Err(wrong("a Resync", &other)),
        }
    }

    /// Reports a status write, with a new version unless the ReplicaSet has none.
    pub(super) async fn wrote(&mut self, batch: u64, write: WriteStatus) {
        let mut written = self.set.clone();
        written.status = write.status;
        if !written.resource_version.is_empty() {
            written.resource_version = format!("3{batch:03}");
        }
        let done = Done {
            uid: written.uid.clone(),
            resource_version: written.resource_version.clone(),
            object: Some(done::Object::ReplicaSet(written)),
            ..Done::default()
        };
        self.report(batch, 0, outcome::Outcome::Done(done)).await;
    }

    /// Expects no frame other than the Rejection of an invalid pod.
    pub(super) async fn expect_nothing(&mut self) -> Verdict {
        self.applied(pod_of("none", "Bad Name")).await;
        match self.next().await? {
            Ok(Answer::Rejection(_)) => Ok(()),
            other => Err(wrong("nothing but a Rejection", &other)),
        }
    }

    pub(super) async fn applied(&mut self, pod: Pod) {
        self.event(event::Event::PodApplied(pod)).await;
    }

    pub(super) async fn event(&mut self, event: event::Event) {
        let events = vec![decree::v1::Event { event: Some(event) }];
        let events = decree::v1::Events { events };
        self.send(Frame::Events(events)).await;
    }

    pub(super) async fn begin(&mut self, kind: Kind) {
        let begin = SnapshotBegin { kind: kind.into() };
        self.send(Frame::SnapshotBegin(begin)).await;
    }

    pub(super) async fn end(&mut self, kind: Kind, count: usize, version: &str) {
        let end = SnapshotEnd {
            kind: kind.into(),
            resource_version: version.to_owned(),
            count: i64::try_from(count).unwrap_or(i64::MAX),
        };
        self.send(Frame::SnapshotEnd(end)).await;
    }

    pub(super) async fn pods(&mut self, pods: impl IntoIterator<Item = Pod>) {
        let objects = SnapshotObjects {
            pods: pods.into_iter().collect(),
            ..SnapshotObjects::default()
        };
        self.send(Frame::SnapshotObjects(objects)).await;
    }

    /// Sends both lists.
    pub(super) async fn list(
        &mut self,
        sets: impl IntoIterator<Item = ReplicaSet>,
        pods: impl IntoIterator<Item = Pod>,
    ) {
        self.list_sets(sets, "100").await;
        self.list_pods(pods, "100").await;
    }

    pub(super) async fn list_pods(&mut self, pods: impl IntoIterator<Item = Pod>, version: &str) {
        let pods = Vec::from_iter(pods);
        let count = pods.len();
        self.begin(Kind::Pod).await;
        self.pods(pods).await;
        self.end(Kind::Pod, count, version).await;
    }

    pub(super) async fn list_sets(
        &mut self,
        sets: impl IntoIterator<Item = ReplicaSet>,
        version: &str,
    ) {
        let replica_sets = Vec::from_iter(sets);
        let count = replica_sets.len();
        self.set = replica_sets.last().cloned().unwrap_or_default();
        self.begin(Kind::ReplicaSet).await;
        let objects = SnapshotObjects {
            replica_sets,
            ..SnapshotObjects::default()
        };
        self.send(Frame::SnapshotObjects(objects)).await;
        self.end(Kind::ReplicaSet, count, version).await;
    }

    pub(super) async fn report(&mut self, batch: u64, operation: usize, outcome: outcome::Outcome) {
        let outcomes = vec![Outcome {
            batch_id: batch,
            operation: u32::try_from(operation).unwrap_or(u32::MAX),
            outcome: Some(outcome),
        }];
        self.send(Frame::Outcomes(Outcomes { outcomes })).await;
    }

    /// Reports that the only operation of a batch failed.
    pub(super) async fn failed(&mut self, batch: u64, class: impl Into<i32>) {
        self.report(batch, 0, failed(class)).await;
    }

    /// Reports the creation of each name, with versions from `version` on.
    pub(super) async fn created(&mut self, batch: &Batch, names: &[String], version: u64) {
        for ((operation, name), version) in names.iter().enumerate().zip(version..) {
            let made = done(at(&version.to_string(), pod(name)));
            self.report(batch.id, operation, made).await;
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
