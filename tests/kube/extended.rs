//! Further volumes and variables, as operations.md shows them for both kinds of manifests; and the chart outside its checkout.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use server_access::{Identity, Policy, method::Need};
use tempfile::TempDir;
use tests::{binaries, running::output_of, tools};

use crate::{
    helm::{succeeds, without_origin},
    kubectl::shown,
    rendered::{Rendered, SYSTEM},
};

const CHART: &str = "deploy/helm/decree";

/// Copies a folder, which must not have links, because links would be broken there.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("there is room");
    for entry in fs::read_dir(from).expect("it is in the checkout").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        assert!(!from.is_symlink(), "{} is a link", from.display());
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("there is room");
        }
    }
}

/// The files that the documents show for a test, such as the values and the kustomization.
fn documented<const COUNT: usize>(test: &str) -> [String; COUNT] {
    let shown: Vec<_> = shown(test).into_iter().map(|block| block.text).collect();
    shown.try_into().expect("they show as many")
}

fn folder() -> TempDir {
    TempDir::with_prefix("decree-extended-").expect("there is room")
}

/// Renders a chart with flags of helm. `None` without helm.
pub(crate) fn templated(chart: &str, flags: &[&str]) -> Option<Rendered> {
    let template = ["template", "decree", chart, "-n", SYSTEM, "--skip-tests"];
    let text = succeeds(&[&template[..], flags].concat(), None)?;
    Some(Rendered::read(&text))
}

/// Renders the chart with values, and a new overlay with files.
fn both(values: &str, files: &[(&str, &str)]) -> Option<[Rendered; 2]> {
    let own = overlay(files)?;
    let folder = folder();
    let file = folder.path().join("values.yaml");
    fs::write(&file, values).expect("there is room");
    let file = file.to_string_lossy().into_owned();
    let separate = ["--set", "topology=separate"];
    let chart = templated(CHART, &[&["-f", &file], &separate[..]].concat())?;
    Some([chart, own])
}

/// Renders a new overlay with files. `None` without kustomize.
fn overlay(files: &[(&str, &str)]) -> Option<Rendered> {
    let kustomize = tools::kustomize()?;
    let folder = folder();

    let manifests = folder.path().join("kustomize");
    copy(&binaries::checkout().join("deploy/kustomize"), &manifests);
    let own = manifests.join("overlays/own");
    fs::create_dir(&own).expect("there is room");
    for (name, text) in files {
        fs::write(own.join(name), text).expect("there is room");
    }
    let mut build = Command::new(kustomize.join("kustomize"));
    let [own, _] = output_of(build.arg("build").arg(&own));
    Some(Rendered::read(&own))
}

#[test]
fn documented_grants_are_rendered() {
    let [values, kustomization] = documented("documented_grants_are_rendered");
    let grant = "[[grant]]\nidentities = [\"dns:dashboard.example.org\"]\nrole = \"viewer\"\nnames = [\"*\"]\n";
    let files = [
        ("kustomization.yaml", &*kustomization),
        ("policy.toml", grant),
    ];
    let [chart, own] = tests::or_skip!(both(&values, &files));
    let agent = Identity::Uri(format!(
        "spiffe://cluster.local/ns/{SYSTEM}/sa/decree-agent"
    ));
    let dashboard = Identity::Dns("dashboard.example.org".to_owned());
    // Grants of the chart are added; the file of an overlay replaces all others.
    for (rendered, has_agent) in [(chart, true), (own, false)] {
        let policy = rendered.one("ConfigMap", "decree-policy");
        let policy = policy["data"]["policy.toml"].as_str().expect("it is text");
        let policy = Policy::parse(policy).expect("it is valid");
        let may = |identity| policy.permissions(identity).may_call(Some(Need::View));
        assert!(may(&dashboard));
        assert_eq!(may(&agent), has_agent);
    }
}

