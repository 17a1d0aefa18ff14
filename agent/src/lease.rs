//! Leader election, with a clock and a cluster: a Lease is taken, kept while its purpose runs, and given back at the end.

use std::pin::pin;

use agent_core::{
    api::ApiError,
    lease::{Command, Lead, Lease, LeaseConfig, Record},
    watch::history::MEANING,
};
use agent_kube::{Clock, Fence, KubeCluster};
use jiff::Timestamp;
use thiserror::Error;
use tokio::{select, sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    log::CLUSTER,
    metrics::{LEASES, Metrics},
};

/// The lead is over, and another may begin.
#[derive(Clone, Copy, Debug, Error)]
#[error("the Lease is lost: another agent may lead")]
pub(crate) struct LeaseLost;

/// A Lease, its cluster, and the receivers of its state.
#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    config: LeaseConfig,
    cluster: KubeCluster,
    /// The state of the Lease, with times of this clock.
    lease: Lease,
    clock: Clock,
    lead: watch::Sender<Option<Lead>>,
    /// Counts falls of the version.
    metrics: Metrics,
}

impl LeaseKeeper {
    pub(crate) fn new(config: LeaseConfig, cluster: KubeCluster, metrics: Metrics) -> Self {
        Self {
            lease: Lease::new(config.clone()),
            config,
            cluster,
            clock: Clock::starting_at(Timestamp::now()),
            lead: watch::Sender::new(None),
            metrics,
        }
    }

    /// Waits for the Lease, then runs `act` with the epoch and a cluster that accepts writes only while the Lease lasts. Gives the Lease
    /// back when `act` has ended well: then none of its effects can come later. Otherwise the Lease runs out, as a shared one does.
    ///
    /// Does not run `act` if `shutdown` comes before the Lease.
    ///
    /// # Errors
    /// If the Lease is lost: then `act` was dropped in the middle.
    pub(crate) async fn hold<E, F>(
        mut self,
        shutdown: CancellationToken,
        act: impl FnOnce(i64, KubeCluster) -> F,
    ) -> Result<Result<(), E>, LeaseLost>
    where
        F: Future<Output = Result<(), E>>,
    {
        let fence = Fence::new(self.lead.subscribe(), self.clock);
        let (identity, name) = (self.config.identity.clone(), self.config.name.clone());
        info!(%identity, lease = %name, "waiting for the lease");
        let Some(epoch) = self.take(&shutdown).await else {
            return Ok(Ok(()));
        };
        info!(epoch, lease = %name, "leading");
        let cluster = self.cluster.clone().fenced(&fence);
        let ended = CancellationToken::new();
        let result = {
            let mut keeping = pin!(self.keep(&ended));
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
            self.release().await;
        }
        Ok(result)
    }

    /// Waits for the Lease, or until `shutdown`. A request under way is answered first: a Lease taken meanwhile would be held for nobody,
    /// until it runs out.
    async fn take(&mut self, shutdown: &CancellationToken) -> Option<i64> {
        loop {
            shutdown.run_until_cancelled(self.due()).await?;
            self.ask_next().await;
            if let Some(lead) = self.lease.lead(self.clock.now()) {
                return Some(lead.epoch);
            }
        }
    }

    /// Renews the Lease until it is lost or `ended`. A request under way is answered first: an unseen renewal makes another version of the
    /// Lease, and the API server would refuse to give back the known version.
    async fn keep(&mut self, ended: &CancellationToken) {
        while !self.lease.is_lost(self.clock.now()) {
            if ended.run_until_cancelled(self.due()).await.is_none() {
                return;
            }
            self.ask_next().await;
        }
        self.lead.send_replace(None);
    }

    async fn due(&self) {
        let due = self.lease.poll_timeout();
        self.clock.sleep_until(Some(due)).await;
    }

    async fn ask_next(&mut self) {
        let Some(command) = self.lease.poll_command(self.clock.now()) else {
            return;
        };
        let answer = self.ask(&command).await;
        if let Err(error) = &answer
            && !matches!((&command, error.code), (Command::Read, Some(404)))
        {
            warn!(peer = CLUSTER, %error, lease = %self.config.name, "the lease could not be renewed");
        }
        let now = self.clock.now();
        self.lease.handle_answer(now, answer);
        if let Some((from, to)) = self.lease.poll_went_back() {
            let lease = &self.config.name;
            warn!(
                peer = CLUSTER,
                lease, from, to, "the version of the lease went back: {MEANING}"
            );
            self.metrics.count_went_back(LEASES);
        }
        self.lead.send_replace(self.lease.lead(now));
    }

    async fn release(&mut self) {
        self.lead.send_replace(None);
        let Some(record) = self.lease.release(self.clock.now()) else {
            return;
        };
        let lease = &self.config.name;
        match self.ask(&Command::Replace(record)).await {
            Ok(_) => info!(%lease, "the Lease is released"),
            Err(error) => warn!(%error, %lease, "the Lease was not released"),
        }
    }

    async fn ask(&self, command: &Command) -> Result<Record, ApiError> {
        let config = &self.config;
        let answer = self.cluster.lease(&config.namespace, &config.name, command);
        let answer = timeout(config.duration / 3, answer).await;
        answer.unwrap_or_else(|_| Err(ApiError::no_answer("the lease took too long")))
    }
}

#[cfg(test)]
mod tests;
