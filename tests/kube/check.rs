//! `decree check`: each fault is reported with its remedy.

use std::{net::TcpListener, path::Path, process::Output};

use serde_json::{Value, json};
use tests::real::{Agent, ApiServer, DecisionServer, Namespace, Patch, User, decree, found};

use crate::{acts, modes, objects};

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
    // The check passes once the session has synced.
    let session = found(async || {
        let output = check(&server, &kubeconfig, &format!("{words} -o json"));
        let failure = || format!("{output:?}: {:#?}", agent.running().tail());
        let is_well = output.status.success();
        is_well.then_some(&output).ok_or_else(failure).cloned()
    })
    .await;
    let told = lines(&session);
    let grade = |check: &str| result(&told, check).0;
    assert_eq!([grade("server"), grade("versions")], ["OK", "OK"]);
    assert_eq!(result(&told, "api server"), ("OK", "answers, v1.36.3"));
    assert_eq!(result(&told, "permissions"), ("OK", "all 20 are granted"));
    let (grade, holder) = result(&told, "lease check-well/decree-agent");
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
        "may watch replicasets.apps/decree-probe in kube-system",
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
async fn check_passes_in_shadow_mode_with_permissions_to_read_alone() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, "check-reads").await;
    let reader = modes::may_only_read(cluster, &namespace).await;
    let server = DecisionServer::start();
    let words = "-o json --mode shadow --agent off --lease-namespace check-reads";
    let output = check(&server, &reader, words);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found = lines(&output);
    let (grade, missing) = result(&found, "may elect a leader");
    assert_eq!(grade, "WARN");
    let updates = "update leases.coordination.k8s.io/decree-agent in check-reads";
    assert!(missing.ends_with(updates), "{missing}");
    let (grade, _) = result(&found, "lease check-reads/decree-agent");
    assert_eq!(grade, "WARN");
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

/// A namespace in which `decree check` looks for the probe and for others.
struct Look<'a> {
    server: DecisionServer,
    cluster: &'a ApiServer,
    namespace: Namespace,
}

impl Look<'_> {
    fn finds(&self, words: &str, check_name: &str, grade: &str, detail: &str) {
        let name = self.namespace.name();
        let words = format!("-o json --agent off -n {name} --lease-namespace {name}{words}");
        let found = lines(&check(
            &self.server,
            &self.cluster.kubeconfig(User::Admin),
            &words,
        ));
        let (found_grade, found_detail) = result(&found, check_name);
        assert_eq!(found_grade, grade, "{check_name}: {found_detail}");
        assert!(found_detail.contains(detail), "{found_detail}");
    }

    /// Writes the status of a ReplicaSet under a name.
    async fn writes(&self, set: &str, manager: &str) {
        let path = format!("{set}/status?fieldManager={manager}");
        let path = self.namespace.replica_set(&path);
        let status = json!({"status": {"replicas": 0, "observedGeneration": 1}});
        let written = self.namespace.patch(&path, Patch::Merge, &status);
        written.await.expect("all is allowed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_is_never_well_beside_another_controller_whatever_its_name() {
    let (others, built_in) = ("other controllers", "built-in controller");
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let look = Look {
        server: DecisionServer::start(),
        cluster,
        namespace: Namespace::create(cluster.admin().await, "check-others").await,
    };
    look.finds("", built_in, "WARN", "not declared off");
    look.finds(
        " --built-in-controller off",
        built_in,
        "OK",
        "declared off by",
    );
    look.finds("", others, "OK", "created no pod and wrote no status");
    look.finds(" --mode shadow", others, "WARN", "created no pod");

    let set = acts::create_set(&look.namespace, &objects::replica_set("web", 0)).await;
    look.writes("web", "kubelite").await;
    let wrote = "kubelite wrote the status of check-others/web";
    look.finds("", others, "WARN", wrote);
    look.finds(" --mode shadow", others, "OK", wrote);
    let mut pod = objects::pod("web-x");
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": set["metadata"]["uid"], "controller": true,
    }]);
    let path = format!("{}?fieldManager=k3s", look.namespace.pod(""));
    look.namespace.make(&path, &pod).await;
    look.finds("", others, "WARN", "k3s created pod check-others/web-x");

    let mut probe = objects::replica_set("decree-probe", 0);
    let record = "decree.dev/built-in-replicaset-controller";
    probe["metadata"]["annotations"] =
        json!({record: "off since 2020-01-01T00:00:00Z, declared by alice"});
    acts::create_set(&look.namespace, &probe).await;
    look.finds("", built_in, "OK", "declared by alice");
    look.finds("", others, "FAIL", "k3s created pod");
    look.writes("decree-probe", "kubelite").await;
    let answers = "declared off, but kubelite answers decree-probe";
    look.finds("", built_in, "FAIL", answers);
    for (value, grade) in [("found-on since then", "FAIL"), ("on since then", "WARN")] {
        let patch = json!({"metadata": {"annotations": {record: value}}});
        acts::patch_set(&look.namespace, "decree-probe", &patch).await;
        look.finds(
            "",
            built_in,
            grade,
            &format!("the agents stand by: {value}"),
        );
    }
}
