//! Flags: their limits, and invalid combinations.

use std::ffi::OsString;

use clap::CommandFactory as _;

use super::*;

fn parse(flags: &[&str]) -> Result<AgentArgs, clap::Error> {
    let arguments = ["decree-agent"].iter().chain(flags).map(OsString::from);
    service::config::parse(arguments)
}

#[test]
fn flags_are_consistent() {
    AgentArgs::command().debug_assert();
}

#[test]
fn every_flag_has_its_variable() {
    let command = AgentArgs::command();
    for argument in command.get_arguments() {
        let long = argument.get_long().unwrap_or_default();
        if !["help", "version"].contains(&long) {
            let variable = format!("DECREE_{}", long.to_uppercase().replace('-', "_"));
            let env = argument.get_env().and_then(|env| env.to_str());
            assert_eq!(env, Some(&*variable));
        }
    }
}

#[test]
fn defaults_are_those_of_the_machines() {
    let args = parse(&[]).expect("no flag is required");
    let config = args.agent_config("i".into(), 1);
    let defaults = agent_core::agent::AgentConfig::default();
    assert_eq!(config.calls_max, defaults.calls_max);
    assert_eq!(config.mode, defaults.mode);
    assert!(config.namespaces.is_empty());
    assert_eq!(config.budget, defaults.budget);
}

#[test]
fn nodes_are_read_on_request_with_the_taints_and_labels_of_the_flags() {
    let nodes = |flags: &[&str]| parse(flags).expect("valid").nodes.fields();
    assert_eq!(nodes(&[]), None);
    assert_eq!(nodes(&["--nodes=false", "--node-label=a"]), None);
    let defaults = agent_core::nodes::NodeFields::default();
    assert_eq!(nodes(&["--nodes"]), Some(defaults));
    let own = nodes(&[
        "--nodes",
        "--node-label=a,b",
        "--node-label=c",
        "--leaving-taint=",
    ]);
    let own = own.expect("they are read");
    assert_eq!(
        (own.labels.join(" "), own.leaving_taints),
        ("a b c".to_owned(), vec![])
    );
}

#[test]
fn lease_must_outlast_what_etcd_may_still_do() {
    let check = |flags: &[&str]| {
        let args = parse(flags).expect("each flag is valid");
        args.lease_config("i".into(), None).check()
    };
    assert_eq!(check(&[]), Ok(()));
    let refused = check(&["--lease-duration=15s", "--etcd-request-timeout=15s"]);
    let refused = refused.expect_err("etcd takes too long");
    assert!(refused.contains("must last 20 s"), "{refused}");
    let enough = ["--lease-duration=20s", "--etcd-request-timeout=15s"];
    assert_eq!(check(&enough), Ok(()));
}

#[test]
fn flags_reach_the_agent() {
    let flags = "--namespace b --namespace a --mode dry-run --shard s";
    let flags: Vec<_> = flags.split(' ').collect();
    let config = parse(&flags).expect("valid").agent_config("i".into(), 1);
    assert_eq!(config.namespaces, ["a", "b"].map(str::to_owned).into());
    assert_eq!(config.mode, v1::Mode::DryRun);
    for (mode, withdraw) in [("advise", false), ("withdraw", true)] {
        let config = parse(&["--mode", mode]).expect("valid");
        let config = config.agent_config(String::new(), 0);
        assert_eq!((config.mode, config.withdraw), (v1::Mode::Advise, withdraw));
    }
    assert_eq!(config.shard, "s");
}

#[test]
fn real_cluster_goes_before_none_and_the_embedded_one_is_asked_for_by_name() {
    use ClusterKind::{Fake, Kubernetes};
    let kind = |flags: &[&str], found| parse(flags).expect("valid").cluster_kind(found);
    assert_eq!(kind(&[], true), Ok(Kubernetes));
    assert_eq!(kind(&[], false), Err(NO_CLUSTER));
    assert_eq!(kind(&["--context", "kind"], false), Ok(Kubernetes));
    assert_eq!(kind(&["--kubeconfig", "file"], false), Ok(Kubernetes));
    assert_eq!(kind(&["--cluster", "kubernetes"], false), Ok(Kubernetes));
    assert_eq!(kind(&["--cluster", "kube"], false), Ok(Kubernetes));
    assert_eq!(kind(&["--cluster", "fake"], true), Ok(Fake));
}

/// Flags, whether a real cluster is found, and the refusals.
const OF_THE_OTHER_KIND: &str = "
--manifest=web.yaml | no | --manifest fills
--manifest=web.yaml | yes | --manifest fills
--cluster=kubernetes --manifest=web.yaml | yes | --manifest fills
--fake-seed=1 | yes | --fake-seed is for
--cluster=fake --kubeconfig=a | yes | --kubeconfig and
--cluster=fake --context=a | yes | --kubeconfig and
--node-label=a,b,c,d,e,f,g,h,i | yes | --node-label names too many";

