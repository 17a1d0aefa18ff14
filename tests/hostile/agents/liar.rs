//! A lying decision server, over real sockets: the lies of a [`Speech`], after an honest start.
//!
//! The server lets the agent create the desired pods, as an honest server would, and lies from then on. Meanwhile, it reads the
//! agent's stream ([`Witness`]). The agent is honest, so the stream shows every effect of a lie on its cluster.

use std::{
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use decree::v1::{
    self,
    decision_service_server::{DecisionService, DecisionServiceServer},
    reconcile_response::Frame,
};
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    sync::{Notify, mpsc},
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming, transport::Server};

use super::{
    speech::{Saying, Speech},
    witness::Witness,
};

/// The capacity of the queue of frames for the agent.
const FRAMES_MAX: usize = 16;

/// The server. Dropping it ends its connections.
pub(crate) struct MaliciousServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

#[derive(Default)]
struct Shared {
    witness: Mutex<Witness>,
    /// Wakes the waiting test.
    told: Condvar,
    /// Wakes the lying session.
    news: Notify,
}

struct Service {
    speech: Speech,
    shared: Arc<Shared>,
}

/// The sending side of a session.
struct Mouth {
    outgoing: mpsc::Sender<Result<v1::ReconcileResponse, Status>>,
    sequence: u64,
}

/// The manifest of a cluster with two ReplicaSets, and unrelated pods.
pub(crate) fn cluster() -> String {
    let set = |name: &str, replicas: u32| {
        format!(
            "apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: {name}, namespace: default}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: app, image: registry.example/app}}]}}
---
"
        )
    };
    let pod = |namespace: &str, name: &str| {
        format!(
            "apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{app: other}}}}
spec: {{containers: [{{name: app, image: registry.example/app}}]}}
---
"
        )
    };
    [
        set("web", 3),
        set("api", 5),
        pod("default", "lone"),
        pod("kube-system", "coredns"),
    ]
    .concat()
}

type Answer<T> = Result<Response<T>, Status>;

// === impl MaliciousServer ===

impl MaliciousServer {
    /// Starts a server with this speech, on a free port of loopback.
    pub(crate) fn start(speech: Speech) -> Self {
        let runtime = Runtime::new().expect("there are threads");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let service = Service {
            speech,
            shared: Arc::clone(&shared),
        };
        let server = Server::builder().add_service(DecisionServiceServer::new(service));
        runtime.spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Self {
            address,
            shared,
            _runtime: runtime,
        }
    }

    /// Its address, such as `127.0.0.1:50051`.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// The observations so far.
    pub(crate) fn witness(&self) -> Witness {
        self.shared.witness().clone()
    }

    /// Waits until `read` succeeds on the observations; `None` after `patience`.
    pub(crate) fn wait_for<T>(
        &self,
        patience: Duration,
        mut read: impl FnMut(&Witness) -> Option<T>,
    ) -> Option<T> {
        let until = Instant::now() + patience;
        let mut witness = self.shared.witness();
        loop {
            if let Some(read) = read(&witness) {
                return Some(read);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.shared.told.wait_timeout(witness, left);
            witness = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

// === impl Shared ===

impl Shared {
    fn witness(&self) -> MutexGuard<'_, Witness> {
        self.witness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell<T>(&self, change: impl FnOnce(&mut Witness) -> T) -> T {
        let changed = change(&mut self.witness());
        self.told.notify_all();
        self.news.notify_one();
        changed
    }

    /// Waits until a condition holds for the observations.
    async fn until(&self, is_so: impl Fn(&Witness) -> bool) {
        while !is_so(&self.witness()) {
            self.news.notified().await;
        }
    }
}

// === impl Mouth ===

impl Mouth {
    /// Returns whether the agent still listens.
    async fn send(&mut self, frame: Frame) -> bool {
        self.say(Saying::Frame(Box::new(frame))).await
    }

    /// Returns whether the agent still listens.
    async fn say(&mut self, saying: Saying) -> bool {
        self.sequence += 1;
        let frame = match saying {
            Saying::Gap => return true,
            Saying::End(status) => return self.outgoing.send(Err(status)).await.is_err(),
            Saying::Nothing => None,
            Saying::Frame(frame) => Some(*frame),
        };
        let response = v1::ReconcileResponse {
            sequence: self.sequence,
            frame,
        };
        self.outgoing.send(Ok(response)).await.is_ok()
    }
}

#[tonic::async_trait]
impl DecisionService for Service {
    type ReconcileStream = ReceiverStream<Result<v1::ReconcileResponse, Status>>;

    async fn reconcile(
        &self,
        request: Request<Streaming<v1::ReconcileRequest>>,
    ) -> Answer<Self::ReconcileStream> {
        self.shared.tell(Witness::begin_session);
        if let Some(refusal) = self.speech.refusal() {
            return Err(refusal);
        }
        let (outgoing, stream) = mpsc::channel(FRAMES_MAX);
        let mouth = Mouth {
            outgoing,
            sequence: 0,
        };
        let (speech, shared) = (self.speech.clone(), Arc::clone(&self.shared));
        tokio::spawn(async move {
            let incoming = request.into_inner();
            let heard = hear(incoming, &shared, &speech);
            // The first to end ends the session.
            tokio::select! {
                () = heard => {}
                () = speak(mouth, &shared, &speech) => {}
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn decide(&self, _: Request<v1::DecideRequest>) -> Answer<v1::DecideResponse> {
        Err(Status::unimplemented("an agent does not ask"))
    }

    async fn renew_session(
        &self,
        _: Request<v1::RenewSessionRequest>,
    ) -> Answer<v1::RenewSessionResponse> {
        Err(Status::unimplemented("no session of this server lasts"))
    }

    async fn simulate(&self, _: Request<v1::SimulateRequest>) -> Answer<v1::SimulateResponse> {
        Err(Status::unimplemented("an agent does not ask"))
    }
}

/// Reads the agent's frames, or only some if the server must not read.
async fn hear(mut incoming: Streaming<v1::ReconcileRequest>, shared: &Shared, speech: &Speech) {
    while let Ok(Some(message)) = incoming.message().await {
        let Some(frame) = message.frame else { continue };
        shared.tell(|witness| witness.hear(frame));
        if !speech.reads && shared.witness().is_settled() {
            return std::future::pending().await;
        }
    }
}

async fn speak(mut mouth: Mouth, shared: &Shared, speech: &Speech) {
    shared.until(Witness::is_greeted).await;
    if !mouth.send(speech.welcome()).await {
        return;
    }
    if speech.honest {
        shared.until(Witness::is_listed).await;
        if !settle(&mut mouth, shared).await {
            return;
        }
    }
    for round in 0.. {
        let sayings = shared.tell(|witness| speech.round(round, witness));
        for saying in sayings {
            if !mouth.say(saying).await {
                return;
            }
        }
        if speech.waits {
            shared.until(Witness::is_answered).await;
        }
        if speech.once {
            return std::future::pending().await;
        }
        tokio::task::yield_now().await;
    }
}

/// Lets the agent create the desired pods, as an honest server would.
async fn settle(mouth: &mut Mouth, shared: &Shared) -> bool {
    let batches = shared.tell(Witness::wanted_batches);
    for batch in batches {
        let batches = vec![batch];
        let frame = Frame::Batches(v1::Batches { batches });
        if !mouth.send(frame).await {
            return false;
        }
    }
    shared.until(Witness::is_settled).await;
    shared.until(Witness::is_answered).await;
    true
}
