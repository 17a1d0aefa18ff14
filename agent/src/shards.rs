//! Several shards of a real cluster in one process: an agent for each shard that the process holds. The other running agents determine
//! which shards these are.
//!
//! ```text
//! Lease of the number of shards ── held together by all agents of that number; when it is lost the process ends
//!    └─ Lease of this agent ── says that it is there
//!    └─ Assignment ◀─ list of all Leases, each second
//!         ├─ take ─▶ Lease of the shard ─▶ agent of that shard: session and calls of its own, and its part of the lists and watches of all
//!         └─ give back ─▶ the agent ends in order, then its Lease is given back
//! ```
//! **Invariant:** a call for a shard leaves only while this process holds the shard's Lease and the Lease of the number of shards.
//! **Invariant:** a lost shard ends its own agent, and no other.

use std::{collections::BTreeMap, convert::Infallible, pin::pin, time::Duration};

use agent_core::{
    api::ApiError,
    assignment::{self, Assignment},
    lease::{LeaseTooShort, Record},
    shard::Shard,
};
use agent_kube::{Clock, KubeCluster, ShardReaders};
use jiff::Timestamp;
use runtime::Readiness;
use thiserror::Error;
use tokio::{
    select,
    task::{JoinError, JoinSet},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{info, warn};

use crate::{
    holds::Holds,
    lease::{LeaseKeeper, LeaseLost},
    log::CLUSTER,
    shell::{RunError, ShellConfig, run},
};

/// Why an agent of a real cluster ended other than on request.
#[derive(Debug, Error)]
pub enum KubernetesError {
    /// The Lease could expire before a create.
    #[error(transparent)]
    LeaseTooShort(#[from] LeaseTooShort),
    /// Another agent may lead.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// Shards require Leases.
    #[error("--shards needs --leader-elect: a shard is served by the agent that holds its lease")]
    ShardsWithoutLeases,
    /// The agent failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// All Leases of the namespace by name, or the error of the list.
type Listed = Result<Vec<(String, Record)>, ApiError>;
/// The result of a shard's agent.
type Ended = (u16, Result<(), KubernetesError>);

/// The shards that this process serves or will serve, and the Leases that determine them.
struct Shards {
    names: assignment::AssignmentConfig,
    /// The common configuration of the agents.
    config: ShellConfig,
    /// Accepts writes while the Lease of the number of shards is held.
    cluster: KubeCluster,
    readers: ShardReaders,
    clock: Clock,
    assignment: Assignment,
    served: BTreeMap<u16, Served>,
    agents: JoinSet<Ended>,
    deletes: JoinSet<()>,
}

struct Served {
    stop: CancellationToken,
    /// Cancelled once the shard's Lease is held.
    leads: CancellationToken,
    readiness: Readiness,
    holds: Holds,
}

/// Runs an agent for each shard that this process holds, until `shutdown`, once `may_act` has ended. Until then, it determines whether the
/// process is ready, and then the agents do.
///
/// # Errors
/// If the Lease of the number of shards is lost, or an agent failed.
pub(crate) async fn run_shards(
    names: assignment::AssignmentConfig,
    config: ShellConfig,
    cluster: KubeCluster,
    (shutdown, may_act): (CancellationToken, impl Future<Output = ()>),
) -> Result<(), KubernetesError> {
    let layout = LeaseKeeper::new(names.layout(), cluster, Some(config.history.clone()));
    let serve = |_, cluster| {
        let shutdown = shutdown.clone();
        async move {
            may_act.await;
            // A process without shards does all its work.
            config.readiness.set(Ok(()));
            Box::pin(Shards::new(names, config, cluster).run(shutdown)).await
        }
    };
    layout.hold(shutdown.clone(), serve).await?
}

// === impl Shards ===

impl Shards {
    fn new(names: assignment::AssignmentConfig, config: ShellConfig, cluster: KubeCluster) -> Self {
        Self {
            assignment: Assignment::new(names.clone()),
            readers: ShardReaders::start(&cluster, names.shards),
            names,
            config,
            cluster,
            clock: Clock::starting_at(Timestamp::now()),
            served: BTreeMap::new(),
            agents: JoinSet::new(),
            deletes: JoinSet::new(),
        }
    }

    /// Takes and gives back shards until `shutdown`. Then all of them end in order.
    async fn run(mut self, shutdown: CancellationToken) -> Result<(), KubernetesError> {
        let member = CancellationToken::new();
        let attendance =
            hold_member_lease(self.names.clone(), self.cluster.clone(), member.clone());
        let attendance = AbortOnDropHandle::new(tokio::spawn(attendance));
        let (names, cluster) = (self.names.clone(), self.cluster.clone());
        let mut listing = pin!(list_all(&names, &cluster, Duration::ZERO));
        while !shutdown.is_cancelled() {
            let due = self.assignment.poll_timeout(self.clock.now());
            select! {
                biased;
                () = shutdown.cancelled() => {}
                Some(ended) = self.agents.join_next() => self.handle_ended(ended)?,
                listed = &mut listing => {
                    listing.set(list_all(&names, &cluster, names.list_every()));
                    self.handle_list(listed);
                }
                () = self.clock.sleep_until(due) => self.follow_plan(),
                Some(_) = self.deletes.join_next() => {}
            }
            self.tell();
        }
        self.config.readiness.set(Err("stopping"));
        // First, so that the other agents take each shard as soon as it is free.
        member.cancel();
        self.served.values().for_each(|shard| shard.stop.cancel());
        while let Some(ended) = self.agents.join_next().await {
            self.handle_ended(ended)?;
        }
        // A member's Lease that is not given back runs out.
        let _ = attendance.await;
        Ok(())
    }

    fn handle_list(&mut self, listed: Listed) {
        match listed {
            Ok(leases) => self.assignment.handle_list(self.clock.now(), leases),
            Err(error) => {
                warn!(peer = CLUSTER, %error, "the leases of the shards could not be listed")
            }
        }
        self.follow_plan();
        self.delete_forgotten();
    }

    fn follow_plan(&mut self) {
        let plan = self.assignment.plan(self.clock.now());
        for (index, shard) in &self.served {
            let is_unwanted = if shard.leads.is_cancelled() {
                plan.give_back.contains(index)
            } else {
                // Another agent was faster.
                !plan.take.contains(index)
            };
            if is_unwanted && !shard.stop.is_cancelled() {
                info!(shard = index, "giving the shard back");
                shard.stop.cancel();
            }
        }
        for index in plan.take {
            if !self.served.contains_key(&index) {
                self.take(index);
            }
        }
    }

    /// Waits for a shard's Lease, and then runs an agent for the shard.
    fn take(&mut self, index: u16) {
        let Some(shard) = Shard::new(index, self.names.shards) else {
            return;
        };
        let names = self.names.shard(index);
        let history = Some(self.config.history.clone());
        let mut keeper = LeaseKeeper::new(names.clone(), self.cluster.clone(), history);
        keeper.lease = self.assignment.lease_of(self.clock.now(), index);
        keeper.clock = self.clock;
        let served = Served {
            stop: CancellationToken::new(),
            leads: CancellationToken::new(),
            readiness: Readiness::not_ready("no session"),
            holds: Holds::default(),
        };
        let mut config = self.config.clone();
        config.metrics = self.config.metrics.for_another_agent();
        config.readiness = served.readiness.clone();
        config.holds = served.holds.clone();
        config.agent.shard = index.to_string();
        config.agent.namespaces_of = Some(shard);
        config.agent.budget = config.agent.budget.divided_among(self.names.shards);
        config.agent.seed = config.agent.seed.wrapping_add(index.into());
        let (stop, leads) = (served.stop.clone(), served.leads.clone());
        let readers = self.readers.clone();
        self.agents.spawn(async move {
            let metrics = config.metrics.clone();
            metrics.set_leading(&names.name, false);
            let serve = |epoch, cluster| {
                leads.cancel();
                metrics.set_leading(&names.name, true);
                config.agent.epoch = epoch;
                let cluster = readers.shard(cluster, shard);
                Box::pin(run(config, cluster, stop.clone()))
            };
            let led = keeper.hold(stop.clone(), serve).await;
            metrics.set_leading(&names.name, false);
            let ended = led.map_err(KubernetesError::from);
            (index, ended.and_then(|ended| Ok(ended?)))
        });
        self.served.insert(index, served);
    }

    fn handle_ended(&mut self, ended: Result<Ended, JoinError>) -> Result<(), KubernetesError> {
        let (index, ended) = ended.map_err(RunError::Panicked)?;
        self.served.remove(&index);
        match ended {
            Err(KubernetesError::LeaseLost(LeaseLost)) => {
                warn!(
                    shard = index,
                    "the lease of the shard is lost: another agent may serve it"
                );
                Ok(())
            }
            ended => ended,
        }
    }

    fn delete_forgotten(&mut self) {
        let now = self.clock.now();
        let Some((name, version)) = self.assignment.forgotten(now).next() else {
            return;
        };
        let (name, version) = (name.to_owned(), version.to_owned());
        let (cluster, namespace) = (self.cluster.clone(), self.names.lease.namespace.clone());
        if self.deletes.is_empty() {
            self.deletes.spawn(async move {
                match cluster.delete_lease(&namespace, &name, &version).await {
                    Ok(()) => info!(lease = %name, "the lease of an agent that is gone is deleted"),
                    // Another agent was faster.
                    Err(error) if matches!(error.code, Some(404 | 409)) => {}
                    Err(error) => {
                        warn!(peer = CLUSTER, %error, lease = %name, "the lease of an agent that is gone was not deleted");
                    }
                }
            });
        }
    }

    /// Combines the state of the agents into the state of the process. A process without shards stands by, and does all its work.
    fn tell(&self) {
        let leads = |shard: &&Served| shard.leads.is_cancelled();
        let led = || self.served.values().filter(leads);
        let mut ready = led().map(|shard| shard.readiness.check());
        let ready = ready.find(Result::is_err).unwrap_or(Ok(()));
        self.config.readiness.set(ready);
        let pages = led().map(|shard| shard.holds.page());
        self.config.holds.show_all(pages);
    }
}

/// Keeps the Lease that shows that this agent runs, and gives it back at the end.
async fn hold_member_lease(
    names: assignment::AssignmentConfig,
    cluster: KubeCluster,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        let stay = |_, _| async {
            stop.cancelled().await;
            Ok::<_, Infallible>(())
        };
        let keeper = LeaseKeeper::new(names.member(), cluster.clone(), None);
        // After a loss, the loop takes the Lease again: it announces the agent and protects nothing.
        let _ = keeper.hold(stop.clone(), stay).await;
    }
}

/// Lists all Leases after a time.
async fn list_all(
    names: &assignment::AssignmentConfig,
    cluster: &KubeCluster,
    after: Duration,
) -> Listed {
    tokio::time::sleep(after).await;
    let list = cluster.list_leases(&names.lease.namespace);
    let list = timeout(names.lease.duration / 3, list).await;
    list.unwrap_or_else(|_| Err(ApiError::no_answer("the list took too long")))
}
