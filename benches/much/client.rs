//! A session of a cluster in which all writes succeed at once, and which loses pods on request.

use std::{
    collections::{HashMap, VecDeque},
    error::Error,
    time::{Duration, Instant},
};

use decree_api::v1::{
    self, batch::Action, decision_service_client::DecisionServiceClient, done::Object,
    event::Event, reconcile_request::Frame, reconcile_response::Frame as Answer,
};
use tests::objects as messages;
use tokio::{sync::mpsc, time};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Streaming, transport::Channel};

use crate::{
    measured::Waits,
    objects::{self, Shape},
    pace::Due,
};

/// The capacity of the queue of frames, so large that a sender never blocks while nobody reads the answers.
const FRAMES: usize = 1_024;
/// The interval of heartbeats.
const BEAT: Duration = Duration::from_secs(5);
/// The version of the first change, above the versions of the lists.
const VERSION: u64 = 1_000;

/// Why a session could not be opened, or ended.
pub(crate) type Ended = Box<dyn Error + Send + Sync>;

pub(crate) struct Client {
    shape: Shape,
    frames: mpsc::Sender<v1::ReconcileRequest>,
    answers: Streaming<v1::ReconcileResponse>,
    sequence: u64,
    version: u64,
    /// The number of created pods.
    created: usize,
    /// The pods of the ReplicaSets that have lost some.
    touched: HashMap<usize, Touched>,
}

/// The pods of a ReplicaSet, and the times of the losses without an answer.
struct Touched {
    pods: VecDeque<(String, String)>,
    told: VecDeque<Instant>,
}

impl Client {
    pub(crate) async fn open(address: &str, cluster: &str, shape: Shape) -> Result<Self, Ended> {
        let endpoint = Channel::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
        let mut service = DecisionServiceClient::new(endpoint.connect().await?);
        let (frames, outbound) = mpsc::channel(FRAMES);
        let hello = Frame::Hello(v1::Hello {
            options: Some(messages::replacing_at_once()),
            ..messages::hello(cluster)
        });
        let first = v1::ReconcileRequest {
            sequence: 1,
            frame: Some(hello),
        };
        frames.send(first).await?;
        tokio::spawn(beat(frames.downgrade()));
        let call = service.reconcile(ReceiverStream::new(outbound)).await?;
        let mut client = Self {
            shape,
            frames,
            answers: call.into_inner(),
            sequence: 1,
            version: VERSION,
            created: shape.replica_sets * shape.pods,
            touched: HashMap::new(),
        };
        let first = client.next().await?;
        if matches!(first, Answer::Welcome(_)) {
            return Ok(client);
        }
        Err(format!("{first:?} came instead of a Welcome").into())
    }

    /// Sends both lists, and returns the time of the first decision after its execution.
    pub(crate) async fn list(&mut self) -> Result<Instant, Ended> {
        self.send_list(self.shape.frames()).await?;
        self.first_decision().await
    }

    pub(crate) async fn send_list(
        &mut self,
        frames: impl Iterator<Item = Frame>,
    ) -> Result<(), Ended> {
        for frame in frames {
            self.send(frame).await?;
        }
        Ok(())
    }

    /// Executes the first decision, and returns the time at which it arrived.
    pub(crate) async fn first_decision(&mut self) -> Result<Instant, Ended> {
        let mut waits = Waits::default();
        loop {
            if let Answer::Batches(batches) = self.next().await? {
                let arrived = Instant::now();
                for batch in batches.batches {
                    self.follow(batch, &mut waits).await?;
                }
                return Ok(arrived);
            }
        }
    }

    /// Loses a pod each time one is due. Returns the waits for the replacements after the end of `due` and the last replacement.
    pub(crate) async fn lose(&mut self, mut due: mpsc::Receiver<Due>) -> Result<Waits, Ended> {
        let mut waits = Waits::default();
        let (mut lost, mut is_open) = (0, true);
        while is_open || waits.count() < lost {
            tokio::select! {
                next = due.recv(), if is_open => match next {
                    Some((number, at)) => {
                        lost += 1;
                        self.lose_one(number, at).await?;
                    }
                    None => is_open = false,
                },
                answer = self.answers.message() => {
                    let answer = answer?.ok_or("the session ended")?;
                    if let Some(Answer::Batches(batches)) = answer.frame {
                        for batch in batches.batches {
                            self.follow(batch, &mut waits).await?;
                        }
                    }
                }
            }
        }
        Ok(waits)
    }

