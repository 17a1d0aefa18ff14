//! Flags: their limits, and invalid combinations.

use std::ffi::OsString;

use clap::CommandFactory as _;

use super::*;

fn parse(flags: &[&str]) -> Result<AgentArgs, clap::Error> {
    let arguments = ["decree-agent"].iter().chain(flags).map(OsString::from);
    runtime::config::parse(arguments)
}

#[test]
fn flags_are_consistent() {
    AgentArgs::command().debug_assert();
}

#[test]
fn every_flag_has_its_variable() {
    let command = AgentArgs::command();
    for argument in command
        .get_arguments()
        .filter(|it| !["help", "version"].contains(&it.get_id().as_str()))
    {
        let env = argument
            .get_env()
            .and_then(|env| env.to_str())
            .unwrap_or_default();
        let long = argument
            .get_long()
            .unwrap_or_default()
            .to_uppercase()
            .replace('-', "_");
        assert_eq!(env, format!("DECREE_{long}"));
    }
}

#[test]
fn defaults_are_those_of_the_machines() {
    let args = parse(&[]).expect("no flag is required");
    let config = args.agent_config("i".into(), 1);
    let defaults = agent_core::agent::AgentConfig::default();
    assert_eq!(
        (config.calls_max, config.mode),
        (defaults.calls_max, defaults.mode)
    );
    assert!(config.namespaces.is_empty());
    assert_eq!(config.budget, defaults.budget);
    let (fake, defaults) = (
        args.fake.fake_config(jiff::Timestamp::UNIX_EPOCH, 1),
        agent_fake::Kubelet::default(),
    );
    assert_eq!(fake.kubelet.ready_after, defaults.ready_after);
    assert_eq!(fake.kubelet.grace, defaults.grace);
    assert_eq!(fake.nodes, ["node-1", "node-2", "node-3"]);
}

#[test]
fn lease_must_outlast_what_etcd_may_still_do() {
    let check = |flags: &[&str]| {
        let args = parse(flags).expect("each flag is valid");
        args.lease_config("i".into(), None).check()
    };
    assert_eq!(check(&[]), Ok(()));
    let refused = check(&["--lease-duration=15s", "--etcd-request-timeout=15s"]);
    let needed = refused.expect_err("etcd takes too long").needed;
    assert_eq!(needed, Duration::from_secs(20));
    let enough = ["--lease-duration=20s", "--etcd-request-timeout=15s"];
    assert_eq!(check(&enough), Ok(()));
}

