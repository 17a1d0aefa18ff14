//! Standing by while the built-in ReplicaSet controller is on.

use agent_core::{
    api::ApiError,
    standby::{Next, SeenBy, Standby},
    token_bucket::TokenBucket,
};
use agent_kube::{Clock, PROBE, Probe};
use jiff::Timestamp;
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::metrics::Metrics;

/// The wait after a failed call.
const RETRY: Duration = Duration::from_secs(1);
/// The interval of log lines that the built-in controller is on.
const SAY_AGAIN: Duration = Duration::from_secs(60);

/// Waits until the built-in controller is off, or for `shutdown`. If the agent cannot find that out, it logs so and does not wait.
pub(crate) async fn stand_by(probe: &Probe, metrics: &Metrics, shutdown: &CancellationToken) {
    metrics.standing_by.set(1);
    let refused = shutdown.run_until_cancelled(look(probe)).await;
    metrics.standing_by.set(0);
    match refused {
        None => {}
        Some(Ok(())) => debug!("the built-in ReplicaSet controller is off"),
        Some(Err(error)) => warn!(
            %error,
            namespace = probe.namespace,
            probe = PROBE,
            "it cannot be found out whether the built-in ReplicaSet controller is on: the agent goes on as if it were off"
        ),
    }
}

async fn look(probe: &Probe) -> Result<(), ApiError> {
    let clock = Clock::starting_at(Timestamp::now());
    let mut standby = Standby::default();
    let mut lines = TokenBucket::new(SAY_AGAIN, 1);
    let mut was_on = false;
    let mut next = standby.handle_look(clock.now(), SeenBy::Nobody);
    loop {
        let answer = match next {
            Next::Begin => break,
            Next::Look(after) => {
                sleep(after).await;
                probe.read().await
            }
            Next::Change(after) => {
                sleep(after).await;
                probe.change().await
            }
        };
        let now = clock.now();
        let state = match answer {
            Ok(state) => state,
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
            standby.handle_changed(now, state.found_off);
        }
        next = standby.handle_look(now, state.seen_by);
        if state.seen_by == SeenBy::BuiltIn {
            was_on = true;
            if lines.try_take(now) {
                info!(
                    "standing by, because the built-in ReplicaSet controller is on: the agent takes over within a minute of when \
                     kube-controller-manager runs with --controllers=*,-replicaset-controller"
                );
            }
            if state.found_off {
                mark(probe, false).await;
            }
        }
    }
    if was_on {
        info!("the built-in ReplicaSet controller is off: the agent takes over");
    }
    mark(probe, true).await;
    Ok(())
}

/// Notes for later agents whether the built-in controller is off. Without the mark, the next agent waits half a minute more.
async fn mark(probe: &Probe, is_off: bool) {
    if let Err(error) = probe.mark(is_off).await {
        debug!(%error, "the probe cannot be marked");
    }
}

/// True if a retry will fail: the user may not make the call, or the API server rejects the probe.
fn is_final(error: &ApiError) -> bool {
    error
        .code
        .is_some_and(|code| (400..500).contains(&code) && ![401, 404, 409, 429].contains(&code))
}