    async fn lose_one(&mut self, number: usize, at: Instant) -> Result<(), Ended> {
        let (shape, number) = (self.shape, number % self.shape.replica_sets);
        let touched = self
            .touched
            .entry(number)
            .or_insert_with(|| Touched::of(shape, number));
        let (name, uid) = touched.pods.pop_front().ok_or("no pod is left to lose")?;
        touched.told.push_back(at);
        let deleted = Event::Deleted(v1::Deleted {
            kind: v1::Kind::Pod.into(),
            object: Some(v1::ObjectRef {
                namespace: "default".to_owned(),
                name,
                uid,
            }),
            resource_version: self.next_version(),
        });
        self.send(messages::events([deleted])).await
    }

    async fn follow(&mut self, batch: v1::Batch, waits: &mut Waits) -> Result<(), Ended> {
        let owner = batch.replica_set.ok_or("a batch names no ReplicaSet")?.name;
        let set = objects::number_of(&owner);
        let done = match batch.action.ok_or("a batch has no action")? {
            Action::Create(create) => self.create(set, &create.names, waits),
            Action::WriteStatus(write) => {
                let mut object = self.shape.replica_set(set);
                object.status = write.status;
                object.resource_version = self.next_version();
                vec![Object::ReplicaSet(object)]
            }
            other @ (Action::Delete(_) | Action::Claim(_) | Action::Advise(_)) => {
                return Err(format!("{owner} needs no {other:?}").into());
            }
        };
        self.send(messages::done(batch.id, done)).await
    }

    fn create(&mut self, set: usize, names: &[String], waits: &mut Waits) -> Vec<Object> {
        let mut done = Vec::new();
        for name in names {
            self.created += 1;
            self.version += 1;
            let pod = objects::named_pod(name, set, self.created, self.version);
            if let Some(touched) = self.touched.get_mut(&set) {
                touched.pods.push_back((pod.name.clone(), pod.uid.clone()));
                if let Some(told) = touched.told.pop_front() {
                    waits.note(told);
                }
            }
            done.push(Object::Pod(pod));
        }
        done
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    async fn send(&mut self, frame: Frame) -> Result<(), Ended> {
        self.sequence += 1;
        let request = v1::ReconcileRequest {
            sequence: self.sequence,
            frame: Some(frame),
        };
        if self.frames.send(request).await.is_ok() {
            return Ok(());
        }
        // Only the answers tell why nothing more is read.
        while self.answers.message().await?.is_some() {}
        Err("the session ended".into())
    }

    async fn next(&mut self) -> Result<Answer, Ended> {
        loop {
            let answer = self.answers.message().await?.ok_or("the session ended")?;
            match answer.frame {
                Some(Answer::Heartbeat(_)) | None => {}
                Some(frame) => return Ok(frame),
            }
        }
    }
}

/// Sends heartbeats while the session is open, as an idle agent does.
async fn beat(frames: mpsc::WeakSender<v1::ReconcileRequest>) {
    loop {
        time::sleep(BEAT).await;
        let Some(frames) = frames.upgrade() else {
            return;
        };
        let heartbeat = v1::ReconcileRequest {
            sequence: 0,
            frame: Some(Frame::Heartbeat(v1::Heartbeat::default())),
        };
        if frames.send(heartbeat).await.is_err() {
            return;
        }
    }
}

impl Touched {
    fn of(shape: Shape, set: usize) -> Self {
        // The missing pod of the first ReplicaSet never existed.
        let first = usize::from(set == 0);
        let pods = (first..shape.pods).map(|at| shape.pod(set, at));
        Self {
            pods: pods.map(|pod| (pod.name, pod.uid)).collect(),
            told: VecDeque::new(),
        }
    }
}
