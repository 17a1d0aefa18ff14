//! The requests of an agent, and whether the user of a kubeconfig may make them. The check asks for each request with the name of
//! the object if the agent knows it, since a role may be limited to that name.

use agent_kube::{Access, KubeCluster, PROBE, RESPONDER_ACCESSES};
use decree_agent::Mode;

use super::{ELECTION, Finding};
use crate::args::CheckArgs;

/// Every object of a resource, or no object yet.
const ANY: &str = "";

/// The request of an agent in advise mode that is allowed in single namespaces.
const WRITES_ADVICE: &str = "may patch pods";
const ADVISOR: &str = "only where the ClusterRole decree-advisor is bound, pods get advice; check one with --namespace";

const NOT_GRANTED: &str = "not granted";
/// The Leases in the names of checks, and the check of all that an agent may lack for them.
const LEASES: &str = "leases.coordination.k8s.io";
const ELECTS: &str = "may elect a leader";

/// Checks all requests of the agent, with Leases of this namespace and these names.
pub(super) async fn check(
    args: &CheckArgs,
    cluster: &KubeCluster,
    leases: (&str, &[String]),
) -> Vec<Finding> {
    let mut needed = needed(args, leases);
    if args.nodes && args.mode == Mode::Enforce && cluster.serves_evictions().await == Ok(true) {
        needed.extend(RESPONDER_ACCESSES.map(|access| (args.read_namespace(), access)));
    }
    let mut found = Vec::new();
    for (namespace, access) in &needed {
        found.extend(permission(cluster, *namespace, *access).await);
    }
    let mut findings = judged(args, found);
    if findings.is_empty() {
        let detail = format!("all {} are granted", needed.len());
        findings.push(Finding::ok("permissions", detail));
    }
    findings
}

/// Turns what the agent can do without into warnings: advice in all namespaces at once, and its Leases, all in one line.
fn judged(args: &CheckArgs, found: Vec<Finding>) -> Vec<Finding> {
    let is_for_election =
        |it: &Finding| it.detail == NOT_GRANTED && it.check.contains(LEASES) && !args.must_elect();
    let (elects, mut judged): (Vec<_>, Vec<_>) = found.into_iter().partition(is_for_election);
    let is_bound_by_namespace = |it: &Finding| {
        it.check == WRITES_ADVICE && it.detail == NOT_GRANTED && args.mode == Mode::Advise
    };
    if let Some(advises) = judged.iter_mut().find(|it| is_bound_by_namespace(it)) {
        *advises = Finding::warn(WRITES_ADVICE, "not granted in all namespaces", ADVISOR);
    }
    if !elects.is_empty() {
        let missing = elects.iter().map(|it| it.check.trim_start_matches("may "));
        let missing: Vec<_> = missing.collect();
        let detail = format!("{NOT_GRANTED}: {}", missing.join(", "));
        judged.push(Finding::warn(ELECTS, detail, ELECTION));
    }
    judged
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
    let (reads, its) = (args.read_namespace(), Some(lease_namespace));
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
    need(reads, &["list", "watch"], pods, ANY);
    need(reads, &["list", "watch"], sets, ANY);
    if args.nodes && args.mode != Mode::Shadow {
        need(None, &["list", "watch"], ("", "nodes", ""), ANY);
    }
    for acts in args.namespaces() {
        match args.mode {
            Mode::Enforce => {
                need(acts, &["get", "create", "patch", "delete"], pods, ANY);
                need(acts, &["get"], sets, ANY);
                need(acts, &["patch"], status, ANY);
                need(acts, &["create", "patch"], events, ANY);
            }
            Mode::Advise | Mode::Withdraw => need(acts, &["patch"], pods, ANY),
            Mode::Shadow | Mode::DryRun => {}
        }
    }
    need(its, &["create"], leases, ANY);
    for name in lease_names {
        need(its, &["get", "update"], leases, name);
    }
    // The probe may be in another namespace than the agent's ReplicaSets.
    if args.mode == Mode::Enforce && !args.resource.is_custom() {
        let built_in = ("apps", "replicasets", "");
        need(its, &["create"], built_in, ANY);
        need(its, &["get", "watch", "patch"], built_in, PROBE);
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
        Ok(false) => NOT_GRANTED.to_owned(),
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

    use super::{super::Grade, *};
    use crate::args::{Args, Command, parse};

    fn args(flags: &[&str]) -> CheckArgs {
        let line = ["decree", "check"].iter().chain(flags);
        let line: Vec<_> = line.map(Into::into).collect();
        let Ok(Args {
            command: Command::Check(args),
        }) = parse(&line)
        else {
            panic!("{flags:?} are not taken")
        };
        args
    }

    fn asked(flags: &[&str]) -> String {
        let args = args(flags);
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
    fn shadow_takes_reads_and_the_lease_alone() {
        expect![[r#"
            *: get namespaces/kube-system
            shop: list pods
            shop: watch pods
            shop: list replicasets.apps
            shop: watch replicasets.apps
            decree-system: create leases.coordination.k8s.io
            decree-system: get leases.coordination.k8s.io/decree-agent
            decree-system: update leases.coordination.k8s.io/decree-agent
        "#]]
        .assert_eq(&asked(&["--mode", "shadow", "--namespace", "shop"]));
    }

    #[test]
    fn several_namespaces_are_read_together_and_written_each() {
        let several = ["--mode=withdraw", "-n", "shop,bank", "--namespace=toys"];
        let asked = asked(&several);
        assert!(asked.contains("*: watch pods\n"), "{asked}");
        let written = asked.lines().filter(|it| it.ends_with(": patch pods"));
        let expected = ["shop", "bank", "toys"].map(|name| format!("{name}: patch pods"));
        assert!(written.eq(expected.iter()), "{asked}");
    }

    /// The grades of findings after [`judged`], by their checks.
    fn grades(flags: &[&str], found: &[(&str, &str)]) -> Vec<(String, Grade)> {
        let found = found.iter();
        let found = found.map(|(check, detail)| Finding::fail(*check, *detail, "grant it"));
        let judged = judged(&args(flags), found.collect());
        judged.into_iter().map(|it| (it.check, it.grade)).collect()
    }

    #[test]
    fn leases_are_needed_in_enforce_mode_and_for_shards_and_an_error_is_none_of_permissions() {
        let [get, update] = ["get", "update"].map(|verb| format!("may {verb} {LEASES} in decree"));
        let missing = [(&*get, NOT_GRANTED), (&*update, NOT_GRANTED)];
        for flags in [&["--mode=enforce"][..], &["--mode=shadow", "--shard=0/4"]] {
            let failed = [&get, &update].map(|check| (check.clone(), Grade::Fail));
            assert_eq!(grades(flags, &missing), failed, "{flags:?}");
        }
        for mode in ["shadow", "dry-run", "advise", "withdraw"] {
            let flags = ["--mode", mode];
            let warned = [(ELECTS.to_owned(), Grade::Warn)];
            assert_eq!(grades(&flags, &missing), warned, "{mode}");
            let away = [(&*get, "no answer"), (WRITES_ADVICE, "no answer")];
            let failed = away.map(|(check, _)| (check.to_owned(), Grade::Fail));
            assert_eq!(grades(&flags, &away), failed, "{mode}");
        }
        let advises = grades(&["--mode=advise"], &[(WRITES_ADVICE, NOT_GRANTED)]);
        assert_eq!(advises, [(WRITES_ADVICE.to_owned(), Grade::Warn)]);
    }
}
