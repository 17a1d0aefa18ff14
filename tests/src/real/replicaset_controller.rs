//! Upstream's own ReplicaSet controller alone, with a fault or without.

use tokio::task;

use super::{api_server::ApiServer, assets, namespace::Namespace, program::Program};

/// A running controller of one namespace; it is killed when this is dropped.
#[derive(Debug)]
pub struct ReplicaSetController {
    program: Program,
}

// === impl ReplicaSetController ===

impl ReplicaSetController {
    /// Starts one with a fault by its name in `tests/cluster/replicaset-controller`, an empty one for none, and does not wait for it.
    /// `None` where there is nothing to build it with.
    ///
    /// # Panics
    /// Where it does not build.
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

    /// Returns the end of its log, which all of a cluster share.
    #[must_use]
    pub fn log(&self) -> String {
        self.program.tail()
    }
}
