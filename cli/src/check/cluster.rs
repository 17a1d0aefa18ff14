//! The cluster, as the user of a kubeconfig sees it.

use agent_core::{
    api::ApiError,
    lease::Command,
    take_over::{BuiltIn, Declaration},
};
use agent_kube::{ConnectError, KubeCluster, KubeClusterConfig, OtherWrite, PROBE, Probe};
use decree_agent::{Cluster as _, Mode};
use decree_api::v1;
use decree_core::wording::count;
use jiff::Timestamp;
use service::failure::chain;

use super::{ELECTION, Finding, Section, permissions};
use crate::{age, args::CheckArgs, resume::SILENCE, take_over::lease_namespace};

const BUILT_IN: &str = "built-in controller";
const TURN_OFF: &str =
    "turn it off with --controllers=*,-replicaset-controller, then run: decree take-over";

/// The oldest minor version of Kubernetes 1 without a warning.
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
    let (cluster, parts) = match connect(args).await {
        Ok(connected) => connected,
        Err(error) => {
            let hint = "set credentials with --kubeconfig, --context or KUBECONFIG";
            return vec![Finding::fail("credentials", chain(&error), hint)];
        }
    };
    let version =
        match tokio::time::timeout(args.server.timeout.min(SILENCE), cluster.version()).await {
            Ok(Ok(version)) => version,
            Ok(Err(error)) => return vec![unreachable(error.to_string())],
            Err(_) => return vec![unreachable("no answer in time".to_owned())],
        };
    let mut findings = Vec::new();
    if args.asks_for(Section::Cluster) {
        findings.push(supported(&version));
    }
    let given = args.lease_namespace.as_deref();
    let namespace = &lease_namespace(given, &cluster, &args.resource).await;
    let leases = args.leases();
    if args.asks_for(Section::Permissions) {
        findings.append(&mut permissions::check(args, &cluster, (namespace, &leases)).await);
    }
    if args.asks_for(Section::Agent) {
        findings.extend(session(args, &cluster, sessions).await);
        if let Some(name) = leases.last() {
            findings.push(leader(args, &cluster, (namespace, name)).await);
        }
        if args.nodes && args.mode == Mode::Enforce {
            findings.extend(responders(&parts).await);
        }
    }
    // The built-in controller does not act on a custom resource, and the agent may lack permission for other resources.
    if args.asks_for(Section::Others) && !args.resource.is_custom() {
        let declaration = declaration(&cluster, namespace).await;
        if args.mode == Mode::Enforce {
            findings.push(declared(args, &declaration));
        }
        findings.push(others(args, &parts, declaration.ok().flatten()).await);
    }
    findings
}

