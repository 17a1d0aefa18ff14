//! An agent of a real cluster: it acts while it leads, unless leader election is off, and while it need not stand by.

use std::{
    fs,
    hash::{BuildHasher as _, Hasher as _, RandomState},
};

use agent_core::{lease::LeaseConfig, take_over};
use agent_kube::{KubeCluster, PROBE, Probe};
use service::Fault;
use tokio::select;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    args::{AgentArgs, Mode},
    lease::LeaseKeeper,
    reach,
    responder::Responder,
    shell::{AgentError, ShellConfig, run},
    take_over::TakeOver,
};

const NO_LEASE: &str =
    "--shard I/N needs --leader-elect: the agent that holds its lease serves a shard";

/// Runs an agent on a real cluster until `shutdown`. In enforce mode, it stands by until the built-in controller is declared off, and again
/// after another controller or a person has stopped it. Unless `args` disable leader election, it acts only while it holds the Lease.
///
/// # Errors
/// If the Lease of `args` is too short or was lost, or the agent failed.
pub async fn run_on_kubernetes(
    args: &AgentArgs,
    mut config: ShellConfig,
    cluster: KubeCluster,
    shutdown: CancellationToken,
) -> Result<(), AgentError> {
    config.agent.api_version = args.kube.resource.api_version();
    let lease = args.lease_config(config.agent.instance.clone(), cluster.own_namespace());
    if args.kube.leader_elect {
        lease.check()?;
    } else if args.shard.shard().is_some() {
        return Err(Fault::new(NO_LEASE).into());
    }
    let take_over = take_over(args, &lease, &cluster, &config);
    if !args.kube.resource.is_custom() {
        config.agent.left_out = Some((lease.namespace.clone(), PROBE.to_owned()));
    }
    while !shutdown.is_cancelled() {
        let (server, token) = (config.server.clone(), config.token.clone());
        let reach = reach::watch(server, token, config.readiness.clone(), take_over.verdict());
        let reach = AbortOnDropHandle::new(tokio::spawn(reach));
        let leading = shutdown.run_until_cancelled(take_over.may_lead()).await;
        if leading.is_none() {
            break;
        }
        let (revoked, stop) = (CancellationToken::new(), shutdown.child_token());
        // Once it leads, the agent waits until it may act; stopped before, it only ends.
        let may_act = async {
            stop.run_until_cancelled(take_over.may_act()).await;
            drop(reach);
        };
        let cluster = cluster.clone().until(revoked.clone());
        let led = lead(
            args,
            lease.clone(),
            config.clone(),
            cluster,
            (stop.clone(), may_act),
        );
        let stand_by = async {
            take_over.must_stand_by().await;
            // No further write leaves. Then the agent ends as on shutdown.
            revoked.cancel();
            stop.cancel();
            std::future::pending().await
        };
        let led = select! {
            biased;
            () = stand_by => Ok(()),
            led = Box::pin(led) => led,
        };
        take_over.stop_leading();
        config.metrics.clear();
        led?;
        if args.mode == Mode::Withdraw {
            break;
        }
    }
    Ok(())
}

/// Follows the probe, if the agent needs the declaration that the built-in controller is off.
fn take_over(
    args: &AgentArgs,
    lease: &LeaseConfig,
    cluster: &KubeCluster,
    config: &ShellConfig,
) -> TakeOver {
    if args.mode != Mode::Enforce || args.kube.resource.is_custom() {
        return TakeOver::not_needed();
    }
    let flag = args.kube.built_in_controller.is_some();
    let machine = take_over::TakeOver::new(lease.identity.clone(), flag);
    let probe = Probe {
        cluster: cluster.clone(),
        namespace: lease.namespace.clone(),
    };
    TakeOver::start(probe, machine, config.metrics.clone())
}

/// Runs an agent until `stop`, while it leads. When it leads, `may_act` determines when it acts and, until then, whether the process is ready.
async fn lead(
    args: &AgentArgs,
    lease: LeaseConfig,
    config: ShellConfig,
    cluster: KubeCluster,
    (stop, may_act): (CancellationToken, impl Future<Output = ()>),
) -> Result<(), AgentError> {
    if !args.kube.leader_elect {
        may_act.await;
        return act(config, cluster, stop).await;
    }
    let Some(shard) = args.shard.shard() else {
        return run_elected(lease, config, cluster, (stop, may_act)).await;
    };
    let layout = shard.layout_lease(&lease);
    let keeper = LeaseKeeper::new(layout, cluster, config.metrics.clone());
    let until = stop.clone();
    let serve = |_, cluster| {
        let serving = run_elected(shard.lease(&lease), config, cluster, (until, may_act));
        Box::pin(serving)
    };
    keeper.hold(stop, serve).await?
}

/// Runs an agent until `stop`, while it holds a Lease and `may_act` has ended.
async fn run_elected(
    lease: LeaseConfig,
    mut config: ShellConfig,
    cluster: KubeCluster,
    (stop, may_act): (CancellationToken, impl Future<Output = ()>),
) -> Result<(), AgentError> {
    let (metrics, name) = (config.metrics.clone(), lease.name.clone());
    metrics.set_leading(&name, false);
    let keeper = LeaseKeeper::new(lease, cluster, metrics.clone());
    let (leads, until) = (metrics.clone(), stop.clone());
    let act = |epoch, cluster| {
        leads.set_leading(&name, true);
        config.agent.epoch = epoch;
        async move {
            may_act.await;
            act(config, cluster, until).await
        }
    };
    let led = keeper.hold(stop, act).await;
    metrics.set_leading(&name, false);
    led?
}

/// Runs an agent until `stop`, and beside it the responder to Evictions.
async fn act(
    config: ShellConfig,
    cluster: KubeCluster,
    stop: CancellationToken,
) -> Result<(), AgentError> {
    let starting = Responder::start(&config, &cluster);
    let _responder = stop.run_until_cancelled(starting).await;
    Box::pin(run(config, cluster, stop)).await
}

/// Returns a unique name for this process, and a seed for jitter and an embedded cluster.
///
/// The name begins with the host name, which is the name of the pod in a pod: so a Lease shows which pod leads. The rest is random: a pod
/// of a StatefulSet has the name of its predecessor, and must not take the predecessor's Lease for its own.
pub fn identity() -> (String, u64) {
    let drawn = || RandomState::new().build_hasher().finish();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    (format!("{}-{:016x}", prefix(&host), drawn()), drawn())
}

/// The host name, if it is a usual one.
fn prefix(host: &str) -> &str {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let name = host.trim();
    if !name.is_empty() && name.bytes().all(is_usual) {
        name
    } else {
        "agent"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_begin_with_the_pod_and_differ() {
        assert_eq!(prefix("decree-agent-0\n"), "decree-agent-0");
        for host in ["", "my machine", "a\u{202e}b"] {
            assert_eq!(prefix(host), "agent", "{host}");
        }
        assert_ne!(identity(), identity());
    }
}
