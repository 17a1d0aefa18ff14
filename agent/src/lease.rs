//! Leading, with a clock and a cluster: the lease is taken, kept while the agent runs, and given back at its end.

use std::future::Future;

use agent_core::{
    api::{ApiError, Kind, Reply, Request},
    lease::{Command, Config, Lease},
    recorder::EventWrite,
    watch::List,
};
use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;
use tokio::{select, sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    clock::Clock,
    cluster::{Cluster, Events, KubeCluster},
};

/// The lead is over, and another may begin.
#[derive(Clone, Copy, Debug, Error)]
#[error("the lease is lost: another agent may lead")]
pub struct LeaseLost;

/// A cluster that is written only while this process leads. A process that was stopped for longer than its lease, and goes on,
/// finds out here and not by a timer that may be late.
#[derive(Clone, Debug)]
pub struct Led<C> {
    cluster: C,
    until: watch::Receiver<Timestamp>,
    clock: Clock,
}

/// A lease that is kept.
#[derive(Debug)]
struct Keeper {
    lease: Lease,
    config: Config,
    cluster: KubeCluster,
    clock: Clock,
    until: watch::Sender<Timestamp>,
}

/// Waits for the lease, then runs `act` with the epoch and a cluster that can be written only while the lease lasts. The lease
/// is given back when `act` has ended.
///
/// # Errors
/// If the lease is lost: then `act` was dropped where it stood.
pub async fn lead<T, F>(
    config: Config,
    cluster: KubeCluster,
    shutdown: CancellationToken,
    act: impl FnOnce(i64, Led<KubeCluster>) -> F,
) -> Result<Option<T>, LeaseLost>
where
    F: Future<Output = T>,
{
    let (until, led) = watch::channel(Timestamp::MIN);
    let clock = Clock::starting_at(Timestamp::now());
    let mut keeper = Keeper {
        lease: Lease::new(config.clone()),
        config,
        cluster: cluster.clone(),
        clock,
        until,
    };
    info!(identity = %keeper.config.identity, lease = %keeper.config.name, "waiting for the lease");
    let Some(epoch) = shutdown.run_until_cancelled(keeper.take()).await else {
        return Ok(None);
    };
    info!(epoch, "leading");
    let led = Led {
        cluster,
        until: led,
        clock,
    };
    let result = select! {
        biased;
        () = keeper.keep() => return Err(LeaseLost),
        result = act(epoch, led) => result,
    };
    keeper.release().await;
    Ok(Some(result))
}

// === impl Keeper ===

impl Keeper {
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
        self.until.send_replace(Timestamp::MIN);
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
        let until = self.lease.lead(now).map(|lead| lead.until);
        self.until.send_replace(until.unwrap_or(Timestamp::MIN));
    }

    async fn release(&mut self) {
        self.until.send_replace(Timestamp::MIN);
        let Some(object) = self.lease.release(self.clock.now()) else {
            return;
        };
        match self.ask(&Command::Replace(object)).await {
            Ok(_) => info!("the lease is given back"),
            Err(error) => warn!(%error, "the lease was not given back"),
        }
    }

    async fn ask(&self, command: &Command) -> Result<Value, ApiError> {
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

// === impl Led ===

impl<C: Cluster> Cluster for Led<C> {
    async fn uid(&self) -> Result<String, ApiError> {
        self.cluster.uid().await
    }

    async fn list(&self, kind: Kind) -> Result<List, ApiError> {
        self.cluster.list(kind).await
    }

    async fn watch(&self, kind: Kind, from: String) -> Result<Events, ApiError> {
        self.cluster.watch(kind, from).await
    }

    fn calls_max(&self) -> usize {
        self.cluster.calls_max()
    }

    async fn record(&self, event: EventWrite) -> Result<(), ApiError> {
        self.cluster.record(event).await
    }

    async fn call(&self, request: Request) -> Result<Reply, ApiError> {
        if *self.until.borrow() <= self.clock.now() {
            // The process ends: an answer would only be reported as what became of the call.
            return std::future::pending().await;
        }
        self.cluster.call(request).await
    }
}
