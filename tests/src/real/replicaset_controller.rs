//! Upstream's ReplicaSet controller alone, with or without a fault.

use tokio::task;

use super::{api_server::ApiServer, assets, namespace::Namespace, program::Program};

/// A running controller of one namespace, killed on drop.
#[derive(Debug)]
pub struct ReplicaSetController {
    program: Program,
}

impl ReplicaSetController {
    /// Starts a controller with a fault by its name in `tests/cluster/replicaset-controller`, or without one for an empty name,
    /// and does not wait for its readiness. `None` without tools to build it.
    ///
    /// # Panics
    /// If it does not build.
    pub async fn start(server: &ApiServer, namespace: &Namespace, fault: &str) -> Option<Self> {
        let assets = task::spawn_blocking(assets::replicaset_controller).await;
        let assets = assets.expect("it says why it panics")?;
        let (namespace, fault) = (
            format!("--namespace={}", namespace.name()),
            format!("--fault={fault}"),
        );
        let flags = [&*namespace, &fault];
        let program = Program::start(assets, server.folder(), "replicaset-controller", &flags);
        Some(Self { program })
    }

    /// Returns the end of its log, which all such controllers of a cluster share.
    pub fn log(&self) -> String {
        self.program.tail()
    }
}
