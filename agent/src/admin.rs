//! The admin port of an agent: probes, metrics, and the holds of its budget.

use std::{io, sync::Arc};

use agent_kube::KubeCluster;
use axum::Router;
use prometheus_client::registry::Registry;
use service::build_info::{COMMIT, VERSION};
use service::{Readiness, admin, process};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{cluster::FakeCluster, resume, shell::ShellConfig};

/// The most connections of the port: more than probes and scrapers need.
const CONNECTIONS_MAX: usize = 64;

/// The contents of an agent's admin port.
#[derive(Debug)]
pub struct Admin {
    registry: Registry,
    readiness: Readiness,
    routes: Router,
}

/// A served admin port, until it is [ended](Self::end).
#[derive(Debug)]
pub struct AdminServer {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Admin {
    /// Creates the port of an agent that runs with `config`. `registry` has the metrics of the server connection; this
    /// function adds the metrics of the agent and the process.
    #[must_use]
    pub fn new(config: &ShellConfig, mut registry: Registry) -> Self {
        config.metrics.register(&mut registry);
        process::register(&mut registry, "decree_agent", (VERSION, COMMIT));
        Self {
            registry,
            readiness: config.readiness.clone(),
            routes: config.holds.router(),
        }
    }

    /// Adds the metrics of the calls to a real cluster.
    #[must_use]
    pub fn with_kubernetes(mut self, cluster: &KubeCluster) -> Self {
        cluster.register_metrics(&mut self.registry);
        self
    }

    /// Adds the route by which people resume the holds of a budget in an embedded cluster.
    #[must_use]
    pub fn with_fake(mut self, cluster: &FakeCluster) -> Self {
        self.routes = self.routes.merge(resume::router(cluster.clone()));
        self
    }

    /// Serves the port, even while the agent drains.
    #[must_use]
    pub fn serve(self, listener: TcpListener) -> AdminServer {
        let router = admin::router(self.readiness, Arc::new(self.registry)).merge(self.routes);
        let stop = CancellationToken::new();
        let served = admin::serve(listener, router, stop.clone(), CONNECTIONS_MAX);
        AdminServer {
            task: tokio::spawn(served),
            stop,
        }
    }
}

impl AdminServer {
    /// Stops serving, without waiting for requests under way.
    ///
    /// # Errors
    /// If serving has panicked.
    pub async fn end(self) -> io::Result<()> {
        self.stop.cancel();
        self.task.await.map_err(io::Error::from)
    }
}
