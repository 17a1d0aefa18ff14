//! The client's end of one stream, frame by frame, with an optional log.

use std::net::SocketAddr;

use decree_api::v1::{
    self, decision_service_client::DecisionServiceClient, reconcile_request::Frame,
    reconcile_response::Frame as Answer,
};
use tests::objects;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Streaming, transport::Channel};

/// A step of a stream, as the client sees it.
#[derive(Clone)]
pub(crate) enum Step {
    Sent(v1::ReconcileRequest),
    Received(v1::ReconcileResponse),
}

/// An open stream. Its queue has no bound, so a sender never blocks and can always read.
pub(crate) struct Link {
    frames: mpsc::UnboundedSender<v1::ReconcileRequest>,
    answers: Streaming<v1::ReconcileResponse>,
    sequence: u64,
    log: Option<Vec<Step>>,
}

/// The sending half of a stream.
#[derive(Clone)]
pub(crate) struct Frames(pub(crate) mpsc::UnboundedSender<v1::ReconcileRequest>);

impl Link {
    /// Opens a stream without sending anything.
    #[expect(
        clippy::disallowed_methods,
        reason = "who measures sends no more than was measured, and must not wait where it has to read"
    )]
    pub(crate) async fn connect(server: SocketAddr) -> Self {
        let endpoint = Channel::from_shared(format!("http://{}", server));
        let channel = endpoint.expect("a valid URL").connect().await;
        let mut client = DecisionServiceClient::new(channel.expect("the server listens"));
        let (frames, outbound) = mpsc::unbounded_channel();
        let call = client
            .reconcile(UnboundedReceiverStream::new(outbound))
            .await;
        Self {
            frames,
            answers: call.expect("the stream opens").into_inner(),
            sequence: 0,
            log: None,
        }
    }

    /// Opens a session of a cluster with these ReplicaSets and pods.
    pub(crate) async fn open(
        server: SocketAddr,
        replica_sets: &[v1::ReplicaSet],
        pods: &[v1::Pod],
    ) -> Self {
        let mut link = Self::connect(server).await;
        link.greet(replica_sets, pods).await;
        link
    }

    /// Like [`Self::open`], with a log of the sent and received frames.
    pub(crate) async fn open_recorded(
        server: SocketAddr,
        replica_sets: &[v1::ReplicaSet],
        pods: &[v1::Pod],
    ) -> Self {
        let mut link = Self::connect(server).await;
        link.log = Some(Vec::new());
        link.greet(replica_sets, pods).await;
        link
    }

    async fn greet(&mut self, replica_sets: &[v1::ReplicaSet], pods: &[v1::Pod]) {
        self.send(Frame::Hello(v1::Hello {
            options: Some(objects::replacing_at_once()),
            ..objects::hello("bench")
        }));
        let welcome = self.next().await;
        assert!(matches!(welcome, Answer::Welcome(_)), "{welcome:?}");
        for frame in objects::lists(replica_sets, pods, "100") {
            self.send(frame);
        }
    }

    pub(crate) fn send(&mut self, frame: Frame) {
        self.sequence += 1;
        let request = v1::ReconcileRequest {
            sequence: self.sequence,
            frame: Some(frame),
        };
        if let Some(log) = &mut self.log {
            log.push(Step::Sent(request.clone()));
        }
        self.send_as_it_is(request);
    }

    /// Sends a frame with its own number.
    pub(crate) fn send_as_it_is(&self, request: v1::ReconcileRequest) {
        self.frames.send(request).expect("the stream is open");
    }

    /// The next frame that is not a heartbeat.
    pub(crate) async fn next(&mut self) -> Answer {
        loop {
            let answer = self.answers.message().await.expect("the session lives");
            let answer = answer.expect("the stream is open");
            if matches!(answer.frame, Some(Answer::Heartbeat(_))) {
                continue;
            }
            if let Some(log) = &mut self.log {
                log.push(Step::Received(answer.clone()));
            }
            return answer.frame.expect("a frame");
        }
    }

    /// The next batches.
    pub(crate) async fn batches(&mut self) -> Vec<v1::Batch> {
        let frame = self.next().await;
        let Answer::Batches(batches) = frame else {
            panic!("batches were expected, not {frame:?}")
        };
        batches.batches
    }

    /// The length of the log.
    pub(crate) fn written(&self) -> usize {
        self.log.as_ref().map_or(0, Vec::len)
    }

    /// Ends the session and returns the log.
    pub(crate) fn close(self) -> Vec<Step> {
        self.log.unwrap_or_default()
    }

    /// Splits the two directions. The frames have no number then.
    pub(crate) fn split(self) -> (Frames, Streaming<v1::ReconcileResponse>) {
        (Frames(self.frames), self.answers)
    }
}

impl Frames {
    /// Sends a frame without a number.
    pub(crate) fn send(&self, frame: Frame) {
        let request = v1::ReconcileRequest {
            sequence: 0,
            frame: Some(frame),
        };
        self.0.send(request).expect("the stream is open");
    }
}
