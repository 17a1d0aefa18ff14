//! The scheduler, for clusters whose nodes run pods.

use tokio::task;

use super::{api_server::ApiServer, assets, program::Program};

/// A running kube-scheduler, killed on drop.
#[derive(Debug)]
pub struct Scheduler {
    _program: Program,
}

impl Scheduler {
    /// Starts a scheduler, and does not wait for its readiness. `None` without tools to build it.
    ///
    /// # Panics
    /// If it does not build.
    pub async fn start(server: &ApiServer) -> Option<Self> {
        let assets = task::spawn_blocking(assets::scheduler).await;
        let assets = assets.expect("it says why it panics")?;
        Some(Self {
            _program: Program::start(assets, server.folder(), "kube-scheduler", &[]),
        })
    }
}