/// Reads the credentials. Returns the cluster, and for each namespace of the agent a handle that reads this namespace.
async fn connect(args: &CheckArgs) -> Result<(KubeCluster, Vec<KubeCluster>), ConnectError> {
    let config = KubeClusterConfig {
        resource: args.resource.clone(),
        ..KubeClusterConfig::of_person(args.kubeconfig.clone(), args.context.clone())
    };
    let cluster = KubeCluster::connect(&config).await?;
    let namespaces = args.namespaces().into_iter();
    let parts = namespaces.map(|it| cluster.in_namespace(it));
    let parts = parts.collect::<Result<_, _>>()?;
    Ok((cluster, parts))
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
    let hint = format!("Decree is not known to work before v1.{MINOR_MIN}");
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
            args.server.endpoint()
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

async fn leader(
    args: &CheckArgs,
    cluster: &KubeCluster,
    (namespace, name): (&str, &str),
) -> Finding {
    let check = format!("lease {namespace}/{name}");
    let nobody = "no agent is the leader; expected with --leader-elect=false";
    let record = match cluster.lease(namespace, name, &Command::Read).await {
        Ok(record) => record,
        Err(error) if error.code == Some(404) => {
            return Finding::warn(check, "there is none", nobody);
        }
        Err(error) if error.code == Some(403) && !args.must_elect() => {
            return Finding::warn(check, error.to_string(), ELECTION);
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

/// Checks whether the pods that are to be replaced before their eviction name the agent as their responder, if the cluster has Evictions.
async fn responders(parts: &[KubeCluster]) -> Option<Finding> {
    const CHECK: &str = "evictions";
    let mut lacking = Vec::new();
    for part in parts {
        match part.without_responder().await {
            Ok(found) => lacking.extend(found?),
            Err(error) => {
                let hint = "grant list of pods and of replicasets.apps";
                return Some(Finding::warn(CHECK, error.to_string(), hint));
            }
        }
    }
    if lacking.is_empty() {
        let detail = "each pod with surge-on-eviction names its responder";
        return Some(Finding::ok(CHECK, detail));
    }
    let of = |(name, pods): &(String, usize)| {
        format!("{name}: {} without a responder", count(*pods, "pod"))
    };
    let detail: Vec<_> = lacking.iter().map(of).collect();
    let hint = "an EvictionRequest evicts these pods at once; roll out again, or replace them";
    Some(Finding::warn(CHECK, detail.join("\n"), hint))
}

/// The record of the probe, or who has answered the probe beside a record of `off`; `None` without a record.
async fn declaration(
    cluster: &KubeCluster,
    namespace: &str,
) -> Result<Option<Declaration>, Finding> {
    const GRANT: &str = "grant get of replicasets.apps in the namespace of the Lease";
    let probe = Probe {
        cluster: cluster.clone(),
        namespace: namespace.to_owned(),
    };
    let failed = |error: ApiError| Finding::warn(BUILT_IN, error.to_string(), GRANT);
    let probe = probe.read().await.map_err(failed)?.unwrap_or_default();
    let is_off = |it: &Declaration| it.built_in == BuiltIn::Off;
    if probe.declaration.as_ref().is_some_and(is_off) && probe.observed >= probe.generation {
        let detail = format!("declared off, but {} answers {PROBE}", probe.observer);
        return Err(Finding::fail(BUILT_IN, detail, TURN_OFF));
    }
    Ok(probe.declaration)
}

/// Checks whether the agents of this Lease may act: whether the built-in controller is declared off.
fn declared(args: &CheckArgs, declaration: &Result<Option<Declaration>, Finding>) -> Finding {
    let record = match declaration {
        Ok(record) => record,
        Err(finding) => return finding.clone(),
    };
    match record {
        Some(record) if record.built_in == BuiltIn::Off => Finding::ok(BUILT_IN, &*record.text),
        Some(record) => {
            let detail = format!("the agents stand by: {}", record.text);
            match record.built_in {
                BuiltIn::FoundOn => Finding::fail(BUILT_IN, detail, TURN_OFF),
                BuiltIn::On | BuiltIn::Off => Finding::warn(BUILT_IN, detail, TURN_OFF),
            }
        }
        None if args.built_in_controller.is_some() => {
            Finding::ok(BUILT_IN, "declared off by --built-in-controller")
        }
        None => Finding::warn(BUILT_IN, "not declared off: the agents stand by", TURN_OFF),
    }
}

/// Checks whether another controller acts on ReplicaSets, under any name, which should be so only in shadow mode.
async fn others(
    args: &CheckArgs,
    parts: &[KubeCluster],
    declaration: Option<Declaration>,
) -> Finding {
    const CHECK: &str = "other controllers";
    const NOTHING: &str = "created no pod and wrote no status in the last 10 minutes";
    let now = Timestamp::now();
    let (mut latest, mut is_complete) = (None::<OtherWrite>, true);
    for part in parts {
        match part.other_write(now).await {
            Ok((found, all)) => {
                let writes = latest.into_iter().chain(found);
                latest = writes.max_by_key(|write| write.at);
                is_complete &= all;
            }
            Err(error) => {
                let hint = "grant list of pods and of replicasets.apps";
                return Finding::warn(CHECK, error.to_string(), hint);
            }
        }
    }
    let is_off = |it: &Declaration| it.built_in == BuiltIn::Off;
    let off_since = declaration.filter(is_off).and_then(|it| it.since());
    match (args.mode, latest) {
        (mode, Some(write)) => {
            let ago = age::human(now.duration_since(write.at).try_into().unwrap_or_default());
            let detail = format!("{} {ago} ago", write.what);
            match mode {
                Mode::Shadow | Mode::DryRun | Mode::Advise | Mode::Withdraw => {
                    Finding::ok(CHECK, detail)
                }
                Mode::Enforce if off_since.is_some_and(|since| since < write.at) => {
                    Finding::fail(CHECK, detail, TURN_OFF)
                }
                Mode::Enforce => Finding::warn(CHECK, detail, TURN_OFF),
            }
        }
        (Mode::Shadow, None) => Finding::warn(CHECK, NOTHING, "there is nothing to compare with"),
        (Mode::Advise, None) => Finding::warn(CHECK, NOTHING, "there is nobody to advise"),
        (Mode::Enforce | Mode::DryRun | Mode::Withdraw, None) if is_complete => {
            Finding::ok(CHECK, NOTHING)
        }
        (Mode::Enforce | Mode::DryRun | Mode::Withdraw, None) => {
            let detail = format!("{NOTHING}, as far as the first 50000 pods and ReplicaSets show");
            Finding::warn(CHECK, detail, "check each namespace with --namespace")
        }
    }
}
