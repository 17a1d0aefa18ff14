//! The chart with helm itself: it renders what the kustomizations render, and a release of the chart is installed, changed and
//! removed.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::{Value, json};
use tests::{
    binaries,
    real::{ApiServer, User},
    tools,
};

use crate::{
    kubectl::{Kubectl, shown},
    rendered::{CUSTOM_SYSTEM, Rendered, SYSTEM, path},
};

/// Labels of the origin of an object, which the kustomizations do not have.
const ORIGINS: [&str; 4] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
];

/// The folders of `deploy/kustomize`, and the values with which the chart renders the same.
const SAME: &str = "
overlays/all-in-one:
overlays/any-node: workload=StatefulSet
base: topology=separate,server.replicas=1,agent.replicas=1
overlays/high-availability: topology=separate
overlays/sharded: topology=separate,agent.replicas=8,shards=4,autoscaler.enabled=true
overlays/advise: workload=StatefulSet,advise=true
overlays/custom-resource: workload=StatefulSet,customResource=true
overlays/high-availability cert-manager: topology=separate,tls.certManager=true
overlays/high-availability-tokens: topology=separate,tokens.enabled=true
overlays/all-in-one monitoring/pod-monitor: monitoring.monitor=PodMonitor,monitoring.alerts=true,monitoring.dashboard=true
overlays/all-in-one monitoring/service-monitor: monitoring.monitor=ServiceMonitor,monitoring.alerts=true,monitoring.dashboard=true";

/// The rows of [`SAME`].
fn same() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = SAME.lines().filter_map(|line| line.split_once(':'));
    rows.map(|(folders, values)| (folders, values.trim_start()))
}

/// Runs helm on the chart. `None` without helm.
fn helm(args: &[&str], kubeconfig: Option<PathBuf>) -> Option<Output> {
    let mut command = Command::new(tools::helm()?.join("helm"));
    let home = tempfile::TempDir::with_prefix("decree-helm-").expect("there is room");
    command
        .args(args)
        .current_dir(binaries::checkout())
        .env("HOME", home.path());
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    Some(command.output().expect("it was found"))
}

/// Runs helm on the chart, and returns its output. `None` without helm.
pub(crate) fn succeeds(args: &[&str], kubeconfig: Option<PathBuf>) -> Option<String> {
    let output = helm(args, kubeconfig)?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    Some(String::from_utf8(output.stdout).expect("it is text"))
}

fn rendered(values: &str, namespace: &str) -> Option<Rendered> {
    let args = ["template", "decree", "deploy/helm/decree", "--skip-tests"];
    let flags = ["-n", namespace, "--set", values];
    let text = succeeds(&[args, flags].concat(), None)?;
    Some(Rendered::read(&text))
}

/// Removes the labels that only the chart has, and the annotation that keeps the definition.
pub(crate) fn without_origin(mut object: Value) -> Value {
    for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
        let labels = object.pointer_mut(labels).and_then(Value::as_object_mut);
        if let Some(labels) = labels {
            labels.retain(|label, _| !ORIGINS.contains(&label.as_str()));
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && metadata.get("annotations") == Some(&json!({"helm.sh/resource-policy": "keep"}))
    {
        metadata.remove("annotations");
    }
    sort(object.pointer_mut("/spec/template/spec/volumes"));
    for containers in ["containers", "initContainers"] {
        let containers = object.pointer_mut(&format!("/spec/template/spec/{containers}"));
        let containers = containers.and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            for list in ["env", "volumeMounts"] {
                sort(container.get_mut(list));
            }
        }
    }
    object
}

/// Sorts a list without a meaningful order by names.
fn sort(list: Option<&mut Value>) {
    if let Some(list) = list.and_then(Value::as_array_mut) {
        list.sort_by_key(|it| it["name"].as_str().map(str::to_owned));
    }
}

#[test]
fn chart_renders_what_kustomize_renders() {
    for (folders, values) in same() {
        let is_custom = values.contains("customResource");
        let namespace = if is_custom { CUSTOM_SYSTEM } else { SYSTEM };
        let mut wanted = Vec::new();
        for folder in folders.split(' ') {
            let rendered = tests::or_skip!(Rendered::of(folder));
            wanted.extend(rendered.by_path());
        }
        // helm creates the namespace itself.
        wanted.retain(|(_, object)| object["kind"] != "Namespace");
        let chart = tests::or_skip!(rendered(values, namespace));
        let mut chart = chart.by_path();
        for (path, object) in wanted {
            let found = chart.remove(&path);
            let found = found.unwrap_or_else(|| panic!("{values}: no {path}"));
            assert_eq!(without_origin(found), without_origin(object), "{values}");
        }
        assert!(chart.is_empty(), "{values}: {:?}", chart.keys());
    }
}

