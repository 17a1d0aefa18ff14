//! The server of a sandbox, its clients, and its decisions as they are made.

use std::{io, net::SocketAddr, time::Duration};

use decree::v1;
use decree_server::{Addresses, ServeError};
use otlp::OtlpArgs;
use runtime::{ListenAddr, failure::chain};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::Streaming;
use transport::Connector;

use super::task::Task;
use crate::{
    exit::{Exit, Failure},
    refusal,
    server::{Bearer, Server},
};

/// The timeout for calls in flight and the session at the end: all are in this process.
const DRAIN_MAX: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(5);
/// The capacity of the feed. A full feed waits, and the server counts the decisions that it misses.
const DECISIONS_MAX: usize = 1_024;

/// The addresses of server and agent, the seed of the embedded cluster, and the budget of the agent in it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) agent_admin: ListenAddr,
    pub(crate) seed: u64,
    /// The target of the traces of server and agent.
    pub(crate) otlp: OtlpArgs,
    pub(crate) budget: agent_core::budget::BudgetConfig,
    /// Whether the server can be killed and started again.
    pub(crate) is_killable: bool,
}

#[derive(Debug)]
pub(crate) struct RunningServer {
    pub(crate) addresses: Addresses,
    pub(crate) client: Server,
    pub(crate) feed: Feed,
    /// The connector of an agent to the server.
    pub(super) connector: Connector,
    pub(super) task: Task<ServeError>,
    /// The threads of the server, if it can be killed.
    pub(super) threads: Option<Threads>,
}

/// Threads whose work ends at once when this is dropped, as in a killed process.
#[derive(Debug)]
pub(crate) struct Threads(Option<Runtime>);

/// A decision, and the refusal of the cluster before it, if the decision reports it in a status.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) decision: v1::DecisionRecord,
    pub(crate) refused: Option<String>,
}

/// The decisions of one server. Dropping it ends its task.
#[derive(Debug)]
pub(crate) struct Feed {
    decisions: mpsc::Receiver<Decided>,
    _task: AbortOnDropHandle<()>,
}

// === impl RunningServer ===

impl RunningServer {
    /// Starts a server with additional routes on its admin port.
    pub(super) async fn start(settings: &Settings, routes: axum::Router) -> Result<Self, Failure> {
        let threads = settings.is_killable.then(Threads::start).transpose();
        let threads = threads.map_err(|error| cannot_start(&error.to_string()))?;
        let on = threads
            .as_ref()
            .map_or_else(Handle::current, Threads::handle);
        let config = decree_server::Config {
            listen: settings.listen.into(),
            admin: ListenAddr::At(settings.admin),
            drain_deadline: DRAIN_MAX,
            session_seed: Some(settings.seed),
            otlp: settings.otlp.clone(),
            ..decree_server::Config::embedded()
        };
        let bound = on.spawn(decree_server::Server::bind(config)).await;
        let bound = bound.map_err(|error| cannot_start(&error.to_string()))?;
        let server = bound.map_err(|error| {
            if let ServeError::Setup(_) | ServeError::Exposure(_) = error {
                let failure = cannot_start("it serves this machine only");
                return failure.hint("for other machines, run decree-server and decree-agent");
            }
            let failure = cannot_start(&chain(&error));
            failure.hint("use free ports: --listen 127.0.0.1:0 --admin 127.0.0.1:0")
        })?;
        let addresses = server.addresses().clone();
        // An in-memory transport ends with the server; a socket is there again when the server is.
        let connector = match threads {
            Some(_) => Connector::local(&addresses.grpc),
            None => server.connector(),
        };
        let stop = CancellationToken::new();
        let work = server.with_admin_routes(routes).serve(stop.clone());
        let task = Task::start("server", &on, stop, work);
        let client = Server::connect_by(connector.clone(), Bearer::default(), PATIENCE).await?;
        let feed = Feed::open(&client).await?;
        Ok(Self {
            addresses,
            client,
            feed,
            connector,
            task,
            threads,
        })
    }

    /// Drains and ends the server.
    pub(super) async fn end(self) -> Result<(), Failure> {
        drop((self.client, self.feed));
        self.task.end().await
    }
}

// === impl Threads ===

impl Threads {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    /// Where to start tasks, which run until they end or the threads are dropped.
    pub(crate) fn handle(&self) -> Handle {
        let runtime = self.0.as_ref().map(Runtime::handle);
        runtime.cloned().unwrap_or_else(Handle::current)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

// === impl Feed ===

impl Feed {
    pub(crate) async fn open(server: &Server) -> Result<Self, Failure> {
        let request = v1::WatchDecisionsRequest::default();
        let stream = server.answer(server.inspection().watch_decisions(request).await)?;
        let (sender, decisions) = mpsc::channel(DECISIONS_MAX);
        let task = tokio::spawn(carry(server.clone(), stream, sender));
        Ok(Self {
            decisions,
            _task: AbortOnDropHandle::new(task),
        })
    }

    /// The next decision, if one has arrived.
    pub(crate) fn try_next(&mut self) -> Option<Decided> {
        self.decisions.try_recv().ok()
    }

    /// Waits for the next decision, forever if the server has ended the feed.
    pub(crate) async fn next(&mut self) -> Decided {
        match self.decisions.recv().await {
            Some(decision) => decision,
            None => std::future::pending().await,
        }
    }
}

async fn carry(
    server: Server,
    mut stream: Streaming<v1::WatchDecisionsResponse>,
    sender: mpsc::Sender<Decided>,
) {
    while let Ok(Some(next)) = stream.message().await {
        let Some(decision) = next.decision else {
            continue;
        };
        let refused = refusal::before(&server, &decision).await;
        let decided = Decided { decision, refused };
        if sender.send(decided).await.is_err() {
            return;
        }
    }
}

fn cannot_start(cause: &str) -> Failure {
    Failure::new(Exit::No, format!("the server cannot start: {cause}"))
}
