//! A malicious server, over real sockets: decision service or bytes.
//!
//! A decision service lets the agent create the desired pods, as an honest server would, and then sends the frames of a
//! [`Session`]. Meanwhile, it reads the agent's stream ([`View`]). The agent is honest, so the stream shows every effect of an
//! attack on its cluster.

use std::{
    future::ready,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use decree_api::v1::{
    self, decision_service_server::DecisionServiceServer, reconcile_response::Frame,
};
use tests::sessions::{Answers, Frames, Sessions};
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    sync::{Notify, mpsc},
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Status, transport};

use super::{
    session::{Output, Session},
    view::View,
};
use crate::connections::Connections;

/// The capacity of the queue of frames for the agent.
const FRAMES_MAX: usize = 16;

/// The server. Dropping it ends its connections.
pub(super) struct Server {
    address: String,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

#[derive(Default)]
struct Shared {
    view: Mutex<View>,
    /// Wakes the waiting test.
    changed: Condvar,
    /// Wakes the session.
    news: Notify,
}

/// The sending side of a session.
struct Outgoing {
    frames: mpsc::Sender<Result<v1::ReconcileResponse, Status>>,
    sequence: u64,
}

impl Server {
    /// Starts a decision service with this session, on a free port of loopback.
    pub(super) fn speaking(session: Session) -> Self {
        Self::start(|listener, shared| async move {
            let sessions = Sessions(move |said| ready(open(&session, &shared, said)));
            let mut server = transport::Server::builder();
            let server = server.add_service(DecisionServiceServer::new(sessions));
            // The test ends it.
            let _ = server
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await;
        })
    }

    /// Starts a server that executes these steps of [`Connections`] on each connection, on a free port of loopback.
    pub(super) fn sending(steps: Vec<String>) -> Self {
        Self::start(|listener, shared| async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.change(|view| view.sessions += 1);
                let acts = Connections::of_server(steps.clone());
                tokio::spawn(async move {
                    if !acts.run_on(stream, false).await.held.is_empty() {
                        std::future::pending::<()>().await;
                    }
                });
            }
        })
    }

    fn start<F>(serve: impl FnOnce(TcpListener, Arc<Shared>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = Runtime::new().expect("there are threads");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let shared = Arc::new(Shared::default());
        runtime.spawn(serve(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _runtime: runtime,
        }
    }

    /// Its address, such as `127.0.0.1:50051`.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The observations so far.
    pub(super) fn view(&self) -> View {
        self.shared.view().clone()
    }

    /// Waits until a condition holds for the observations. Returns whether it does before `patience` is over.
    pub(super) fn wait_until(&self, patience: Duration, is_so: impl Fn(&View) -> bool) -> bool {
        let until = Instant::now() + patience;
        let mut view = self.shared.view();
        while !is_so(&view) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.changed.wait_timeout(view, left);
            view = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Shared {
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut View) -> T) -> T {
        let changed = change(&mut self.view());
        self.changed.notify_all();
        self.news.notify_one();
        changed
    }

    /// Waits until a condition holds for the observations.
    async fn until(&self, is_so: impl Fn(&View) -> bool) {
        while !is_so(&self.view()) {
            self.news.notified().await;
        }
    }
}

impl Outgoing {
    /// Returns whether the agent still reads.
    async fn send(&mut self, output: Output) -> bool {
        self.sequence += 1;
        let frame = match output {
            Output::End(status) => return self.frames.send(Err(status)).await.is_err(),
            Output::Nothing => None,
            Output::Frame(frame) => Some(*frame),
        };
        let response = v1::ReconcileResponse {
            sequence: self.sequence,
            frame,
        };
        self.frames.send(Ok(response)).await.is_ok()
    }
}

/// Opens a session, or refuses it.
fn open(session: &Session, shared: &Arc<Shared>, said: Frames) -> Result<Answers, Status> {
    shared.change(View::begin_session);
    if let Some(refusal) = session.refusal() {
        return Err(refusal);
    }
    let (frames, stream) = mpsc::channel(FRAMES_MAX);
    let outgoing = Outgoing {
        frames,
        sequence: 0,
    };
    let (session, shared) = (session.clone(), Arc::clone(shared));
    tokio::spawn(async move {
        // The first to end ends the session.
        tokio::select! {
            () = read(said, &shared, &session) => {}
            () = write(outgoing, &shared, &session) => {}
        }
    });
    Ok(Box::pin(ReceiverStream::new(stream)))
}

/// Reads the agent's frames, or only some if the server must not read.
async fn read(mut incoming: Frames, shared: &Shared, session: &Session) {
    while let Ok(Some(message)) = incoming.message().await {
        let Some(frame) = message.frame else { continue };
        shared.change(|view| view.take(frame));
        if !session.reads && shared.view().is_settled() {
            return std::future::pending().await;
        }
    }
}

async fn write(mut outgoing: Outgoing, shared: &Shared, session: &Session) {
    shared.until(View::is_greeted).await;
    if !outgoing.send(Output::frame(session.welcome())).await {
        return;
    }
    if session.honest {
        shared.until(View::is_listed).await;
        for batch in shared.change(View::desired_batches) {
            let batches = v1::Batches {
                batches: vec![batch],
            };
            if !outgoing.send(Output::frame(Frame::Batches(batches))).await {
                return;
            }
        }
        shared.until(View::is_settled).await;
        shared.until(View::is_answered).await;
    }
    for round in 0.. {
        for output in shared.change(|view| session.round(round, view)) {
            if !outgoing.send(output).await {
                return;
            }
        }
        if session.waits {
            shared.until(View::is_answered).await;
        }
        if session.once {
            return std::future::pending().await;
        }
        tokio::task::yield_now().await;
    }
}
