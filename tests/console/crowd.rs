//! A cluster of 5,000 ReplicaSets that change 500 times a second.

use std::{net::SocketAddr, time::Duration};

use decree_api::v1::{
    self, decision_service_client::DecisionServiceClient, reconcile_request::Frame,
};
use tests::objects::{self, replica_set};
use tokio::{sync::mpsc, time::interval};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

const REPLICA_SETS: usize = 5_000;
/// The number of ReplicaSets that change in a step; there are 50 steps a second.
const CHANGES_PER_STEP: usize = 10;
const STEP: Duration = Duration::from_millis(20);

/// An agent of a cluster whose ReplicaSets change constantly. The agent reads the frames of the server and executes nothing.
pub(crate) struct Crowd(mpsc::Sender<v1::ReconcileRequest>);

/// Returns a ReplicaSet after `turn` changes.
fn set(number: usize, turn: usize) -> v1::ReplicaSet {
    let wanted = i32::try_from(turn % 5).expect("below 5") + 1;
    let mut set = replica_set(&format!("set-{number:04}"))
        .replicas(wanted)
        .build();
    set.generation = i64::try_from(turn).expect("few") + 1;
    set.resource_version = (10 + turn * REPLICA_SETS + number).to_string();
    set
}

impl Crowd {
    /// Opens a session and sends all ReplicaSets.
    pub(crate) async fn open(server: SocketAddr) -> Self {
        let endpoint = Channel::from_shared(format!("http://{server}")).expect("a valid URL");
        let channel = endpoint.connect().await.expect("it listens");
        let (frames, outbound) = mpsc::channel(64);
        let mut client = DecisionServiceClient::new(channel);
        let call = client.reconcile(ReceiverStream::new(outbound)).await;
        let mut answers = call.expect("the stream opens").into_inner();
        tokio::spawn(async move { while let Ok(Some(_)) = answers.message().await {} });
        let crowd = Self(frames);
        crowd.list().await;
        crowd
    }

    async fn list(&self) {
        self.send(Frame::Hello(v1::Hello {
            cluster_name: "crowd".to_owned(),
            ..objects::hello("crowd-uid")
        }))
        .await;
        let sets: Vec<_> = (0..REPLICA_SETS).map(|number| set(number, 0)).collect();
        let version = (9 + REPLICA_SETS).to_string();
        for frame in objects::lists(&sets, &[], &version) {
            self.send(frame).await;
        }
    }

    /// Changes the desired number of one ReplicaSet after the other.
    pub(crate) async fn change(self) {
        let mut steps = interval(STEP);
        for step in 0_usize.. {
            steps.tick().await;
            let changes = step * CHANGES_PER_STEP..(step + 1) * CHANGES_PER_STEP;
            let events = changes.map(|change| {
                let changed = set(change % REPLICA_SETS, change / REPLICA_SETS + 1);
                v1::event::Event::ReplicaSetApplied(changed)
            });
            self.send(objects::events(events)).await;
        }
    }

    /// Sends a frame. If the session has ended, the frame is dropped.
    async fn send(&self, frame: Frame) {
        let request = v1::ReconcileRequest {
            sequence: 0,
            frame: Some(frame),
        };
        let _ = self.0.send(request).await;
    }
}
