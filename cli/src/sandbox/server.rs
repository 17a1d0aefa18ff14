//! The server of a sandbox, and its clients.

use std::{io, time::Duration};

use decree_server::{Addresses, ServeError};
use runtime::{ListenAddr, failure::chain};
use tokio::runtime::{Builder, Handle, Runtime};
use transport::Connector;

use super::{feed::Feed, settings::Settings, task::Task};
use crate::{
    exit::{Exit, Failure},
    server::{Bearer, Server},
};

/// The timeout for calls in flight and the session at the end: all are in this process.
const DRAIN_MAX: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct RunningServer {
    pub(crate) addresses: Addresses,
    pub(crate) client: Server,
    pub(crate) feed: Feed,
    /// The connector of an agent to the server.
    pub(super) connector: Connector,
    pub(super) task: Task<ServeError>,
    /// The threads of the server, if it can be killed.
    threads: Option<Threads>,
}

/// Threads whose work ends at once when this is dropped, as in a killed process.
#[derive(Debug)]
pub(crate) struct Threads(Option<Runtime>);

// === impl RunningServer ===

impl RunningServer {
    /// Starts a server with additional routes on its admin port.
    pub(super) async fn start(settings: &Settings, routes: axum::Router) -> Result<Self, Failure> {
        let threads = settings.is_killable.then(Threads::start).transpose();
        let threads = threads.map_err(|error| cannot_start(&error.to_string()))?;
        let on = match &threads {
            Some(Threads(Some(own))) => own.handle().clone(),
            Some(Threads(None)) | None => Handle::current(),
        };
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
            let failure = cannot_start(&chain(&error));
            failure.hint("use free ports: --listen 127.0.0.1:0 --admin 127.0.0.1:0")
        })?;
        let addresses = server.addresses().clone();
        // An in-memory transport ends with the server; a socket is there again when the server is.
        let connector = match threads {
            Some(_) => Connector::local(&addresses.grpc),
            None => server.connector(),
        };
        let server = server.with_admin_routes(routes);
        let task = Task::start("server", &on, |stop| server.serve(stop));
        let client = Server::connect_by(connector.clone(), Bearer::none(), PATIENCE).await?;
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

    /// Ends the server as SIGKILL ends a process, if it has its own threads.
    pub(super) fn kill(&mut self) {
        self.threads = None;
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

    /// Runs a task until it ends, or the threads are dropped.
    pub(crate) fn spawn<F>(&self, work: F)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        if let Some(runtime) = &self.0 {
            runtime.spawn(work);
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn cannot_start(cause: &str) -> Failure {
    Failure::new(Exit::No, format!("the server cannot start: {cause}"))
}
