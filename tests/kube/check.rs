//! `decree check`: each fault is reported with its remedy.

use std::{net::TcpListener, path::Path, process::Output, time::Instant};

use serde_json::{Value, json};
use tests::real::{
    Agent, ApiServer, DecisionServer, LOOK_EVERY, Namespace, PATIENCE, Patch, User, decree,
};
use tokio::time;

use crate::{acts, objects};

/// Runs `decree check` as the user of a kubeconfig, with further arguments.
pub(crate) fn check(server: &DecisionServer, kubeconfig: &Path, words: &str) -> Output {
    let user = kubeconfig.to_string_lossy();
    let words: Vec<_> = words.split(' ').collect();
    server.ask(&[&["check", "--kubeconfig", &user], words.as_slice()].concat())
}

/// The lines of a JSON answer.
pub(crate) fn lines(output: &Output) -> Vec<Value> {
    let lines = serde_json::from_slice(&output.stdout);
    lines.unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn result<'a>(lines: &'a [Value], check: &str) -> (&'a str, &'a str) {
    let line = lines.iter().find(|line| line["check"] == check);
    let line = line.unwrap_or_else(|| panic!("{check} is not in {lines:#?}"));
    let text = |key: &str| line[key].as_str().expect("it is text");
    assert_eq!(text("result") == "OK", text("hint").is_empty(), "{line:#}");
    (text("result"), text("detail"))
}

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_all_well_where_an_agent_leads() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, "check-well").await;
    let server = DecisionServer::start();
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let place = "check-well";
    let flags = ["--namespace", place, "--lease-namespace", place];
    let agent = Agent::start(&server, &kubeconfig, &flags);
    let words = "-n check-well --lease-namespace check-well";
    let until = Instant::now() + PATIENCE;
    let mut looks = time::interval(LOOK_EVERY);
    // The check passes once the session has synced.
    let session = loop {
        looks.tick().await;
        let output = check(&server, &kubeconfig, &format!("{words} -o json"));
        if output.status.success() {
            break output;
        }
        let late = Instant::now() >= until;
        assert!(!late, "{output:?}: {:#?}", agent.running().tail());
    };
    assert_eq!(session.status.code(), Some(0), "{session:?}");
    let found = lines(&session);
    let grade = |check: &str| result(&found, check).0;
    assert_eq!([grade("server"), grade("versions")], ["OK", "OK"]);
    assert_eq!(result(&found, "api server"), ("OK", "answers, v1.36.3"));
    assert_eq!(result(&found, "permissions"), ("OK", "all 18 are granted"));
    let (grade, holder) = result(&found, "lease check-well/decree-agent");
    assert!(grade == "OK" && holder.starts_with("held by "), "{holder}");
    let table = check(&server, &kubeconfig, words);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.starts_with("decision server\n----"), "{table}");
    drop(namespace);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_each_permission_that_is_missing() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let server = DecisionServer::start();
    let nobody = cluster.kubeconfig(User::Nobody);
    let output = check(&server, &nobody, "-o json");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let found = lines(&output);
    for missing in [
        "may list pods",
        "may create pods",
        "may patch replicasets.apps/status",
        "may get namespaces/kube-system",
        "may update leases.coordination.k8s.io/decree-agent in kube-system",
    ] {
        assert_eq!(result(&found, missing), ("FAIL", "not granted"));
    }
    let watching = check(&server, &nobody, "-o json --mode shadow");
    let told = String::from_utf8_lossy(&watching.stdout);
    assert!(
        told.contains("may list pods") && !told.contains("may create pods"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_goes_on_where_there_is_no_server() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let free = TcpListener::bind("127.0.0.1:0").expect("loopback has room");
    let url = format!("http://{}", free.local_addr().expect("it is bound"));
    drop(free);
    let admin = cluster.kubeconfig(User::Admin);
    let check = |kubeconfig: &str| {
        let user = ["check", "--kubeconfig", kubeconfig];
        decree(&[&user[..], &["--server", &url, "-o", "json"]].concat())
    };
    let output = check(&admin.to_string_lossy());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let found = lines(&output);
    assert_eq!(result(&found, "server").0, "FAIL");
    assert_eq!(result(&found, "permissions").0, "OK");
    let output = check("/nowhere");
    assert_eq!(result(&lines(&output), "credentials").0, "FAIL");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_warns_of_a_built_in_controller_that_acts() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, "check-built-in").await;
    let set = objects::replica_set("web", 0);
    acts::create_set(&namespace, &set).await;
    let status = namespace.replica_set("web/status?fieldManager=kube-controller-manager");
    let written = json!({"status": {"replicas": 0, "observedGeneration": 1}});
    let written = namespace.api().patch(&status, Patch::Merge, &written).await;
    written.expect("all is allowed");
    let server = DecisionServer::start();
    let admin = cluster.kubeconfig(User::Admin);
    let found = lines(&check(&server, &admin, "-o json"));
    let (grade, detail) = result(&found, "built-in controller");
    assert!(
        grade == "WARN" && detail.starts_with("kube-controller-manager wrote"),
        "{detail}"
    );
    let shadow = lines(&check(&server, &admin, "-o json --mode shadow"));
    assert_eq!(result(&shadow, "built-in controller").0, "OK");
}