#[test]
fn flags_of_the_other_kind_of_cluster_are_refused() {
    let kind = |flags: &[&str], found| parse(flags).expect("valid").cluster_kind(found);
    for row in OF_THE_OTHER_KIND.lines().skip(1) {
        let [flags, found, said] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let flags: Vec<_> = flags.split(' ').collect();
        let refused = kind(&flags, found == "yes").expect_err(said);
        assert!(refused.starts_with(said), "{refused}");
    }
    let fake = ["--cluster", "fake", "--manifest", "web.yaml"];
    assert_eq!(kind(&fake, true), Ok(ClusterKind::Fake));
    let labels = ["--node-label=a,b,c,d,e,f,g,h"];
    assert_eq!(kind(&labels, true), Ok(ClusterKind::Kubernetes));
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
        ["--server", "decree:50051"],
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
fn budget_is_set_operation_by_operation() {
    use agent_core::budget::{Action, BudgetConfig};
    let parsed = |flags: &[&str]| parse(flags).expect("each flag is valid").budget.config();
    assert_eq!(parsed(&[]), BudgetConfig::default());
    let config = parsed(&["--budget-action=hold", "--delete-budget=cluster=30%"]);
    assert_eq!(config.action, Action::Hold);
    assert_eq!(config.creates, BudgetConfig::default().creates);
    assert_eq!(config.deletes.to_string(), "cluster=30%");
    let refused = parse(&["--delete-budget=half"]).expect_err("it is no limit");
    let text = refused.to_string();
    let example = "such as replicaset=300%+20,cluster=1000";
    for part in ["--delete-budget", example] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn shard_determines_session_leases_namespaces_and_budget() {
    for (flags, session, names) in [
        (&[][..], "", &["decree-agent"][..]),
        (&["--shard=east"], "east", &["decree-agent-east"]),
        (&["--shard=3/8"], "3", &["decree-agent", "decree-agent-3"]),
        (&["--shard=a-5/4", "--lease-name=b"], "1", &["b", "b-1"]),
    ] {
        let args = parse(flags).expect("valid");
        let config = args.agent_config("i".into(), 1);
        let lease = args.lease_config("i".into(), None);
        let mut found = vec![lease.name.clone()];
        let shard = config.namespaces_of;
        found.extend(shard.map(|shard| shard.lease(&lease).name));
        assert_eq!(config.shard, session, "{flags:?}");
        assert_eq!(found, names, "{flags:?}");
        assert_eq!(shard.is_some(), names.len() == 2, "{flags:?}");
    }
    let divided = parse(&["--shard=0/4", "--create-budget=cluster=101"]).expect("valid");
    let cluster = divided.agent_config("i".into(), 1).budget.creates.cluster;
    assert_eq!(cluster, agent_core::budget::Limit::count(26));
}

#[test]
fn shard_is_of_a_real_cluster_and_well_written() {
    for wrong in ["3", "8/8", "0/257", "east/2"] {
        let error = parse(&["--shard", wrong]).expect_err("it is no shard");
        let error = error.to_string();
        assert!(error.contains("not a shard: write I/N"), "{error}");
    }
    let fake = parse(&["--shard=0/2", "--cluster=fake"]).expect("each flag is valid");
    let refused = fake.cluster_kind(false).expect_err("it has no Leases");
    assert!(refused.starts_with("--shard I/N needs Leases"), "{refused}");
    let named = parse(&["--shard=east", "--cluster=fake"]).expect("each flag is valid");
    assert_eq!(named.cluster_kind(false), Ok(ClusterKind::Fake));
}

/// Flags, and the refusals.
const WITHOUT_EFFECT: &str = "
--tls-ca=ca.crt --scale-in-costs=metric,grpc=http://127.0.0.1:9 => does not use TLS, but flags
--tls-server-name=a --scale-in-costs=grpc=https://b:9 => http://127.0.0.1:50051 does not use TLS, but flags
--mode=shadow --scale-in-costs=grpc=http://b:9 => --scale-in-costs http://b:9 is plain text that leaves
--mode=shadow --scale-in-costs=grpc=unix:a,grpc=https://b:9 => names several services";

#[test]
fn flags_without_effect_on_either_peer_are_refused() {
    for row in WITHOUT_EFFECT.lines().skip(1) {
        let (flags, why) = row.split_once(" => ").expect("two columns");
        let flags: Vec<_> = flags.split(' ').collect();
        let args = parse(&flags).expect("valid");
        let refused = args.connectors(&Metrics::default());
        let error = refused.expect_err(why).to_string();
        assert!(error.contains(why), "{flags:?}: {error}");
    }
}
