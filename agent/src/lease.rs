//! Leader election, with a clock and a cluster: a Lease is taken, kept while its purpose runs, and given back at the end.

use std::{future::Future, pin::pin};

use agent_core::{
    api::ApiError,
    history::MEANING,
    lease::{Command, Lead, Lease, LeaseConfig, Record, WentBack},
};
use agent_kube::{Clock, Fence, KubeCluster};
use jiff::Timestamp;
use thiserror::Error;
use tokio::{select, sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    history::History,
    metrics::{LEASES, Metrics},
};

/// The lead is over, and another may begin.
#[derive(Clone, Copy, Debug, Error)]
#[error("the lease is lost: another agent may lead")]
pub struct LeaseLost;

/// Takes a Lease, and keeps it; see [`hold_lease`].
#[derive(Debug)]
pub struct LeaseKeeper {
    config: LeaseConfig,
    lease: Lease,
    clock: Clock,
    rollback_observer: Option<RollbackObserver>,
}

/// The observers of a fall of the Lease's version.
#[derive(Clone, Debug)]
pub struct RollbackObserver {
    /// The metrics that count the fall.
    pub metrics: Metrics,
    /// The history that shows the fall, and through which agents check whether other versions went back too.
    pub history: History,
}

/// A Lease, its cluster, and the receivers of its state.
#[derive(Debug)]
struct KeptLease {
    keeper: LeaseKeeper,
    cluster: KubeCluster,
    lead: watch::Sender<Option<Lead>>,
}

/// Waits for the Lease, then runs `act` with the epoch and a cluster that accepts writes only while the Lease lasts. Gives the Lease back
/// when `act` has ended well: then none of its effects can come later. Otherwise the Lease runs out, as a shared one does.
///
/// Returns `None` if `shutdown` came before the Lease.
///
/// # Errors
/// If the Lease is lost: then `act` was dropped in the middle.
pub async fn hold_lease<T, E, F>(
    keeper: LeaseKeeper,
    cluster: KubeCluster,
    shutdown: CancellationToken,
    act: impl FnOnce(i64, KubeCluster) -> F,
) -> Result<Option<Result<T, E>>, LeaseLost>
where
    F: Future<Output = Result<T, E>>,
{
    let (lead, leading) = watch::channel(None);
    let clock = keeper.clock;
    let mut kept = KeptLease {
        keeper,
        cluster: cluster.clone(),
        lead,
    };
    let config = &kept.keeper.config;
    let (identity, name) = (config.identity.clone(), config.name.clone());
    info!(%identity, lease = %name, "waiting for the lease");
    let Some(epoch) = kept.take(&shutdown).await else {
        return Ok(None);
    };
    info!(epoch, lease = %name, "leading");
    let cluster = cluster.fenced(&Fence::new(leading, clock));
    let ended = CancellationToken::new();
    let result = {
        let mut keeping = pin!(kept.keep(&ended));
        let result = select! {
            biased;
            () = &mut keeping => return Err(LeaseLost),
            result = act(epoch, cluster) => result,
        };
        if result.is_ok() {
            ended.cancel();
            keeping.await;
        }
        result
    };
    if result.is_ok() {
        kept.release().await;
    }
    Ok(Some(result))
}

// === impl LeaseKeeper ===

impl LeaseKeeper {
    /// Creates the keeper of a Lease that has not been read yet.
    #[must_use]
    pub fn new(config: LeaseConfig) -> Self {
        Self {
            lease: Lease::new(config.clone()),
            config,
            clock: Clock::starting_at(Timestamp::now()),
            rollback_observer: None,
        }
    }

    /// Reports to this observer when the version of the Lease goes back.
    #[must_use]
    pub fn observed_by(self, rollback_observer: RollbackObserver) -> Self {
        Self {
            rollback_observer: Some(rollback_observer),
            ..self
        }
    }

    /// Creates the keeper of a Lease that was read before, with times of this clock.
    #[must_use]
    pub const fn seen(config: LeaseConfig, lease: Lease, clock: Clock) -> Self {
        Self {
            config,
            lease,
            clock,
            rollback_observer: None,
        }
    }
}

// === impl RollbackObserver ===

impl RollbackObserver {
    fn tell(&self, lease: &str, went_back: WentBack) {
        let WentBack { from, to } = went_back;
        warn!(
            lease,
            from, to, "the version of the lease went back: {MEANING}"
        );
        self.metrics.count_went_back(LEASES);
        self.history.note_lease(went_back);
    }
}

// === impl KeptLease ===

impl KeptLease {
    /// Waits for the Lease, or until `shutdown`. A request under way is answered first: a Lease taken meanwhile would be held for nobody,
    /// until it runs out.
    async fn take(&mut self, shutdown: &CancellationToken) -> Option<i64> {
        loop {
            shutdown.run_until_cancelled(self.due()).await?;
            self.ask_next().await;
            if let Some(lead) = self.keeper.lease.lead(self.keeper.clock.now()) {
                return Some(lead.epoch);
            }
        }
    }

    /// Renews the Lease until it is lost or `ended`. A request under way is answered first: an unseen renewal makes another version of the
    /// Lease, and the API server would refuse to give back the known version.
    async fn keep(&mut self, ended: &CancellationToken) {
        while !self.keeper.lease.is_lost(self.keeper.clock.now()) {
            if ended.run_until_cancelled(self.due()).await.is_none() {
                return;
            }
            self.ask_next().await;
        }
        self.lead.send_replace(None);
    }

    async fn due(&self) {
        self.keeper
            .clock
            .sleep_until(Some(self.keeper.lease.poll_timeout()))
            .await;
    }

    async fn ask_next(&mut self) {
        let Some(command) = self.keeper.lease.poll_command(self.keeper.clock.now()) else {
            return;
        };
        let answer = self.ask(&command).await;
        if let Err(error) = &answer
            && !matches!((&command, error.code), (Command::Read, Some(404)))
        {
            warn!(%error, lease = %self.keeper.config.name, "the lease could not be renewed");
        }
        let now = self.keeper.clock.now();
        self.keeper.lease.handle_answer(now, answer);
        if let (Some(went_back), Some(rollback_observer)) = (
            self.keeper.lease.poll_went_back(),
            &self.keeper.rollback_observer,
        ) {
            rollback_observer.tell(&self.keeper.config.name, went_back);
        }
        self.lead.send_replace(self.keeper.lease.lead(now));
    }

    async fn release(&mut self) {
        self.lead.send_replace(None);
        let Some(record) = self.keeper.lease.release(self.keeper.clock.now()) else {
            return;
        };
        let lease = &self.keeper.config.name;
        match self.ask(&Command::Replace(record)).await {
            Ok(_) => info!(%lease, "the lease is given back"),
            Err(error) => warn!(%error, %lease, "the lease was not given back"),
        }
    }

    async fn ask(&self, command: &Command) -> Result<Record, ApiError> {
        let LeaseConfig {
            namespace,
            name,
            duration,
            ..
        } = &self.keeper.config;
        let answer = self.cluster.lease(namespace, name, command);
        let answer = timeout(*duration / 3, answer).await;
        answer.unwrap_or_else(|_| Err(ApiError::no_answer("the lease took too long")))
    }
}

#[cfg(test)]
mod tests;