#[test]
fn releases_for_both_groups_share_no_object() {
    let values = "topology=separate,tokens.enabled=true";
    let custom = format!("{values},customResource=true");
    let apps = tests::or_skip!(rendered(values, SYSTEM)).by_path();
    let custom = tests::or_skip!(rendered(&custom, CUSTOM_SYSTEM)).by_path();
    let shared: Vec<_> = apps.keys().filter(|it| custom.contains_key(*it)).collect();
    assert!(shared.is_empty(), "{shared:?}");
}

#[test]
fn chart_passes_helms_own_checks() {
    for (_, values) in same() {
        let args = ["lint", "--strict", "deploy/helm/decree", "--set", values];
        if succeeds(&args, None).is_none() {
            return;
        }
    }
}

/// Values, and the words of their refusals.
const REFUSED: &str = r"
topology=one => /topology
agent.replicas=many => /agent/replicas
server.args={verbose} => /server/args/0
agent.replica=2 => replica
tls.certManager=true => /tls/certManager
server.replicas=3 => /server/replicas
agent.replicas=3 => /agent/replicas
workload=Deployment => /workload
advise=true,agent.args={--mode=shadow} => /agent/args
customResource=true,agent.args={--resource=replicasets.v1.example.org} => /agent/args
topology=separate,autoscaler.enabled=true,server.replicas=0 => /server/replicas
topology=separate,autoscaler.enabled=true,server.replicas=9 => /server/replicas
shards=4 => /shards
agent.args={--shard=0/4} => /agent/args
workload=StatefulSet,shards=2,agent.replicas=4,agent.args={--shard=canary} => /agent/args
workload=StatefulSet,shards=2 => /agent/replicas
workload=StatefulSet,shards=2,agent.replicas=5 => /agent/replicas
image.digest=abc => /image/digest
listenAddress=eth0 => /listenAddress
tokens.enabled=true => /tokens/enabled
tokens.issuer=example.org => /tokens/issuer
tokens.audience=two words => /tokens/audience
policy.grants[0].role=admin => identities
policy.grants[0].role=root,policy.grants[0].identities={uid:1} => /policy/grants/0/role
policy.grants[0].role=viewer,policy.grants[0].identities={uid:1} => clusters
server.podLabels.team=shop => /server/podLabels
server.podAnnotations.team=shop => /server/podAnnotations
server.nodeSelector.disk=ssd => /server/nodeSelector
server.tolerations[0].operator=Exists => /server/tolerations
server.affinity.podAffinity.x=y => /server/affinity
agent.podLabels.app\.kubernetes\.io/component=other => app.kubernetes.io/component
monitoring.labels.app\.kubernetes\.io/name=other => app.kubernetes.io/name
agent.volumes={tmp} => /agent/volumes/0
scaleInCosts={ftp} => /scaleInCosts/0
agent.volumeMounts[0].name=tmp => /agent/volumeMounts/0";

#[test]
fn values_that_mean_nothing_are_refused_by_their_path() {
    for row in REFUSED.lines().skip(1) {
        let (values, path) = row.split_once(" => ").expect("two columns");
        let args = ["template", "deploy/helm/decree", "--set", values];
        let output = tests::or_skip!(helm(&args, None));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{values} is taken");
        assert!(said.contains(path), "{values}: {said}");
    }
}

#[test]
fn names_of_digits_stay_texts() {
    let values = "topology=separate,tls.certManager=true,monitoring.monitor=ServiceMonitor";
    let place = ["-n", "456", "--set", values];
    let args = [&["template", "123", "deploy/helm/decree"], &place[..]].concat();
    let text = tests::or_skip!(succeeds(&args, None));
    for (path, object) in Rendered::read(&text).by_path() {
        let metadata = &object["metadata"];
        let release = &metadata["labels"]["app.kubernetes.io/instance"];
        assert_eq!(*release, "123", "{path}");
        let namespace = &metadata["namespace"];
        assert!(namespace.is_null() || *namespace == "456", "{path}");
    }
}