/// Renders the chart with a value, and the documented overlay, whose agents are the same and have a variable.
fn with_variable(test: &str, value: &str, (name, set): (&str, &str)) -> Option<[Rendered; 2]> {
    let [kustomization] = documented(test);
    let own = overlay(&[("kustomization.yaml", &kustomization)])?;
    let chart = templated(CHART, &["--set", value])?;
    let agent = |rendered: &Rendered| without_origin(rendered.workload("decree-agent").clone());
    assert_eq!(agent(&chart), agent(&own));
    let variables = &agent(&own)["spec"]["template"]["spec"]["containers"][0]["env"];
    let wanted = json!({"name": name, "value": set});
    let has = variables.as_array().is_some_and(|it| it.contains(&wanted));
    assert!(has, "{variables:?}");
    Some([chart, own])
}

#[test]
fn documented_declaration_is_rendered() {
    let variable = ("DECREE_BUILT_IN_CONTROLLER", "off");
    let test = "documented_declaration_is_rendered";
    tests::or_skip!(with_variable(test, "takeOver=true", variable));
}

#[test]
fn documented_nodes_are_rendered() {
    let variable = ("DECREE_NODES", "true");
    let test = "documented_nodes_are_rendered";
    let [chart, own] = tests::or_skip!(with_variable(test, "nodes=true", variable));
    let rules = |rendered: &Rendered| rendered.one("ClusterRole", "decree-agent")["rules"].clone();
    assert_eq!(rules(&chart), rules(&own));
    let granted = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]});
    let granted = rules(&own)
        .as_array()
        .is_some_and(|it| it.contains(&granted));
    assert!(granted, "{own:?}");
}

#[test]
fn documented_costs_are_rendered() {
    let variable = ("DECREE_SCALE_IN_COSTS", "http");
    let test = "documented_costs_are_rendered";
    let [chart, own] = tests::or_skip!(with_variable(test, "scaleInCosts={http}", variable));
    let policy =
        |rendered: &Rendered| rendered.one("NetworkPolicy", "decree-agent")["spec"].clone();
    assert_eq!(policy(&chart), policy(&own));
    let to_pods = json!({"to": [{"namespaceSelector": {}}], "ports": [{"protocol": "TCP"}]});
    let egress = &policy(&own)["egress"];
    let egress = egress.as_array().expect("it has some");
    assert!(egress.contains(&to_pods), "{egress:?}");
}

#[test]
fn agent_that_reads_metrics_may_do_so_and_reaches_no_pod() {
    let rendered = |sources: &str| templated(CHART, &["--set", sources]);
    let none = tests::or_skip!(rendered("nodes=false"));
    let metric = tests::or_skip!(rendered("scaleInCosts={metric}"));
    let spec = |it: &Rendered| it.one("NetworkPolicy", "decree-agent")["spec"].clone();
    assert_eq!(spec(&metric), spec(&none));
    let rules = metric.one("ClusterRole", "decree-agent")["rules"].clone();
    let granted =
        json!({"apiGroups": ["custom.metrics.k8s.io"], "resources": ["*"], "verbs": ["get"]});
    assert!(rules.as_array().expect("it has some").contains(&granted));
    let service = tests::or_skip!(rendered("scaleInCosts={metric,grpc=https://ranker:9090}"));
    assert_ne!(spec(&service), spec(&none));
    let agent = service.workload("decree-agent").to_string();
    assert!(agent.contains("metric,grpc=https://ranker:9090"));
}

#[test]
fn every_port_takes_ipv6_where_pods_have_nothing_else() {
    for topology in ["all-in-one", "separate"] {
        let values = format!("topology={topology},listenAddress=[::]");
        let rendered = tests::or_skip!(templated(CHART, &["--set", &values]));
        for workload in rendered.workloads() {
            let text = workload.to_string();
            assert!(text.contains("--admin=[::]:80"), "{text}");
            assert!(!text.contains("0.0.0.0"), "{text}");
        }
    }
}

#[test]
fn agents_that_execute_nothing_may_only_read() {
    for mode in ["shadow", "dry-run"] {
        let args = format!("agent.args={{--mode={mode}}}");
        let rendered = tests::or_skip!(templated(CHART, &["--set", &args]));
        let role = rendered.one("ClusterRole", "decree-agent").to_string();
        assert!(role.contains("watch"), "{role}");
        for verb in ["create", "patch", "delete", "update"] {
            assert!(!role.contains(verb), "{mode}: {role}");
        }
    }
}

