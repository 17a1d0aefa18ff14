//! A manual agent: it sends the given frames and reads frame by frame.

use std::collections::VecDeque;

use decree_api::v1::{
    self, batch::Action, decision_service_client::DecisionServiceClient, done::Object,
    reconcile_request::Frame, reconcile_response::Frame as Answer,
};
use tests::objects;
pub(crate) use tests::objects::hello;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status, Streaming, transport::Channel};

use crate::running::{Running, soon};

pub(crate) struct Agent {
    frames: Option<mpsc::Sender<v1::ReconcileRequest>>,
    answers: Streaming<v1::ReconcileResponse>,
    sequence: u64,
    /// The number of received frames, which is that of the last one.
    received: u64,
    /// The further objects of the last rejection.
    rejected: VecDeque<v1::RejectedObject>,
}

pub(crate) fn bearing<T>(message: T, token: Option<&str>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        let value = format!("Bearer {token}").parse().expect("printable");
        request.metadata_mut().insert("authorization", value);
    }
    request
}

/// A hello of a cluster with a name.
pub(crate) fn named(cluster: &str, name: &str) -> v1::Hello {
    v1::Hello {
        cluster_name: name.to_owned(),
        ..hello(cluster)
    }
}

/// The request for the ReplicaSet `default/web` of a cluster.
pub(crate) fn get_web(cluster: &str) -> v1::GetReplicaSetRequest {
    v1::GetReplicaSetRequest {
        cluster: cluster.to_owned(),
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        shard: String::new(),
    }
}

/// The names of the pods that a batch creates.
pub(crate) fn created_names(batch: &v1::Batch) -> &[String] {
    let Some(Action::Create(create)) = &batch.action else {
        panic!("{batch:?}")
    };
    &create.names
}

impl Agent {
    /// Opens a stream and sends nothing yet.
    pub(crate) async fn connect(server: &Running) -> Self {
        Self::connect_by(server.decisions().await).await
    }

    /// Opens a stream on a connection and sends nothing yet.
    pub(crate) async fn connect_by(client: DecisionServiceClient<Channel>) -> Self {
        let opened = Self::stream(client, None).await;
        opened.expect("the stream opens")
    }

    /// Opens a stream with an optional token, and sends nothing yet.
    pub(crate) async fn connect_as(server: &Running, token: Option<&str>) -> Result<Self, Status> {
        Self::stream(server.decisions().await, token).await
    }

    /// Opens a stream on a connection, with an optional token, and sends nothing yet.
    pub(crate) async fn stream(
        mut client: DecisionServiceClient<Channel>,
        token: Option<&str>,
    ) -> Result<Self, Status> {
        let (frames, outbound) = mpsc::channel(64);
        let request = bearing(ReceiverStream::new(outbound), token);
        let call = client.reconcile(request).await;
        Ok(Self {
            frames: Some(frames),
            answers: call?.into_inner(),
            sequence: 0,
            received: 0,
            rejected: VecDeque::new(),
        })
    }

    /// Opens a session with a token.
    pub(crate) async fn open_as(
        server: &Running,
        token: &str,
        hello: v1::Hello,
    ) -> Result<(Self, v1::Welcome), Status> {
        let mut agent = Self::connect_as(server, Some(token)).await?;
        agent.send(Frame::Hello(hello)).await;
        match agent.next_message().await? {
            Some(Answer::Welcome(welcome)) => Ok((agent, welcome)),
            other => panic!("a welcome comes first, not {other:?}"),
        }
    }

    /// Opens a session for a cluster.
    pub(crate) async fn open(server: &Running, cluster: &str) -> (Self, v1::Welcome) {
        Self::open_with(server, hello(cluster)).await
    }

    pub(crate) async fn open_with(server: &Running, hello: v1::Hello) -> (Self, v1::Welcome) {
        Self::connect(server).await.greet(hello).await
    }

    /// Sends a Hello and waits for no answer.
    pub(crate) async fn say_hello(&mut self, cluster: &str) {
        self.send(Frame::Hello(hello(cluster))).await;
    }

    /// Sends a Hello, and waits for the Welcome.
    pub(crate) async fn greet(mut self, hello: v1::Hello) -> (Self, v1::Welcome) {
        self.send(Frame::Hello(hello)).await;
        let Answer::Welcome(welcome) = self.next().await else {
            panic!("a welcome comes first")
        };
        (self, welcome)
    }

    /// Opens a session for a cluster and sends both lists.
    pub(crate) async fn open_on(
        server: &Running,
        cluster: &str,
        sets: Vec<v1::ReplicaSet>,
        pods: Vec<v1::Pod>,
    ) -> Self {
        let (mut agent, _) = Self::open(server, cluster).await;
        agent.snapshot(sets, pods).await;
        agent
    }

    pub(crate) async fn send(&mut self, frame: Frame) {
        self.sequence += 1;
        self.send_as(self.sequence, Some(frame)).await;
    }