#[tokio::test]
async fn release_is_installed_upgraded_and_removed() {
    tests::or_skip!(tools::helm());
    let server = tests::or_skip!(ApiServer::start().await);
    let admin = server.admin().await;
    let release = |verb: &[&str]| {
        let args = [verb, &["-n", SYSTEM]].concat();
        succeeds(&args, Some(server.kubeconfig(User::Admin))).expect("helm is there")
    };
    let agent = |kind: &str| format!("/apis/apps/v1/namespaces/{SYSTEM}/{kind}/decree-agent");
    let (daemon_set, stateful_set) = (agent("daemonsets"), agent("statefulsets"));
    let definition =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/replicasets.decree.dev";

    let chart = "deploy/helm/decree";
    let command = &shown("release_is_installed_upgraded_and_removed")[0].text;
    let words: Vec<_> = command.split_whitespace().skip(1).collect();
    let notes = succeeds(&words, Some(server.kubeconfig(User::Admin))).expect("helm is there");
    assert!(notes.contains("run: decree take-over"), "{notes}");
    admin.get(&daemon_set).await.expect("it is installed");
    admin.get(definition).await.expect_err("none was asked for");

    let values =
        "topology=separate,customResource=true,agent.replicas=3,agent.args={--mode=shadow}";
    release(&["upgrade", "decree", chart, "--set", values]);
    admin.get(&daemon_set).await.expect_err("another is used");
    let agent = admin.get(&stateful_set).await.expect("it is used");
    assert_eq!(agent["spec"]["replicas"], 3);
    let container = &agent["spec"]["template"]["spec"]["containers"][0];
    let args = container["args"].as_array().expect("it has flags");
    assert!(args.contains(&json!("--mode=shadow")), "{args:?}");
    admin.get(definition).await.expect("it was asked for");

    // With its definition, all its ReplicaSets would be deleted. Other values reset those of the release.
    release(&["upgrade", "decree", chart, "--set", "nodes=true"]);
    admin.get(&stateful_set).await.expect_err("another is used");
    admin.get(definition).await.expect("it is kept");
    release(&["uninstall", "decree"]);
    admin.get(&daemon_set).await.expect_err("it is removed");
    admin.get(definition).await.expect("it is kept");
    let kubectls = tests::or_skip!(tools::kubectls());
    let kubectl = Kubectl::of(&kubectls[0], &server);
    kubectl.shell("kubectl delete crd replicasets.decree.dev");

    // A release for each group can be installed: helm refuses objects of another release.
    for (namespace, values) in [
        (CUSTOM_SYSTEM, "workload=StatefulSet,customResource=true"),
        (SYSTEM, ""),
    ] {
        let install = ["install", "decree", chart, "--set", values];
        let place = ["-n", namespace, "--create-namespace"];
        let args = [&install[..], &place[..]].concat();
        succeeds(&args, Some(server.kubeconfig(User::Admin))).expect("helm is there");
    }
    // Overlays can be applied over a release. helm leaves no note of what it applied, so a field that only the chart sets would stay.
    for overlay in ["any-node", "all-in-one", "sharded"] {
        kubectl.kustomized("apply", &[], &format!("overlays/{overlay}"));
    }
}

#[tokio::test]
async fn monitors_and_alerts_are_what_the_operator_takes() {
    let definitions = tests::or_skip!(tools::prometheus_operator());
    let server = tests::or_skip!(ApiServer::start().await);
    let admin = server.admin().await;
    for kind in ["podmonitors", "servicemonitors", "prometheusrules"] {
        let file = definitions.join(format!("monitoring.coreos.com_{kind}.yaml"));
        let text = fs::read_to_string(file).expect("the module has it");
        Rendered::read(&text).apply(&admin).await;
    }
    for folder in [
        "base",
        "monitoring/pod-monitor",
        "monitoring/service-monitor",
    ] {
        let rendered = tests::or_skip!(Rendered::of(folder));
        rendered.apply(&admin).await;
        for object in rendered.by_path().values() {
            let stored = admin.get(&path(object)).await;
            stored.expect("it was applied");
        }
    }
    let kubectls = tests::or_skip!(tools::kubectls());
    let kubectl = Kubectl::of(&kubectls[0], &server);
    for block in shown("monitors_and_alerts_are_what_the_operator_takes") {
        kubectl.shell(&block.text);
    }
}
