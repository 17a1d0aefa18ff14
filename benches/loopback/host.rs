//! Both servers, each on a worker of a separate runtime, and the processor time of the threads of this runtime.

use std::{
    collections::VecDeque,
    fs, iter,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use decree_api::v1::{
    self,
    decision_service_server::{DecisionService, DecisionServiceServer},
    reconcile_request, reconcile_response,
};
use decree_server::{Config, Server};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::mpsc,
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::link::Step;

/// The number of hosts so far. The threads of a host have this number in their name, by which the host finds their time.
static HOSTS: AtomicUsize = AtomicUsize::new(0);
/// The capacity of the queue of frames to write, the same as in the decision server.
pub(crate) const QUEUE: usize = 16;

/// A server that runs until this is dropped.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    thread: String,
    runtime: Option<Runtime>,
}

/// A tonic service that sends prepared answers, and has no state.
#[derive(Clone)]
pub(crate) enum Bare {
    /// Sends the recorded frames of a session's server. The service sends each frame after it has read what the client had sent
    /// before it read the frame `ahead` positions earlier. The client was at most that far behind, because the queue holds that
    /// many frames.
    Replay { log: Arc<Vec<Step>>, ahead: usize },
    /// Answers each frame of events with one pod to create.
    Answer,
}

type Answers = mpsc::Sender<Result<v1::ReconcileResponse, Status>>;

impl Host {
    pub(crate) fn decree() -> Self {
        Self::start(async {
            let server = Server::bind(Config::embedded()).await.expect("free ports");
            let address = server.addresses().grpc.tcp().expect("TCP");
            tokio::spawn(server.serve(CancellationToken::new()));
            address
        })
    }

    pub(crate) fn bare(bare: Bare) -> Self {
        Self::start(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("it is bound");
            let router =
                tonic::transport::Server::builder().add_service(DecisionServiceServer::new(bare));
            let incoming = TcpListenerStream::new(listener);
            tokio::spawn(router.serve_with_incoming(incoming));
            address
        })
    }

    fn start(server: impl Future<Output = SocketAddr> + Send + 'static) -> Self {
        let thread = format!("host-{}", HOSTS.fetch_add(1, Ordering::Relaxed));
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(&thread)
            // A large step leaves its worker to another thread. No thread ends, because its time would be lost.
            .thread_keep_alive(Duration::from_secs(3_600))
            .enable_all()
            .build()
            .expect("a runtime");
        let (started, start) = std::sync::mpsc::sync_channel(1);
        runtime.spawn(async move { started.send(server.await) });
        let address = start.recv().expect("the server starts");
        Self {
            address,
            thread,
            runtime: Some(runtime),
        }
    }

    /// The processor time of the threads of the server; `None` if the system does not report it.
    pub(crate) fn processor_time(&self) -> Option<Duration> {
        let times = threads(&self.thread);
        let times = times.into_iter().map(|thread| time_of(&thread));
        times.reduce(|sum, time| Some(sum? + time?)).flatten()
    }
}

/// The threads with this name.
fn threads(name: &str) -> Vec<PathBuf> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let paths = threads.filter_map(|thread| Some(thread.ok()?.path()));
    let is_named = |path: &PathBuf| {
        let there = fs::read_to_string(path.join("comm"));
        there.is_ok_and(|there| there.trim() == name)
    };
    paths.filter(is_named).collect()
}

