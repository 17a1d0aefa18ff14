//! The requests of an agent, and whether the user of a kubeconfig may make them. The check asks for each request with the name of
//! the object if the agent knows it, since a role may be limited to that name.

use agent_kube::{Access, KubeCluster, PROBE, RESPONDER_ACCESSES};
use decree_agent::Mode;

use super::Finding;
use crate::args::CheckArgs;

/// Every object of a resource, or no object yet.
const ANY: &str = "";

/// The request of an agent in advise mode that is allowed in single namespaces.
const WRITES_ADVICE: &str = "may patch pods";
const ADVISOR: &str = "only where the ClusterRole decree-advisor is bound, pods get advice; check one with --namespace";

/// Checks all requests of the agent, with Leases of this namespace and these names.
pub(super) async fn check(
    args: &CheckArgs,
    cluster: &KubeCluster,
    leases: (&str, &[String]),
) -> Vec<Finding> {
    let mut needed = needed(args, leases);
    if args.nodes && args.mode == Mode::Enforce && cluster.serves_evictions().await == Ok(true) {
        needed.extend(RESPONDER_ACCESSES.map(|access| (args.namespace.as_deref(), access)));
    }
    let mut findings = Vec::new();
    for (namespace, access) in &needed {
        findings.extend(permission(cluster, *namespace, *access).await);
    }
    let is_bound_by_namespace =
        |it: &Finding| it.check == WRITES_ADVICE && args.mode == Mode::Advise;
    if let Some(advises) = findings.iter_mut().find(|it| is_bound_by_namespace(it)) {
        *advises = Finding::warn(WRITES_ADVICE, "not granted in all namespaces", ADVISOR);
    }
    if findings.is_empty() {
        let detail = format!("all {} are granted", needed.len());
        findings.push(Finding::ok("permissions", detail));
    }
    findings
}

/// The requests of the agent, each with its namespace; `None` for all namespaces.
fn needed<'a>(
    args: &'a CheckArgs,
    (lease_namespace, lease_names): (&'a str, &'a [String]),
) -> Vec<(Option<&'a str>, Access<'a>)> {
    type Resource<'a> = (&'a str, &'a str, &'a str);
    let (group, plural) = (args.resource.group(), args.resource.plural());
    let (sets, status) = ((group, plural, ""), (group, plural, "status"));
    let (pods, events) = (("", "pods", ""), ("", "events", ""));
    let leases = ("coordination.k8s.io", "leases", "");
    let (everywhere, its) = (args.namespace.as_deref(), Some(lease_namespace));
    let mut needed = Vec::new();
    let mut need =
        |namespace: Option<&'a str>, verbs: &[&'a str], of: Resource<'a>, name: &'a str| {
            let (group, resource, subresource) = of;
            let accesses = verbs.iter().copied().map(|verb| Access {
                verb,
                group,
                resource,
                subresource,
                name,
            });
            needed.extend(accesses.map(|access| (namespace, access)));
        };
    need(None, &["get"], ("", "namespaces", ""), "kube-system");
    need(everywhere, &["list", "watch"], pods, ANY);
    need(everywhere, &["list", "watch"], sets, ANY);
    if args.nodes && args.mode != Mode::Shadow {
        need(None, &["list", "watch"], ("", "nodes", ""), ANY);
    }
    if matches!(args.mode, Mode::Advise | Mode::Withdraw) {
        need(everywhere, &["patch"], pods, ANY);
    }
    if args.mode == Mode::Enforce {
        need(everywhere, &["get", "create", "patch", "delete"], pods, ANY);
        need(everywhere, &["get"], sets, ANY);
        need(everywhere, &["patch"], status, ANY);
        need(everywhere, &["create", "patch"], events, ANY);
        need(its, &["create"], leases, ANY);
        for name in lease_names {
            need(its, &["get", "update"], leases, name);
        }
        // The probe may be in another namespace than the agent's ReplicaSets.
        if !args.resource.is_custom() {
            let built_in = ("apps", "replicasets", "");
            need(its, &["create"], built_in, ANY);
            need(its, &["get", "watch", "patch"], built_in, PROBE);
        }
    }
    needed
}

