//! Upstream's ReplicaSet controller alone, with or without faults.

use tokio::task;

use super::{api_server::ApiServer, assets, namespace::Namespace, program::Program};

/// A running controller of one namespace, killed on drop.
#[derive(Debug)]
pub struct ReplicaSetController {
    _program: Program,
}

impl ReplicaSetController {
    /// Starts a controller with further flags of `tests/cluster/replicaset-controller`, and does not wait for its readiness. `None`
    /// without tools to build it.
    ///
    /// # Panics
    /// If it does not build.
    pub async fn start(server: &ApiServer, namespace: &Namespace, flags: &[&str]) -> Option<Self> {
        let assets = task::spawn_blocking(assets::replicaset_controller).await;
        let assets = assets.expect("it says why it panics")?;
        let own = format!("--namespace={}", namespace.name());
        let flags = [&[&*own][..], flags].concat();
        let program = Program::start(assets, server.folder(), "replicaset-controller", &flags);
        Some(Self { _program: program })
    }
}
