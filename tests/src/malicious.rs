//! A decision server that lies, over real sockets, for agents to stand: one [`Lie`] each, after an honest beginning.
//!
//! It lets the agent create what is wanted, as an honest server would, and lies from then on. Meanwhile it reads what the agent streams
//! ([`Witness`]): the agent is honest, so whatever a lie led to in its cluster is seen there.

mod creation;
mod lie;
mod witness;

use std::{
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use decree::v1::{
    self,
    decision_service_server::{DecisionService, DecisionServiceServer},
    reconcile_response,
};
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    sync::{Notify, mpsc},
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming, transport::Server};

pub use self::{lie::Lie, witness::Witness};

/// How many frames wait for the agent.
const FRAMES_MAX: usize = 16;

/// The server. Dropping it ends its connections.
#[derive(Debug)]
pub struct MaliciousServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

#[derive(Debug, Default)]
struct Shared {
    witness: Mutex<Witness>,
    /// Wakes the one that waits outside.
    told: Condvar,
    /// Wakes the session that lies.
    news: Notify,
}

struct Service {
    lie: Lie,
    shared: Arc<Shared>,
}

/// One side of a session: what leaves.
struct Mouth {
    outgoing: mpsc::Sender<Result<v1::ReconcileResponse, Status>>,
    sequence: u64,
}

type Answer<T> = Result<Response<T>, Status>;

// === impl MaliciousServer ===

impl MaliciousServer {
    /// Starts a server with a lie, on a free port of loopback.
    ///
    /// # Panics
    /// Where there is no port.
    #[must_use]
    pub fn start(lie: Lie) -> Self {
        let runtime = Runtime::new().expect("there are threads");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let service = Service {
            lie,
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

    /// Returns where it listens, such as `127.0.0.1:50051`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Waits until what was seen satisfies a condition, and returns what `read` makes of it; `None` where that takes longer than `patience`.
    pub fn wait_for<T>(
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

    /// Waits until what was seen satisfies a condition.
    async fn until(&self, is_so: impl Fn(&Witness) -> bool) {
        while !is_so(&self.witness()) {
            self.news.notified().await;
        }
    }
}

// === impl Mouth ===

impl Mouth {
    /// Sends a frame. Returns whether the agent still listens.
    async fn send(&mut self, frame: reconcile_response::Frame) -> bool {
        self.sequence += 1;
        let frame = v1::ReconcileResponse {
            sequence: self.sequence,
            frame: Some(frame),
        };
        self.outgoing.send(Ok(frame)).await.is_ok()
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
        if let Some(refusal) = self.lie.refusal() {
            return Err(refusal);
        }
        let (outgoing, stream) = mpsc::channel(FRAMES_MAX);
        let mouth = Mouth {
            outgoing,
            sequence: 0,
        };
        let (lie, shared) = (self.lie, Arc::clone(&self.shared));
        tokio::spawn(async move {
            let incoming = request.into_inner();
            let heard = hear(incoming, &shared, lie);
            // The first to end ends the session.
            tokio::select! {
                () = heard => {}
                () = speak(mouth, &shared, lie) => {}
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

/// Reads what the agent sends; not all of it, if the lie is not to read.
async fn hear(mut incoming: Streaming<v1::ReconcileRequest>, shared: &Shared, lie: Lie) {
    while let Ok(Some(message)) = incoming.message().await {
        let Some(frame) = message.frame else { continue };
        shared.tell(|witness| witness.hear(frame));
        if lie == Lie::ReadNoOutcome && shared.witness().is_settled() {
            return std::future::pending().await;
        }
    }
}

async fn speak(mut mouth: Mouth, shared: &Shared, lie: Lie) {
    shared.until(Witness::is_greeted).await;
    if !mouth.send(lie.welcome()).await {
        return;
    }
    shared.until(Witness::is_listed).await;
    if !settle(&mut mouth, shared).await {
        return;
    }
    for round in 0.. {
        let frames = shared.tell(|witness| {
            witness.rounds += 1;
            lie.frames(round, witness)
        });
        for frame in frames {
            if !mouth.send(frame).await {
                return;
            }
        }
        if lie.waits_for_outcomes() {
            shared.until(Witness::is_answered).await;
        }
        if lie.ends_session() {
            return std::future::pending().await;
        }
        tokio::task::yield_now().await;
    }
}

/// Lets the agent create what is wanted, as an honest server would.
async fn settle(mouth: &mut Mouth, shared: &Shared) -> bool {
    let batches = shared.tell(Witness::wanted_batches);
    for batch in batches {
        let batches = vec![batch];
        let frame = reconcile_response::Frame::Batches(v1::Batches { batches });
        if !mouth.send(frame).await {
            return false;
        }
    }
    shared.until(Witness::is_settled).await;
    shared.until(Witness::is_answered).await;
    true
}