#[test]
fn flags_reach_the_agent() {
    let flags = [
        "--namespace",
        "b",
        "--namespace",
        "a",
        "--mode",
        "dry-run",
        "--shard",
        "s",
    ];
    let config = parse(&flags).expect("valid").agent_config("i".into(), 1);
    assert_eq!(
        config.namespaces.into_iter().collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(
        (config.mode, config.shard.as_str()),
        (v1::Mode::DryRun, "s")
    );
}

#[test]
fn real_cluster_goes_before_none_and_the_embedded_one_is_asked_for_by_name() {
    use ClusterKind::{Fake, Kubernetes};
    let kind = |flags: &[&str], found| parse(flags).expect("valid").cluster_kind(found);
    assert_eq!(kind(&[], true), Ok(Kubernetes));
    assert_eq!(kind(&[], false), Err(ClusterError::None));
    assert_eq!(kind(&["--context", "kind"], false), Ok(Kubernetes));
    assert_eq!(kind(&["--kubeconfig", "file"], false), Ok(Kubernetes));
    assert_eq!(kind(&["--cluster", "kubernetes"], false), Ok(Kubernetes));
    assert_eq!(kind(&["--cluster", "kube"], false), Ok(Kubernetes));
    assert_eq!(kind(&["--cluster", "fake"], true), Ok(Fake));
    assert_eq!(
        kind(&["--cluster", "fake", "--context", "kind"], true),
        Ok(Fake)
    );
}

#[test]
fn manifests_are_never_left_unread() {
    let kind = |flags: &[&str], found| parse(flags).expect("valid").cluster_kind(found);
    let refused = Err(ClusterError::ManifestsOfReal);
    assert_eq!(kind(&["--manifest", "web.yaml"], false), refused);
    assert_eq!(kind(&["--manifest", "web.yaml"], true), refused);
    let real = ["--cluster", "kubernetes", "--manifest", "web.yaml"];
    assert_eq!(kind(&real, true), refused);
    let fake = ["--cluster", "fake", "--manifest", "web.yaml"];
    assert_eq!(kind(&fake, true), Ok(ClusterKind::Fake));
}

#[test]
fn servers_are_spoken_to_as_their_url_says_or_not_at_all() {
    for url in [
        "http://127.0.0.1:50051",
        "http://decree:80",
        "http://[::1]:1",
        "https://decree:50051",
        "unix:/run/decree/server.sock",
    ] {
        let args = parse(&["--server", url]).expect(url);
        assert_eq!(args.server.to_string(), url);
    }
    for url in [
        "decree:50051",
        "http://",
        "http://decree/v1",
        "http://decree?x",
        "unix:",
        "",
    ] {
        assert!(parse(&["--server", url]).is_err(), "{url}");
    }
}

#[test]
fn embedded_clusters_have_identities_of_their_own_unless_a_seed_is_given() {
    let seed = |flags: &[&str], drawn| {
        let args = parse(flags).expect("valid");
        let config = args.fake.fake_config(jiff::Timestamp::UNIX_EPOCH, drawn);
        config.seed
    };
    assert_eq!([seed(&[], 7), seed(&[], 8)], [7, 8]);
    assert_eq!(seed(&["--fake-seed", "3"], 7), 3);
}

#[test]
fn values_out_of_range_are_refused() {
    for flags in [
        ["--burst-replicas", "0"],
        ["--calls-max", "0"],
        ["--mode", "gently"],
        ["--admin", "here"],
        ["--resource", "pods"],
    ] {
        assert!(parse(&flags).is_err(), "{flags:?}");
    }
}

#[test]
fn resource_is_kubernetes_own_unless_another_is_named() {
    let resource = |flags: &[&str]| {
        let config = parse(flags).expect("valid").kube_config();
        config.resource.api_version()
    };
    assert_eq!(resource(&[]), "apps/v1");
    let custom = ["--resource", "replicasets.v1.decree.dev"];
    assert_eq!(resource(&custom), "decree.dev/v1");
}

#[test]
fn budget_is_set_limit_by_limit() {
    use agent_core::budget::{Action, BudgetConfig, Limit, Limits};
    let args = parse(&[
        "--budget-action=hold",
        "--budget-floor=7",
        "--delete-budget-replicaset=30%",
        "--delete-budget-cluster=off",
        "--create-budget-namespace=500",
    ]);
    let config = args.expect("each flag is valid").budget.config();
    let expected = BudgetConfig {
        action: Action::Hold,
        floor: 7,
        creates: Limits {
            namespace: Limit::Count(500),
            ..BudgetConfig::default().creates
        },
        deletes: Limits {
            replica_set: Limit::Percent(30),
            ..Limits::default()
        },
    };
    assert_eq!(config, expected);
    let refused = parse(&["--delete-budget-namespace=half"]).expect_err("it is no limit");
    let text = refused.to_string();
    assert!(text.contains("--delete-budget-namespace"), "{text}");
    assert!(
        text.contains("a multiple of what is wanted such as 3x+20, or off"),
        "{text}"
    );
}

#[test]
fn shards_are_of_a_real_cluster_and_bounded() {
    let shards = |flags: &[&str]| parse(flags).map(|args| args.shards.map(NonZeroU16::get));
    assert_eq!(shards(&[]).expect("valid"), None);
    assert_eq!(shards(&["--shards=256"]).expect("valid"), Some(256));
    for wrong in ["--shards=0", "--shards=257", "--shards=-1", "--shards=2.0"] {
        let error = shards(&[wrong]).expect_err("out of range").to_string();
        assert!(error.contains("not a number from 1 to 256"), "{error}");
    }
    let both = shards(&["--shards=2", "--shard=east"]).expect_err("one of the two");
    assert!(both.to_string().contains("cannot be used with"), "{both}");
    let fake = parse(&["--shards=2", "--cluster=fake"]).expect("each flag is valid");
    assert_eq!(fake.cluster_kind(false), Err(ClusterError::ShardsOfFake));
}
