//! Standing by while the built-in ReplicaSet controller is on.

use agent_core::{
    api::ApiError,
    standby::{Next, SeenBy, Standby},
};
use agent_kube::{Clock, KubeCluster, PROBE, Probe};
use jiff::Timestamp;
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::metrics::Metrics;

/// The wait after a failed call.
const RETRY: Duration = Duration::from_secs(1);
/// The interval of log lines that the built-in controller is on.
const SAY_AGAIN: Duration = Duration::from_secs(60);

/// An agent that waits for the built-in controller to be off.
#[derive(Debug)]
pub(crate) struct Waiting {
    probe: Probe,
    metrics: Metrics,
    clock: Clock,
    standby: Standby,
    said: Option<Timestamp>,
}

// === impl Waiting ===

impl Waiting {
    pub(crate) fn new(cluster: KubeCluster, namespace: String, metrics: Metrics) -> Self {
        Self {
            probe: Probe { cluster, namespace },
            metrics,
            clock: Clock::starting_at(Timestamp::now()),
            standby: Standby::default(),
            said: None,
        }
    }

    /// Waits until the built-in controller is off, or for `shutdown`. If the agent cannot find that out, it logs so and does not wait.
    pub(crate) async fn wait(mut self, shutdown: &CancellationToken) {
        self.metrics.set_standing_by(true);
        let refused = shutdown.run_until_cancelled(self.look()).await;
        self.metrics.set_standing_by(false);
        match refused {
            None => {}
            Some(Ok(())) => debug!("the built-in ReplicaSet controller is off"),
            Some(Err(error)) => warn!(
                %error,
                namespace = self.probe.namespace,
                probe = PROBE,
                "it cannot be found out whether the built-in ReplicaSet controller is on: the agent goes on as if it were off"
            ),
        }
    }

    async fn look(&mut self) -> Result<(), ApiError> {
        let mut next = self.standby.handle_look(self.clock.now(), SeenBy::Nobody);
        loop {
            let probe = match next {
                Next::Begin => break,
                Next::Look(after) => {
                    sleep(after).await;
                    self.probe.read().await
                }
                Next::Change(after) => {
                    sleep(after).await;
                    self.probe.change().await
                }
            };
            let now = self.clock.now();
            let probe = match probe {
                Ok(probe) => probe,
                Err(error) if is_final(&error) => return Err(error),
                Err(error) if error.code == Some(404) => match next {
                    // Somebody has deleted the probe.
                    Next::Look(_) => {
                        next = Next::Change(Duration::ZERO);
                        continue;
                    }
                    // The namespace is missing too.
                    Next::Change(_) | Next::Begin => return Err(error),
                },
                Err(error) => {
                    debug!(%error, "the probe cannot be looked at");
                    sleep(RETRY).await;
                    continue;
                }
            };
            if matches!(next, Next::Change(_)) {
                self.standby.handle_changed(now, probe.found_off);
            }
            next = self.standby.handle_look(now, probe.seen_by);
            if probe.seen_by == SeenBy::BuiltIn {
                self.say(now);
                if probe.found_off {
                    self.mark(false).await;
                }
            }
        }
        if self.said.is_some() {
            info!("the built-in ReplicaSet controller is off: the agent takes over");
        }
        self.mark(true).await;
        Ok(())
    }

    /// Notes for later agents whether the built-in controller is off. Without the mark, the next agent waits half a minute more.
    async fn mark(&self, is_off: bool) {
        if let Err(error) = self.probe.mark(is_off).await {
            debug!(%error, "the probe cannot be marked");
        }
    }

    fn say(&mut self, now: Timestamp) {
        let said = self
            .said
            .map(|said| now.duration_since(said).unsigned_abs());
        if said.is_none_or(|ago| ago >= SAY_AGAIN) {
            self.said = Some(now);
            info!(
                "standing by, because the built-in ReplicaSet controller is on: the agent takes over within a minute of when \
                 kube-controller-manager runs with --controllers=*,-replicaset-controller"
            );
        }
    }
}

/// True if a retry will fail: the user may not make the call, or the API server rejects the probe.
fn is_final(error: &ApiError) -> bool {
    error
        .code
        .is_some_and(|code| (400..500).contains(&code) && ![401, 404, 409, 429].contains(&code))
}
