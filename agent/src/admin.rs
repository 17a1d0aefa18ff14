//! The admin port of an agent: probes and metrics.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use service::{admin, process};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::shell::ShellConfig;

/// The most connections of the port: more than probes and scrapers need.
const CONNECTIONS_MAX: usize = 64;

/// Serves the port of an agent that runs with `config`, until the drop of the return value, even while the agent drains. `registry` has the
/// metrics of the server connection. This function adds those of the agent and of the process.
pub fn serve_admin(
    config: &ShellConfig,
    mut registry: Registry,
    listener: TcpListener,
) -> AbortOnDropHandle<()> {
    config.metrics.register(&mut registry);
    process::register(&mut registry, "decree_agent");
    let router = admin::router(config.readiness.clone(), Arc::new(registry));
    AbortOnDropHandle::new(tokio::spawn(admin::serve(
        listener,
        router,
        CONNECTIONS_MAX,
    )))
}
