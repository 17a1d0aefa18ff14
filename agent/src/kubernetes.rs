//! An agent of a real cluster: it runs while it leads, unless leader election is off.

use std::{
    fs,
    hash::{BuildHasher as _, Hasher as _, RandomState},
};

use agent_core::assignment;
use agent_kube::{KubeCluster, Probe};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    args::{AgentArgs, BuiltIn, Mode},
    lease::LeaseKeeper,
    reach,
    shards::{KubernetesError, run_shards},
    shell::{ShellConfig, run},
    standby::stand_by,
};

/// The longest host name in an identity, which is the longest that Linux allows.
const HOST_MAX: usize = 64;

/// Runs an agent on a real cluster until `shutdown`. Waits for the Lease first, unless `args` disable leader election.
///
/// # Errors
/// If the Lease of `args` is too short or was lost, or the agent failed.
pub async fn run_on_kubernetes(
    args: &AgentArgs,
    mut config: ShellConfig,
    cluster: KubeCluster,
    shutdown: CancellationToken,
) -> Result<(), KubernetesError> {
    config.agent.api_version = args.kube.resource.api_version();
    let lease = args.lease_config(config.agent.instance.clone(), cluster.own_namespace());
    let (server, token) = (config.server.clone(), config.token.clone());
    let reach = tokio::spawn(reach::watch(server, token, config.readiness.clone()));
    let reach = AbortOnDropHandle::new(reach);
    if waits_for_built_in(args) {
        let probe = Probe {
            cluster: cluster.clone(),
            namespace: lease.namespace.clone(),
        };
        Box::pin(stand_by(&probe, &config.metrics, &shutdown)).await;
    }
    if !args.kube.leader_elect {
        return match args.shards {
            Some(_) => Err(KubernetesError::ShardsWithoutLeases),
            None => {
                drop(reach);
                Ok(Box::pin(run(config, cluster, shutdown)).await?)
            }
        };
    }
    lease.check()?;
    if let Some(shards) = args.shards {
        let names = assignment::AssignmentConfig { lease, shards };
        return run_shards(names, config, cluster, (shutdown, reach)).await;
    }
    let (metrics, name) = (config.metrics.clone(), lease.name.clone());
    metrics.set_leading(&name, false);
    let keeper = LeaseKeeper::new(lease, cluster, Some(config.history.clone()));
    let act = |epoch, cluster| {
        // From here on, the session determines whether the agent is ready.
        drop(reach);
        metrics.set_leading(&name, true);
        config.agent.epoch = epoch;
        Box::pin(run(config, cluster, shutdown.clone()))
    };
    Ok(keeper.hold(shutdown.clone(), act).await??)
}

/// True if the built-in controller may act on the same resource.
fn waits_for_built_in(args: &AgentArgs) -> bool {
    args.mode == Mode::Enforce
        && !args.kube.resource.is_custom()
        && args.kube.built_in_controller == BuiltIn::Wait
}

/// Returns a unique name for this process, and a seed for jitter and an embedded cluster.
///
/// The name begins with the host name, which is the name of the pod in a pod: so a Lease shows which pod leads. The rest is random: a pod
/// of a StatefulSet has the name of its predecessor, and must not take the predecessor's Lease for its own.
#[must_use]
pub fn identity() -> (String, u64) {
    let drawn = || RandomState::new().build_hasher().finish();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    (format!("{}-{:016x}", prefix(&host), drawn()), drawn())
}

/// The prefix of an identity. The name of a Lease may end with an identity, so the prefix consists of DNS labels.
fn prefix(host: &str) -> String {
    let name = host.trim().to_ascii_lowercase();
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte == b'-' || byte.is_ascii_alphanumeric();
        let is_edge = |edge: Option<&u8>| edge.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = label.as_bytes();
        bytes.iter().copied().all(is_inner) && is_edge(bytes.first()) && is_edge(bytes.last())
    };
    if name.len() <= HOST_MAX && name.split('.').all(is_label) {
        name
    } else {
        "agent".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_begin_with_the_pod_and_are_names_of_objects() {
        assert_eq!(prefix("decree-agent-0\n"), "decree-agent-0");
        assert_eq!(prefix("Node-1.Example.org\n"), "node-1.example.org");
        for host in ["", "my_machine", "-a", "a-", "a..b", &"a".repeat(65)] {
            assert_eq!(prefix(host), "agent", "{host}");
        }
        let (one, other) = (identity(), identity());
        assert_ne!(one, other);
    }
}
