//! The cluster, as the user of a kubeconfig sees it.

use agent_core::lease::Command;
use agent_kube::{BUILT_IN, CredentialSource, KubeCluster, KubeClusterConfig};
use decree::v1;
use decree_agent::{Cluster as _, Mode};
use jiff::Timestamp;
use runtime::failure::chain;
use server_core::wording::count;

use super::{finding::Finding, permissions, section::Section};
use crate::{age, args::CheckArgs};

/// The oldest tested minor version of Kubernetes 1.
const MINOR_MIN: u32 = 30;

/// Checks the cluster. `sessions` are the sessions of the server; `None` if the server did not list them.
pub(super) async fn check(
    args: &CheckArgs,
    sessions: Option<&[v1::SessionSummary]>,
) -> Vec<Finding> {
    let sections = [
        Section::Cluster,
        Section::Permissions,
        Section::Agent,
        Section::Others,
    ];
    if !sections.into_iter().any(|it| args.asks_for(it)) {
        return Vec::new();
    }
    let config = KubeClusterConfig {
        source: CredentialSource {
            kubeconfig: args.kubeconfig.clone(),
            context: args.context.clone(),
        },
        namespace: args.namespace.clone(),
        resource: args.resource.clone(),
        label_selector: None,
        calls_max: 1,
        rate: None,
    };
    let cluster = match KubeCluster::connect(&config).await {
        Ok(cluster) => cluster,
        Err(error) => {
            let hint = "set credentials with --kubeconfig, --context or KUBECONFIG";
            return vec![Finding::fail("credentials", chain(&error), hint)];
        }
    };
    let version = match tokio::time::timeout(args.server.timeout, cluster.version()).await {
        Ok(Ok(version)) => version,
        Ok(Err(error)) => return vec![unreachable(error.to_string())],
        Err(_) => return vec![unreachable("no answer in time".to_owned())],
    };
    let mut findings = Vec::new();
    if args.asks_for(Section::Cluster) {
        findings.push(supported(&version));
    }
    // As for an agent that starts here.
    let given = args.lease_namespace.as_deref();
    let namespace = given.or_else(|| cluster.own_namespace());
    let lease = (namespace.unwrap_or("kube-system"), &*args.lease_name);
    if args.asks_for(Section::Permissions) {
        findings.append(&mut permissions::check(args, &cluster, lease).await);
    }
    if args.asks_for(Section::Agent) {
        findings.extend(session(args, &cluster, sessions).await);
        findings.push(leader(&cluster, lease).await);
    }
    // The built-in controller does not act on a custom resource, and the agent may lack permission for other resources.
    if args.asks_for(Section::Others) && !args.resource.is_custom() {
        findings.push(built_in(args, &cluster).await);
    }
    findings
}

fn unreachable(detail: String) -> Finding {
    let hint = "is the API server of this kubeconfig reachable from here?";
    Finding::fail("api server", detail, hint)
}

fn supported(version: &str) -> Finding {
    const CHECK: &str = "api server";
    let minor = version.strip_prefix("v1.").and_then(|rest| {
        let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
        digits.parse::<u32>().ok()
    });
    if minor.is_some_and(|minor| minor >= MINOR_MIN) {
        return Finding::ok(CHECK, format!("answers, {version}"));
    }
    let hint = format!("Decree is tried with v1.{MINOR_MIN} and later");
    Finding::warn(CHECK, format!("answers, {version}"), hint)
}

/// Checks whether an agent of this cluster is in session.
async fn session(
    args: &CheckArgs,
    cluster: &KubeCluster,
    sessions: Option<&[v1::SessionSummary]>,
) -> Option<Finding> {
    const CHECK: &str = "session";
    let (sessions, uid) = (sessions?, cluster.uid().await.ok()?);
    let Some(session) = sessions.iter().find(|session| session.cluster_uid == uid) else {
        let hint = format!(
            "where one runs, ask the server that it uses, with --server; else start decree-agent with --server {}",
            args.server.server
        );
        let detail = "the server has no agent of this cluster";
        return Some(Finding::warn(CHECK, detail, hint));
    };
    let agent = &session.agent_instance;
    Some(if session.synced {
        let sets = count(session.replica_sets, "ReplicaSet");
        let detail = format!("{agent} shows {sets} and {}", count(session.pods, "pod"));
        Finding::ok(CHECK, detail)
    } else {
        let hint = "see the log of the agent for what prevents listing";
        Finding::warn(CHECK, format!("{agent} has not shown all objects"), hint)
    })
}

async fn leader(cluster: &KubeCluster, (namespace, name): (&str, &str)) -> Finding {
    let check = format!("lease {namespace}/{name}");
    let nobody = "no agent is the leader; expected with --leader-elect=false";
    let record = match cluster.lease(namespace, name, &Command::Read).await {
        Ok(record) => record,
        Err(error) if error.code == Some(404) => {
            return Finding::warn(check, "there is none", nobody);
        }
        Err(error) => return Finding::fail(check, error.to_string(), "grant get of leases"),
    };
    if record.holder.is_empty() {
        return Finding::warn(check, "it was released", nobody);
    }
    let (identity, epoch) = (&record.holder, record.transitions);
    if record.until().is_none_or(|until| until < Timestamp::now()) {
        let detail = format!("held by {identity}, which does not renew it");
        let hint = "its agent is gone and no other has taken over";
        return Finding::warn(check, detail, hint);
    }
    Finding::ok(check, format!("held by {identity}, epoch {epoch}"))
}

/// Checks whether the built-in ReplicaSet controller writes statuses, which it should do only in shadow mode.
async fn built_in(args: &CheckArgs, cluster: &KubeCluster) -> Finding {
    const CHECK: &str = "built-in controller";
    let acting = match cluster.built_in_write(Timestamp::now()).await {
        Ok(acting) => acting,
        Err(error) => {
            return Finding::warn(CHECK, error.to_string(), "grant list of replicasets.apps");
        }
    };
    let detail = acting.map(|write| {
        let ago = age::human(write.ago.try_into().unwrap_or_default());
        let set = write.replica_set;
        format!("{BUILT_IN} wrote the status of {set} {ago} ago")
    });
    match (args.mode, detail) {
        (Mode::Enforce, Some(detail)) => {
            let hint =
                "turn it off with --controllers=*,-replicaset-controller, or run --mode shadow";
            Finding::warn(CHECK, detail, hint)
        }
        (Mode::Shadow, None) => {
            let hint = "there is nothing to compare with";
            Finding::warn(CHECK, "wrote no status in the last 10 minutes", hint)
        }
        (Mode::Shadow | Mode::DryRun, Some(detail)) => Finding::ok(CHECK, detail),
        (Mode::Enforce | Mode::DryRun, None) => {
            Finding::ok(CHECK, "wrote no status in the last 10 minutes")
        }
    }
}
