//! Beside the built-in ReplicaSet controller: an agent acts only while the built-in controller is declared off, and stands by while it cannot
//! use the probe.

use std::{fs, path::PathBuf, process::Output};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::real::{
    Agent, Api, ApiServer, ControllerManager, DecisionServer, Namespace, Sightings, User, decree,
    found,
};

use crate::{
    acts, objects,
    rendered::{Rendered, SYSTEM},
    workload::ACCOUNT,
};

const STANDS_BY: &str = "standing by";
const UNREACHED: &str = "no server can be reached: the agent could not work if it led";
const SET: &str = "web";
const ALL_OTHERS: &str = "--controllers=*,-replicaset-controller";

async fn scales(namespace: &Namespace, replicas: usize) {
    let wanted = u32::try_from(replicas).expect("it is small");
    acts::scale(namespace, SET, wanted).await;
    acts::pods_become(namespace, replicas).await;
}

/// Runs a command of a person, who has all permissions.
pub(crate) fn declares(cluster: &ApiServer, command: &str) -> Output {
    let admin = cluster.kubeconfig(User::Admin);
    decree(&[command, "--kubeconfig", &admin.to_string_lossy()])
}

/// The output of a command that ends with this code.
fn told(code: i32, output: &Output) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{out}{err}")
}

/// The record of the probe.
pub(crate) async fn record(api: &Api) -> String {
    let path = format!("/apis/apps/v1/namespaces/{SYSTEM}/replicasets/decree-probe");
    let probe = api.get(&path).await.expect("an agent has created it");
    assert_eq!(probe["spec"]["replicas"], 0, "nothing runs for it");
    let annotations = &probe["metadata"]["annotations"];
    let record = annotations["decree.dev/built-in-replicaset-controller"].as_str();
    record.unwrap_or_default().to_owned()
}

fn standing_by(cause: &str) -> String {
    format!("decree_agent_standing_by{{cause=\"{cause}\"}}")
}