async fn permission(
    cluster: &KubeCluster,
    namespace: Option<&str>,
    access: Access<'_>,
) -> Option<Finding> {
    let detail = match cluster.may(access, namespace).await {
        Ok(true) => return None,
        Ok(false) => "not granted".to_owned(),
        Err(error) => error.to_string(),
    };
    let place = namespace.map_or_else(String::new, |name| format!(" in {name}"));
    let check = format!("may {}{place}", words(access));
    let hint = "grant it to the agent by a Role or ClusterRole";
    Some(Finding::fail(check, detail, hint))
}

/// The format of `kubectl auth can-i`.
fn words(access: Access<'_>) -> String {
    let mut words = format!("{} {}", access.verb, access.resource);
    for (sign, part) in [
        (".", access.group),
        ("/", access.subresource),
        ("/", access.name),
    ] {
        if !part.is_empty() {
            words.extend([sign, part]);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::args::{Args, Command, parse};

    fn asked(flags: &[&str]) -> String {
        let line = ["decree", "check"].iter().chain(flags);
        let line: Vec<_> = line.map(Into::into).collect();
        let Ok(Args {
            command: Command::Check(args),
        }) = parse(&line)
        else {
            panic!("{flags:?} are not taken")
        };
        let leases = args.leases();
        let needed = needed(&args, ("decree-system", &leases));
        let lines = needed.into_iter().map(|(namespace, access)| {
            let place = namespace.unwrap_or("*");
            format!("{place}: {}\n", words(access))
        });
        lines.collect()
    }

    #[test]
    fn one_lease_is_asked_for_by_its_name() {
        expect![[r#"
            *: get namespaces/kube-system
            *: list pods
            *: watch pods
            *: list replicasets.apps
            *: watch replicasets.apps
            *: get pods
            *: create pods
            *: patch pods
            *: delete pods
            *: get replicasets.apps
            *: patch replicasets.apps/status
            *: create events
            *: patch events
            decree-system: create leases.coordination.k8s.io
            decree-system: get leases.coordination.k8s.io/decree-agent
            decree-system: update leases.coordination.k8s.io/decree-agent
            decree-system: create replicasets.apps
            decree-system: get replicasets.apps/decree-probe
            decree-system: watch replicasets.apps/decree-probe
            decree-system: patch replicasets.apps/decree-probe
        "#]]
        .assert_eq(&asked(&[]));
    }

    #[test]
    fn shard_takes_its_lease_and_the_one_with_the_number_of_shards() {
        let asked = asked(&["--shard", "decree-agent-7/4"]);
        let mut leases = asked.lines().filter_map(|line| {
            line.strip_prefix("decree-system: ")?
                .split_once(" leases.coordination.k8s.io")
        });
        let expected = [
            ("create", ""),
            ("get", "/decree-agent"),
            ("update", "/decree-agent"),
            ("get", "/decree-agent-3"),
            ("update", "/decree-agent-3"),
        ];
        assert!(leases.by_ref().eq(expected), "{asked}");
    }

    #[test]
    fn custom_resource_takes_nothing_of_the_group_apps() {
        let custom = asked(&["--resource", "replicasets.v1.decree.dev"]);
        assert!(!custom.contains(".apps"), "{custom}");
        assert!(
            custom.contains("*: patch replicasets.decree.dev/status\n"),
            "{custom}"
        );
    }

    #[test]
    fn nodes_are_asked_for_where_the_agent_reads_them() {
        let reads = |flags: &[&str]| asked(flags).contains("*: list nodes\n*: watch nodes\n");
        assert!(reads(&["--nodes"]) && reads(&["--nodes", "--mode=dry-run"]));
        assert!(!reads(&[]) && !reads(&["--nodes", "--mode=shadow"]));
    }

    #[test]
    fn shadow_takes_reads_alone() {
        expect![[r#"
            *: get namespaces/kube-system
            shop: list pods
            shop: watch pods
            shop: list replicasets.apps
            shop: watch replicasets.apps
        "#]]
        .assert_eq(&asked(&["--mode", "shadow", "--namespace", "shop"]));
    }
}