#[test]
fn documented_costs_of_advice_are_rendered() {
    let [kustomization] = documented("documented_costs_are_rendered");
    let [patch] = documented("documented_costs_of_advice_are_rendered");
    let own = kustomization.replace("../all-in-one", "../advise") + &patch;
    let own = tests::or_skip!(overlay(&[("kustomization.yaml", &own)]));
    let values = "workload=StatefulSet,advise=true,scaleInCosts={http}";
    let chart = tests::or_skip!(templated(CHART, &["--set", values]));
    let [own, chart] = [own, chart].map(|rendered| {
        let agent = without_origin(rendered.workload("decree-agent").clone());
        let rules = rendered.one("ClusterRole", "decree-agent")["rules"].clone();
        let policy = rendered.one("NetworkPolicy", "decree-agent")["spec"].clone();
        [agent, rules, policy]
    });
    assert_eq!(own, chart);
    assert_eq!(own[1][1]["verbs"], json!(["get", "list", "watch"]));
}

#[test]
fn documented_volumes_and_variables_are_rendered() {
    let [values, patch] = documented("documented_volumes_and_variables_are_rendered");
    let files = [("kustomization.yaml", &*patch)];
    let [chart, patched] = tests::or_skip!(both(&values, &files));
    let server = |rendered: &Rendered| without_origin(rendered.workload("decree-server").clone());
    let (chart, patched) = (server(&chart), server(&patched));
    assert_eq!(chart, patched);
    let pod = &chart["spec"]["template"]["spec"];
    let volumes = names(&pod["volumes"]);
    assert_eq!(volumes, ["crl", "policy", "recordings", "tls"]);
    let variables = names(&pod["containers"][0]["env"]);
    assert_eq!(variables, ["DECREE_RECORD", "DECREE_TLS_CRL"]);
}

fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("it is a list").iter();
    list.map(|it| it["name"].as_str().expect("it is text"))
        .collect()
}

#[test]
fn variables_volumes_and_labels_reach_both_containers_of_the_one_pod() {
    let extras = |program: &str| {
        let value = [
            format!("env[0].name={program}-variable"),
            "env[0].value=given".to_owned(),
            format!("volumes[0].name={program}-volume"),
            "volumes[0].emptyDir.medium=Memory".to_owned(),
            format!("volumeMounts[0].name={program}-volume"),
            "volumeMounts[0].mountPath=/extra".to_owned(),
        ];
        value.map(|value| format!("{program}.{value}")).join(",")
    };
    let values = [extras("server"), extras("agent")].join(",");
    let values = format!("{values},agent.podLabels.team=shop");
    let rendered = tests::or_skip!(templated(CHART, &["--set", &values]));
    let template = &rendered.workload("decree-agent")["spec"]["template"];
    assert_eq!(template["metadata"]["labels"]["team"], "shop");
    let pod = &template["spec"];
    for (program, containers) in [("server", "initContainers"), ("agent", "containers")] {
        let container = &pod[containers][0];
        let [variable, volume] = ["variable", "volume"].map(|it| format!("{program}-{it}"));
        assert!(
            names(&container["env"]).contains(&&*variable),
            "{container:#}"
        );
        assert!(
            names(&container["volumeMounts"]).contains(&&*volume),
            "{container:#}"
        );
        assert!(names(&pod["volumes"]).contains(&&*volume), "{pod:#}");
    }
}

#[test]
fn packaged_copy_of_the_chart_renders_the_same() {
    let values = [
        "--set",
        "workload=StatefulSet,customResource=true,monitoring.alerts=true,monitoring.dashboard=true",
    ];
    let wanted = tests::or_skip!(templated(CHART, &values));
    let (folder, packages) = (folder(), folder());
    let chart = folder.path().join("decree");
    copy(&binaries::checkout().join(CHART), &chart);
    let [chart, destination] = [&*chart, packages.path()].map(|it| it.to_string_lossy());
    let package = ["package", &chart, "--destination", &destination];
    succeeds(&package, None).expect("helm is there");
    let mut packages = fs::read_dir(packages.path())
        .expect("it was made")
        .flatten();
    let package = packages.next().expect("helm has made one").path();
    let found = templated(&package.to_string_lossy(), &values).expect("helm is there");
    assert_eq!(found.by_path(), wanted.by_path());
}
