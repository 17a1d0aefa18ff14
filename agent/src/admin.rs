//! The admin port of an agent: probes, metrics, and the holds of its budget.

use std::sync::Arc;

use agent_kube::KubeCluster;
use axum::Router;
use prometheus_client::registry::Registry;
use service::{Readiness, admin, process};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::shell::ShellConfig;

/// The most connections of the port: more than probes and scrapers need.
const CONNECTIONS_MAX: usize = 64;

/// The contents of an agent's admin port.
#[derive(Debug)]
pub struct Admin {
    registry: Registry,
    readiness: Readiness,
    routes: Router,
}

impl Admin {
    /// Creates the port of an agent that runs with `config`. `registry` has the metrics of the server connection; this
    /// function adds the metrics of the agent and the process.
    pub fn new(config: &ShellConfig, mut registry: Registry) -> Self {
        config.metrics.register(&mut registry);
        process::register(&mut registry, "decree_agent");
        Self {
            registry,
            readiness: config.readiness.clone(),
            routes: config.holds.router(),
        }
    }

    /// Adds the metrics of the calls to a real cluster.
    pub fn with_kubernetes(mut self, cluster: &KubeCluster) -> Self {
        cluster.register_metrics(&mut self.registry);
        self
    }

    /// Serves the port until the drop of the return value, even while the agent drains.
    pub fn serve(self, listener: TcpListener) -> AbortOnDropHandle<()> {
        let router = admin::router(self.readiness, Arc::new(self.registry)).merge(self.routes);
        AbortOnDropHandle::new(tokio::spawn(admin::serve(
            listener,
            router,
            CONNECTIONS_MAX,
        )))
    }
}
