//! Leading, with a clock and a cluster: the lease is taken, kept while the agent runs, and given back at its end.

use std::future::Future;

use agent_core::{
    api::ApiError,
    lease::{Command, Config, Lead, Lease, Record},
};
use agent_kube::{Clock, Fence, KubeCluster};
use jiff::Timestamp;
use thiserror::Error;
use tokio::{select, sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// The lead is over, and another may begin.
#[derive(Clone, Copy, Debug, Error)]
#[error("the lease is lost: another agent may lead")]
pub struct LeaseLost;

/// Takes part in the election, and keeps the lease.
#[derive(Debug)]
struct Elector {
    lease: Lease,
    config: Config,
    cluster: KubeCluster,
    clock: Clock,
    lead: watch::Sender<Option<Lead>>,
}

/// Waits for the lease, then runs `act` with the epoch and a cluster that can be written only while the lease lasts. The lease
/// is given back when `act` has ended well: then nothing that it did can take effect later. Else it runs out.
///
/// # Errors
/// If the lease is lost: then `act` was dropped where it stood.
pub async fn lead<T, E, F>(
    config: Config,
    cluster: KubeCluster,
    shutdown: CancellationToken,
    act: impl FnOnce(i64, KubeCluster) -> F,
) -> Result<Option<Result<T, E>>, LeaseLost>
where
    F: Future<Output = Result<T, E>>,
{
    let (lead, leading) = watch::channel(None);
    let clock = Clock::starting_at(Timestamp::now());
    let mut elector = Elector {
        lease: Lease::new(config.clone()),
        config,
        cluster: cluster.clone(),
        clock,
        lead,
    };
    info!(identity = %elector.config.identity, lease = %elector.config.name, "waiting for the lease");
    let Some(epoch) = shutdown.run_until_cancelled(elector.take()).await else {
        return Ok(None);
    };
    info!(epoch, "leading");
    let cluster = cluster.fenced(Fence::of_lease(leading, clock));
    let result = select! {
        biased;
        () = elector.keep() => return Err(LeaseLost),
        result = act(epoch, cluster) => result,
    };
    if result.is_ok() {
        elector.release().await;
    }
    Ok(Some(result))
}

// === impl Elector ===

impl Elector {
    async fn take(&mut self) -> i64 {
        loop {
            self.step().await;
            if let Some(lead) = self.lease.lead(self.clock.now()) {
                return lead.epoch;
            }
        }
    }

    /// Renews the lease until it is lost.
    async fn keep(&mut self) {
        while !self.lease.is_lost(self.clock.now()) {
            self.step().await;
        }
        self.lead.send_replace(None);
    }

    async fn step(&mut self) {
        self.clock
            .sleep_until(Some(self.lease.poll_timeout()))
            .await;
        let Some(command) = self.lease.poll_command(self.clock.now()) else {
            return;
        };
        let answer = self.ask(&command).await;
        if let Err(error) = &answer
            && !matches!((&command, error.code), (Command::Read, Some(404)))
        {
            warn!(%error, "the lease could not be renewed");
        }
        let now = self.clock.now();
        self.lease.handle_answer(now, answer);
        self.lead.send_replace(self.lease.lead(now));
    }

    async fn release(&mut self) {
        self.lead.send_replace(None);
        let Some(record) = self.lease.release(self.clock.now()) else {
            return;
        };
        match self.ask(&Command::Replace(record)).await {
            Ok(_) => info!("the lease is given back"),
            Err(error) => warn!(%error, "the lease was not given back"),
        }
    }

    async fn ask(&self, command: &Command) -> Result<Record, ApiError> {
        let Config {
            namespace,
            name,
            duration,
            ..
        } = &self.config;
        let answer = self.cluster.lease(namespace, name, command);
        let answer = timeout(*duration / 3, answer).await;
        answer.unwrap_or_else(|_| Err(ApiError::no_answer("the lease took too long")))
    }
}