async fn is_declared_off_while_it_is_on(cluster: &ApiServer, namespace: &Namespace, agent: &Agent) {
    let found = "kube-controller-manager answered";
    let wrong = told(1, &declares(cluster, "take-over"));
    assert!(
        wrong.contains(found) && wrong.contains("hint: turn it off"),
        "{wrong}"
    );
    assert_eq!(agent.metric(&standing_by("found_on")), 1);
    scales(namespace, 6).await;
    assert_eq!(agent.calls("create_pod"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_acts_only_while_the_built_in_controller_is_declared_off() {
    let rendered = tests::or_skip!(Rendered::of("base"));
    let cluster = tests::or_skip!(ApiServer::start().await);
    let admin = cluster.admin().await;
    rendered.apply(&admin).await;
    let namespace = Namespace::create(admin.clone(), "take-over").await;
    let mut built_in = ControllerManager::start(&cluster, &[]);
    acts::create_set(&namespace, &objects::replica_set(SET, 3)).await;
    acts::pods_become(&namespace, 3).await;
    let sightings = Sightings::begin(&namespace);
    let early = told(1, &declares(&cluster, "take-over"));
    assert!(early.contains("no agent has stood by"), "{early}");

    // The agent needs only the shipped permissions.
    let kubeconfig = cluster.service_account(SYSTEM, ACCOUNT).await;
    let server = DecisionServer::start();
    let flags = ["--lease-namespace", SYSTEM];
    let agent = Agent::start_undeclared(&server, &kubeconfig, &flags);
    agent.says(STANDS_BY, 1).await;
    agent.becomes_ready().await;
    assert_eq!(agent.metric(&standing_by("undeclared")), 1);
    scales(&namespace, 5).await;
    assert_eq!(agent.calls("create_pod"), 0);
    assert_eq!(record(&admin).await, "");

    is_declared_off_while_it_is_on(&cluster, &namespace, &agent).await;
    assert_eq!(agent.terminate().code(), Some(0));
    // A flag does not start it again.
    let agent = Agent::start(&server, &kubeconfig, &flags);
    agent.says(STANDS_BY, 1).await;
    assert_eq!(agent.metric(&standing_by("found_on")), 1);

    built_in.stop();
    let mut others = ControllerManager::start(&cluster, &[ALL_OTHERS]);
    let taken = told(0, &declares(&cluster, "take-over"));
    assert!(taken.ends_with(" acts\n"), "{taken}");
    let off = record(&admin).await;
    assert!(
        off.starts_with("off since 20") && off.ends_with(", declared by admin"),
        "{off}"
    );
    scales(&namespace, 7).await;
    assert_eq!(agent.calls("create_pod"), 1);

    // The next agent reads the record.
    assert_eq!(agent.terminate().code(), Some(0));
    let agent = Agent::start_undeclared(&server, &kubeconfig, &flags);
    scales(&namespace, 8).await;

    // The way back.
    let given = told(0, &declares(&cluster, "hand-back"));
    assert!(given.contains("Decree has stopped"), "{given}");
    agent.says(STANDS_BY, 1).await;
    agent.becomes_ready().await;
    assert_eq!(agent.metric(&standing_by("on")), 1);
    assert_eq!(agent.metric("decree_agent_session_open"), 0);
    others.stop();
    let _built_in = ControllerManager::start(&cluster, &[]);
    scales(&namespace, 10).await;
    assert_eq!(agent.calls("create_pod"), 1);
    assert_eq!(sightings.most(SET), 10, "none was made twice");
    assert!(sightings.gone().is_empty(), "and none was deleted");
}

/// A kubeconfig with another token, or for another address.
fn changed(kubeconfig: &PathBuf, change: impl Fn(&mut Value)) -> (TempDir, PathBuf) {
    let text = fs::read_to_string(kubeconfig).expect("it was written");
    let mut config: Value = serde_saphyr::from_str(&text).expect("it is YAML");
    change(&mut config);
    let folder = TempDir::with_prefix("decree-kubeconfig-").expect("there is room");
    let file = folder.path().join("kubeconfig");
    fs::write(&file, config.to_string()).expect("there is room");
    (folder, file)
}

/// Denies all ReplicaSets of a namespace, and waits until it does.
async fn deny_replica_sets(namespace: &Namespace) {
    let api = namespace.api();
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "registries"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name()}},
                "resourceRules": [{
                    "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["replicasets"],
                }],
            },
            "validations": [{"expression": "false", "message": "images must come from registry.example"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "registries"},
        "spec": {"policyName": "registries", "validationActions": ["Deny"]},
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
    for (kind, object) in [("ies", policy), ("ybindings", binding)] {
        api.make(&format!("{path}{kind}"), &object).await;
    }
    let sets = format!("{}?dryRun=All", namespace.replica_set(""));
    found(async || {
        let created = api.create(&sets, &objects::replica_set(SET, 0)).await;
        created.err().ok_or_else(|| "nothing is denied".to_owned())
    })
    .await;
}

#[tokio::test]
async fn agent_that_cannot_use_the_probe_is_not_ready_and_says_why() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let name = "no-probe";
    let namespace = Namespace::create(cluster.admin().await, name).await;
    deny_replica_sets(&namespace).await;
    let server = DecisionServer::start();
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let (_one, wrong) = changed(&kubeconfig, |it| {
        it["users"][0]["user"] = json!({"token": "x"})
    });
    let (_other, closed) = changed(&kubeconfig, |it| {
        it["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
    });
    for (kubeconfig, cause, remedy) in [
        (
            &kubeconfig,
            "images must come from registry.example",
            "exempt it from admission policies",
        ),
        (
            &cluster.kubeconfig(User::Nobody),
            "forbidden",
            "grant create, get, watch and patch",
        ),
        (&wrong, "Unauthorized", "check the credentials"),
        (&closed, "onnect", "check the address of the API server"),
    ] {
        let agent = Agent::start(&server, kubeconfig, &["--lease-namespace", name]);
        agent.says(STANDS_BY, 1).await;
        let log = agent.running().tail().join("\n");
        assert!(log.contains(cause) && log.contains(remedy), "{log}");
        agent.stops_being_ready().await;
        assert_eq!(agent.metric(&standing_by("no_probe")), 1);
        assert_eq!(agent.said("waiting for the lease"), 0);
    }
}

#[tokio::test]
async fn agent_that_stands_by_and_reaches_no_server_is_not_ready() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let name = "unreached";
    let _namespace = Namespace::create(cluster.admin().await, name).await;
    let (server, kubeconfig) = (DecisionServer::start(), cluster.kubeconfig(User::Admin));
    let flags = ["--namespace", name, "--lease-namespace", name];
    let leader = Agent::start(&server, &kubeconfig, &flags);
    leader.says("leading", 1).await;
    // A port without a listener.
    let lost = Agent::start_at("http://127.0.0.1:1", &kubeconfig, &flags);
    lost.says(UNREACHED, 1).await;
    lost.stops_being_ready().await;
    let able = Agent::start(&server, &kubeconfig, &flags);
    able.becomes_ready().await;
    assert_eq!(able.said("leading") + lost.said("leading"), 0);
    leader.becomes_ready().await;
    server.kill();
    able.says(UNREACHED, 1).await;
    able.stops_being_ready().await;
}