    /// Sends a frame with a given number. No error if the stream has ended.
    pub(crate) async fn send_as(&self, sequence: u64, frame: Option<Frame>) {
        let frames = self
            .frames
            .as_ref()
            .expect("the stream was not closed here");
        let _ = frames.send(v1::ReconcileRequest { sequence, frame }).await;
    }

    /// Sends both lists.
    pub(crate) async fn snapshot(&mut self, replica_sets: Vec<v1::ReplicaSet>, pods: Vec<v1::Pod>) {
        for frame in objects::lists(&replica_sets, &pods, "100") {
            self.send(frame).await;
        }
    }

    /// Opens the list of a kind.
    pub(crate) async fn begin_snapshot(&mut self, kind: v1::Kind) {
        let kind = kind.into();
        let begin = v1::SnapshotBegin { kind };
        self.send(Frame::SnapshotBegin(begin)).await;
    }

    /// Sends objects of the open lists.
    pub(crate) async fn list(&mut self, replica_sets: Vec<v1::ReplicaSet>, pods: Vec<v1::Pod>) {
        let objects = v1::SnapshotObjects { pods, replica_sets };
        self.send(Frame::SnapshotObjects(objects)).await;
    }

    pub(crate) async fn event(&mut self, event: v1::event::Event) {
        self.send(objects::events([event])).await;
    }

    /// Reports the deletion of an object.
    pub(crate) async fn deleted(&mut self, kind: v1::Kind, object: v1::ObjectRef, version: &str) {
        let deleted = v1::Deleted {
            kind: kind.into(),
            object: Some(object),
            resource_version: version.to_owned(),
        };
        self.event(v1::event::Event::Deleted(deleted)).await;
    }

    /// Reports success for every operation of a batch that creates pods.
    pub(crate) async fn created(&mut self, batch: &v1::Batch, pods: Vec<v1::Pod>) {
        let pods = pods.into_iter().map(Object::Pod).collect();
        self.send(objects::done(batch.id, pods)).await;
    }

    /// Closes the agent's half of the stream.
    pub(crate) fn close(&mut self) {
        self.frames = None;
    }

    /// The next frame that is not a heartbeat.
    pub(crate) async fn next(&mut self) -> Answer {
        loop {
            let frame = self.next_message().await.expect("the session lives");
            let frame = frame.expect("the stream is open");
            if !matches!(frame, Answer::Heartbeat(_)) {
                return frame;
            }
        }
    }

    /// The next frame, or the end of the session.
    pub(crate) async fn next_message(&mut self) -> Result<Option<Answer>, Status> {
        let Some(answer) = soon(self.answers.message()).await? else {
            return Ok(None);
        };
        self.received += 1;
        assert_eq!(answer.sequence, self.received, "{answer:?}");
        Ok(Some(answer.frame.expect("a frame")))
    }

    /// The next batches, which must be the next frame.
    pub(crate) async fn batches(&mut self) -> Vec<v1::Batch> {
        match self.next().await {
            Answer::Batches(batches) => batches.batches,
            other => panic!("batches were expected, not {other:?}"),
        }
    }

    /// The next batch, which must be the only one in its frame.
    pub(crate) async fn batch(&mut self) -> v1::Batch {
        let mut batches = self.batches().await;
        assert_eq!(batches.len(), 1, "{batches:?}");
        batches.remove(0)
    }

    /// The next rejected object, which must be in the next frame.
    pub(crate) async fn rejection(&mut self) -> v1::RejectedObject {
        if self.rejected.is_empty() {
            match self.next().await {
                Answer::Rejection(rejection) => self.rejected.extend(rejection.objects),
                other => panic!("a rejection was expected, not {other:?}"),
            }
        }
        self.rejected.pop_front().expect("it names an object")
    }

    /// Reads until the end of the session, and returns it.
    pub(crate) async fn end(&mut self) -> Result<(), Status> {
        loop {
            if self.next_message().await?.is_none() {
                return Ok(());
            }
        }
    }

    /// Reads until the server refuses the session, and returns the refusal.
    pub(crate) async fn refusal(&mut self) -> Status {
        self.end().await.expect_err("the session is refused")
    }

    /// Proves that the session is served: a ReplicaSet without pods gets one.
    pub(crate) async fn prove_alive(&mut self) {
        self.prove_alive_by("proof-of-life").await;
    }

    /// Proves it with a new ReplicaSet of this name.
    pub(crate) async fn prove_alive_by(&mut self, name: &str) {
        let set = objects::replica_set(name).replicas(1).build();
        self.event(v1::event::Event::ReplicaSetApplied(set)).await;
        loop {
            let batches = self.batches().await;
            let about = batches
                .iter()
                .filter_map(|batch| batch.replica_set.as_ref());
            if about.into_iter().any(|set| set.name == name) {
                return;
            }
        }
    }
}
