//! What all calls of one server share.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::Access, args::Config, error::Refusal, metrics::Metrics, recorder::Recorder,
    registry::Registry, watchers::Watchers,
};

/// One server, as its calls see it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) metrics: Metrics,
    pub(crate) access: Arc<Access>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) watchers: Arc<Watchers>,
    /// Cancelled when the server begins to drain.
    pub(crate) draining: CancellationToken,
    /// The sessions, so that a drain can wait for them.
    pub(crate) tasks: TaskTracker,
    pub(crate) sessions: Arc<Semaphore>,
    pub(crate) decides: Arc<Semaphore>,
    /// Where sessions are recorded, if they are.
    pub(crate) recorder: Option<Recorder>,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(config: Config, metrics: Metrics, access: Access) -> Self {
        let limits = &config.limits;
        Self {
            access: Arc::new(access),
            registry: Arc::default(),
            watchers: Arc::new(Watchers::new(limits.watchers_max, limits.watch_buffer)),
            draining: CancellationToken::new(),
            tasks: TaskTracker::new(),
            sessions: Arc::new(Semaphore::new(limits.sessions_max)),
            decides: Arc::new(Semaphore::new(limits.decides_max)),
            recorder: None,
            metrics,
            config,
        }
    }

    /// Returns what the server grants its sessions.
    pub(crate) fn session_config(&self) -> server_session::Config {
        let Config {
            drain_deadline,
            reconnect_after,
            heartbeat_interval,
            limits,
            ..
        } = &self.config;
        server_session::Config {
            server_version: env!("CARGO_PKG_VERSION").into(),
            frame_bytes_max: limits.frame_bytes_max,
            objects_max: limits.objects_max,
            operations_in_flight_max: limits.operations_in_flight_max,
            heartbeat_interval: *heartbeat_interval,
            drain_deadline: *drain_deadline,
            reconnect_after: *reconnect_after,
        }
    }

    /// Returns the refusal of what would begin during a drain.
    pub(crate) const fn drain_refusal(&self) -> Refusal {
        Refusal::Session(server_session::Refusal::Draining {
            reconnect_after: self.config.reconnect_after,
        })
    }

    /// Refuses what would begin during a drain.
    pub(crate) fn check_draining(&self) -> Result<(), Refusal> {
        if self.draining.is_cancelled() {
            Err(self.drain_refusal())
        } else {
            Ok(())
        }
    }
}
