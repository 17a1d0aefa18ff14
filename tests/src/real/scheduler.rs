//! The scheduler, for clusters whose nodes run pods.

use tokio::task;

use super::{api_server::ApiServer, assets, program::Program};

/// A running kube-scheduler; it is killed when this is dropped.
#[derive(Debug)]
pub struct Scheduler {
    _program: Program,
}

// === impl Scheduler ===

impl Scheduler {
    /// Starts one, and does not wait for it. `None` where there is nothing to build it with.
    ///
    /// # Panics
    /// Where it does not build.
    pub async fn start(server: &ApiServer) -> Option<Self> {
        let assets = task::spawn_blocking(assets::scheduler).await;
        let assets = assets.expect("it says why it panics")?;
        Some(Self {
            _program: Program::start(assets, server.folder(), "kube-scheduler", &[]),
        })
    }
}