/// The processor time of a thread.
fn time_of(thread: &Path) -> Option<Duration> {
    let times = fs::read_to_string(thread.join("schedstat")).ok()?;
    let nanoseconds = times.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

impl Drop for Host {
    fn drop(&mut self) {
        // A client drops its host where it must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[tonic::async_trait]
impl DecisionService for Bare {
    type ReconcileStream = ReceiverStream<Result<v1::ReconcileResponse, Status>>;

    async fn reconcile(
        &self,
        request: Request<Streaming<v1::ReconcileRequest>>,
    ) -> Result<Response<Self::ReconcileStream>, Status> {
        let (answers, outbound) = mpsc::channel(QUEUE);
        let frames = request.into_inner();
        match self.clone() {
            Self::Replay { log, ahead } => tokio::spawn(replay(log, ahead, frames, answers)),
            Self::Answer => tokio::spawn(answer(frames, answers)),
        };
        Ok(Response::new(ReceiverStream::new(outbound)))
    }

    async fn decide(
        &self,
        _: Request<v1::DecideRequest>,
    ) -> Result<Response<v1::DecideResponse>, Status> {
        Err(Status::unimplemented("only streams are compared"))
    }

    async fn simulate(
        &self,
        _: Request<v1::SimulateRequest>,
    ) -> Result<Response<v1::SimulateResponse>, Status> {
        Err(Status::unimplemented("only streams are compared"))
    }

    async fn renew_session(
        &self,
        _: Request<v1::RenewSessionRequest>,
    ) -> Result<Response<v1::RenewSessionResponse>, Status> {
        Err(Status::unimplemented("only streams are compared"))
    }
}

async fn replay(
    log: Arc<Vec<Step>>,
    ahead: usize,
    mut frames: Streaming<v1::ReconcileRequest>,
    answers: Answers,
) {
    let mut sent = 0;
    let mut sent_before: VecDeque<usize> = iter::repeat_n(1, ahead).collect();
    let mut read = 0;
    for step in log.iter() {
        let Step::Received(answer) = step else {
            sent += 1;
            continue;
        };
        sent_before.push_back(sent);
        while read < sent_before.front().copied().unwrap_or(sent) {
            if !matches!(frames.message().await, Ok(Some(_))) {
                return;
            }
            read += 1;
        }
        sent_before.pop_front();
        if answers.send(Ok(answer.clone())).await.is_err() {
            return;
        }
    }
    // The last answers are in flight until the client closes.
    while let Ok(Some(_)) = frames.message().await {}
}

async fn answer(mut frames: Streaming<v1::ReconcileRequest>, answers: Answers) {
    while let Ok(Some(request)) = frames.message().await {
        let frame = match request.frame {
            Some(reconcile_request::Frame::Hello(_)) => {
                reconcile_response::Frame::Welcome(v1::Welcome::default())
            }
            Some(reconcile_request::Frame::Events(events)) => {
                reconcile_response::Frame::Batches(v1::Batches {
                    batches: events.events.into_iter().filter_map(creation).collect(),
                })
            }
            _ => continue,
        };
        let answer = v1::ReconcileResponse {
            sequence: request.sequence,
            frame: Some(frame),
        };
        if answers.send(Ok(answer)).await.is_err() {
            return;
        }
    }
}

/// A batch like the one that the decision server sends for a deleted pod.
fn creation(event: v1::Event) -> Option<v1::Batch> {
    let Some(v1::event::Event::Deleted(deleted)) = event.event else {
        return None;
    };
    let pod = deleted.object?;
    let set = pod.name.rsplit_once('-')?.0.to_owned();
    Some(v1::Batch {
        id: 1,
        replica_set: Some(v1::ObjectRef {
            namespace: pod.namespace,
            uid: format!("{set}-uid"),
            name: set,
        }),
        generation: 1,
        replica_set_version: "10".to_owned(),
        pods_version: deleted.resource_version,
        guard: Some(v1::Guard {
            session_id: "0123456789abcdef0123456789abcdef".to_owned(),
            epoch: 1,
        }),
        action: Some(v1::batch::Action::Create(v1::Create {
            names: vec![pod.name],
            generate_name: String::new(),
            slow_start_initial: 1,
        })),
        reasons: vec![v1::Reason {
            rule: v1::Rule::TooFewReplicas.into(),
            detail: "9 active pods, 10 desired".to_owned(),
        }],
        ..v1::Batch::default()
    })
}
