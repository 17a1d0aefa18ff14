//! The cluster of a kubeconfig, read without a server: an API server with a few objects, and the same objects as a file.

use std::{ffi::OsString, fs, sync::Arc};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::StatusCode,
};
use clap_complete::engine;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, runtime::Runtime};

use super::{check, check_with, decide, decree, decree_reading};
use crate::{Exit, complete};

/// An API server, and a kubeconfig for it.
pub(super) struct Api {
    pub(super) kubeconfig: String,
    _folder: TempDir,
    _runtime: Runtime,
}

impl Api {
    /// Starts one that lets everybody read the namespace `shop`, and nobody all namespaces.
    fn start(all: Vec<Value>) -> Self {
        Self::serve(Router::new().fallback(answer).with_state(Arc::new(all)))
    }

    pub(super) fn serve(router: Router) -> Self {
        let runtime = Runtime::new().expect("threads");
        let listener = TcpListener::bind("127.0.0.1:0");
        let listener = runtime.block_on(listener).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        runtime.spawn(async move { axum::serve(listener, router).await });
        let folder = TempDir::new().expect("there is room");
        let kubeconfig = folder.path().join("kubeconfig");
        fs::write(&kubeconfig, config(&address.to_string())).expect("there is room");
        Self {
            kubeconfig: kubeconfig.display().to_string(),
            _folder: folder,
            _runtime: runtime,
        }
    }
}

/// A kubeconfig for an API server at this address.
fn config(address: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "north",
        "contexts": [{
            "name": "north",
            "context": {"cluster": "north", "user": "alice", "namespace": "shop"},
        }],
        "clusters": [{"name": "north", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "alice", "user": {}}],
    });
    config.to_string()
}

async fn answer(
    State(objects): State<Arc<Vec<Value>>>,
    request: Request,
) -> (StatusCode, Json<Value>) {
    let refused = |code: StatusCode, message: String| {
        let status = json!({"kind": "Status", "apiVersion": "v1", "message": message});
        (code, Json(status))
    };
    let path = request.uri().path();
    let Some((_, rest)) = path.split_once("/namespaces/shop/") else {
        let message = "replicasets is forbidden at the cluster scope".to_owned();
        return refused(StatusCode::FORBIDDEN, message);
    };
    let (resource, name) = rest.split_once('/').unwrap_or((rest, ""));
    let kind = match resource {
        "deployments" => "Deployment",
        "replicasets" => "ReplicaSet",
        _ => "Pod",
    };
    let of_kind = objects.iter().filter(|it| it["kind"] == kind);
    let mut items: Vec<_> = of_kind.cloned().collect();
    if name.is_empty() {
        let list = json!({
            "apiVersion": "v1", "kind": format!("{kind}List"),
            "metadata": {"resourceVersion": "7"}, "items": items,
        });
        return (StatusCode::OK, Json(list));
    }
    items.retain(|it| it["metadata"]["name"] == name);
    match items.pop() {
        Some(object) => (StatusCode::OK, Json(object)),
        None => refused(StatusCode::NOT_FOUND, format!("{name} not found")),
    }
}

/// A Deployment amid a rollout, with a ReplicaSet of 4 pods and one of 2, one that was scaled down, and a pod of a StatefulSet.
fn objects() -> Vec<Value> {
    let annotation = |name: &str| format!("deployment.kubernetes.io/{name}");
    let mut all = vec![json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "uid": "uid-web", "generation": 3,
            "annotations": {annotation("revision"): "3"},
        },
        "spec": {"replicas": 6, "strategy": {"rollingUpdate": {"maxSurge": 0}}},
        "status": {"observedGeneration": 3, "replicas": 6},
    })];
    for (name, replicas, revision) in [("web-1a", 0, "1"), ("web-2b", 2, "2"), ("web-3c", 4, "3")] {
        let mut set = decide::replica_set(name, replicas);
        set["metadata"]["annotations"] = json!({
            annotation("revision"): revision,
            annotation("desired-replicas"): "6",
            annotation("max-replicas"): "6",
        });
        set["metadata"]["creationTimestamp"] = format!("2026-05-0{revision}T12:00:00Z").into();
        set["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-web", "controller": true,
        }]);
        all.push(set);
        for at in 0..replicas {
            all.push(decide::pod(&format!("{name}-bcdf{}", at + 2), name));
        }
    }
    let mut other = decide::pod("db-0", "db");
    other["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet".into();
    all.push(other);
    for object in &mut all {
        object["metadata"]["namespace"] = "shop".into();
    }
    all
}

/// The answers about the objects; `@FIRST` stands for the line about the source.
const ANSWERS: &str = "
[0] simulate deployment/web --replicas 3
REPLICASET    ACTION   POD            RULE …
shop/web-2b   delete   web-2b-bcdf2   UID …
…
shop/web-3c   delete   web-3c-bcdf2   UID …
shop/web-3c   delete   web-3c-bcdf3   UID …
…
@FIRSTnotice: Kubernetes divides 3 replicas of shop/web: web-2b 2 → 1, web-3c 4 → 2
[0] simulate web --replicas 0 -o name
replicaset.apps/web-2b
replicaset.apps/web-3c
@FIRSTnotice: Kubernetes divides 0 replicas of shop/web: web-2b 2 → 0, web-3c 4 → 0
[0] simulate pod/web-3c-bcdf2 --replicas 4 -o name
replicaset.apps/web-3c
@FIRST[0] get rs
NAMESPACE   NAME     DESIRED   CURRENT   READY   AVAILABLE   STATE     CAUSE
…
shop        web-3c   4         4         0       0           Working   4 of 4 pods not ready
…
[0] get rs deploy/web -o name
replicaset.apps/web-2b
replicaset.apps/web-3c
@FIRST[0] explain rs/web-3c
Name:        shop/web-3c
…
Replicas:    4 desired, 4 current, 0 ready, 0 available, 0 terminating
…
Not known:   decisions and refusals; run one beside your controller, read-only: decree up --cluster kubernetes
@FIRST[1] explain web-3c --why web-3c-x
@FIRSTerror: only a server remembers why web-3c-x of shop/web-3c was deleted
hint: run one beside your controller, read-only: …
[0] simulate --quota 5
A quota of 5 pods in shop refuses 0 of 0 creates; it counts 7 pods now.
…
[1] explain pod/db-0
@FIRSTerror: pod shop/db-0 belongs to StatefulSet db, not to a ReplicaSet
[2] explain sts/db
error: …is a StatefulSet, which has no ReplicaSets, and Decree decides for ReplicaSets only
…
[1] get rs deploy/wep
@FIRSTerror: no ReplicaSet of Deployment shop/wep found
hint: did you mean web?
[1] simulate nope
@FIRSTerror: ReplicaSet shop/nope not found
hint: …
[2] get rs -w
@FIRSTerror: -w takes a server, and a snapshot is read
hint: run one beside your controller, read-only: decree up --cluster kubernetes
[2] get rs --cluster north
error: --cluster is for a server, …
[2] get sessions
error: sessions are …";

#[test]
fn cluster_is_read_at_once_and_answers_as_its_objects_in_a_file_do() {
    let api = Api::start(objects());
    let kubeconfig = ["--kubeconfig", &api.kubeconfig];
    let first = "cluster north at http://127.0.0.1:…, as alice, read now\n";
    let of_cluster = ANSWERS.replace("@FIRST", first);
    check_with(
        "",
        &[&kubeconfig[..], &["-n", "shop"]].concat(),
        &of_cluster,
    );
    let as_bob = "[0] get rs -o name\n…\ncluster north at …, as bob, read now";
    check_with(
        "",
        &[&kubeconfig[..], &["--as", "bob", "-n", "shop"]].concat(),
        as_bob,
    );
    let file = json!({"apiVersion": "v1", "kind": "List", "items": objects()}).to_string();
    check_with(
        &file,
        &["-f", "-", "-n", "shop"],
        &ANSWERS.replace("@FIRST", ""),
    );
    // Decisions are the same to the byte.
    let now = ["decide", "--now", decide::NOON, "-o", "json", "-n", "shop"];
    let of_cluster = decree(&[&now[..], &kubeconfig].concat());
    let of_file = decree_reading(&file, &[&now[..], &["-f", "-"]].concat());
    assert_eq!((of_cluster.exit, of_file.exit), (Exit::Done, Exit::Done));
    assert_eq!(of_cluster.out, of_file.out);
    assert_eq!(of_cluster.out.lines().count(), 3, "{}", of_cluster.out);
}

#[test]
fn decision_on_a_cluster_names_the_preferences_that_depend_on_what_is_not_read() {
    let mut all = objects();
    for set in all.iter_mut().filter(|it| it["kind"] == "ReplicaSet") {
        let annotations = &mut set["metadata"]["annotations"];
        annotations["decree.dev/scale-in"] = "consolidate, spread=zone, leaving-node".into();
        annotations["decree.dev/surge-on-eviction"] = "true".into();
    }
    let notices = "
[0] simulate web-3c --replicas 2 -o name
replicaset.apps/web-3c
@FIRSTnotice: shop/web-3c is decided without nodes (spread=zone, leaving-node, surge-on-eviction) and pods of other namespaces \
     (consolidate); a server whose agent has --nodes knows more: --server URL
[0] decide --replica-set web-3c -o name
replicaset.apps/web-3c
@FIRSTnotice: shop/web-3c is decided without nodes (surge-on-eviction); …";
    let api = Api::start(all.clone());
    let kubeconfig = ["--kubeconfig", &api.kubeconfig, "-n", "shop"];
    let first = "cluster north at http://127.0.0.1:…, as alice, read now\n";
    check_with("", &kubeconfig, &notices.replace("@FIRST", first));
    // Files have what they have.
    let of_files = "\n[0] simulate web-3c --replicas 2 -o name\nreplicaset.apps/web-3c";
    check_with(&decide::list(&all), &["-f", "-", "-n", "shop"], of_files);
}

#[test]
fn replicas_are_divided_by_the_newer_of_two_states() {
    let (mut new, mut old) = (objects(), objects());
    old.retain(|it| it["kind"] != "Pod");
    for object in &mut old {
        object["metadata"]["resourceVersion"] = "8".into();
        object["spec"]["replicas"] = 9.into();
        if object["kind"] == "Deployment" {
            // Such a Deployment divides nothing.
            object["spec"]["strategy"] = json!({"type": "Recreate"});
        }
    }
    for object in new.iter_mut().filter(|it| it["kind"] != "Pod") {
        object["metadata"]["resourceVersion"] = "9".into();
    }
    for all in [[&new[..], &old].concat(), [&old[..], &new].concat()] {
        check_with(
            &decide::list(&all),
            &["-f", "-", "-n", "shop"],
            "
[0] simulate deployment/web --replicas 3 -o name
replicaset.apps/web-2b
replicaset.apps/web-3c
notice: 4 objects have two states; the newer counts
notice: Kubernetes divides 3 replicas of shop/web: web-2b 2 → 1, web-3c 4 → 2",
        );
    }
}

#[test]
fn resume_finds_a_name_in_the_namespace_of_the_context() {
    let api = Api::start(objects());
    check_with(
        "",
        &["--kubeconfig", &api.kubeconfig],
        "
[0] resume web-3c
annotated shop/web-3c with decree.dev/resume
[1] resume web-9
error: ReplicaSet shop/web-9 not found
…
[4] resume -n default web-3c
error: …forbidden…
…
[2] resume deployment/web
error: web is no name of a ReplicaSet
…",
    );
}

/// Answers as an API server with a probe, to a user whose name steers a terminal.
async fn answer_to_alice(request: Request) -> Json<Value> {
    Json(match request.uri().path() {
        "/version" => json!({"gitVersion": "v1.36.3"}),
        "/apis/apps/v1/replicasets" => json!({"items": [{"metadata": {"namespace": "shop"}}]}),
        "/apis/authentication.k8s.io/v1/selfsubjectreviews" => {
            json!({"status": {"userInfo": {"username": "al\u{1b}[2Jice"}}})
        }
        path if path.ends_with("/leases") => json!({"items": []}),
        _ => json!({"metadata": {"name": "decree-probe"}}),
    })
}

#[test]
fn user_of_a_declaration_steers_no_terminal() {
    let api = Api::serve(Router::new().fallback(answer_to_alice));
    let ended = decree(&["hand-back", "--kubeconfig", &api.kubeconfig]);
    let declared = ", declared by al\\u{1b}[2Jice\n";
    assert!(
        ended.out.starts_with("shop/decree-probe: on since "),
        "{ended:?}"
    );
    assert!(ended.out.ends_with(declared), "{ended:?}");
}

/// What a drain says of the objects if pods are on two nodes.
const DRAINS: &str = "
[0] simulate --drain node-b
1 of 2 ReplicaSets is left with no ready pod: shop/web-2b.
A drain of node-b deletes 3 pods of 2 ReplicaSets, which then lack 3 pods.
…
REPLICASET    DESIRED   CURRENT   DELETED   LACKING   READY-LEFT   PODS
shop/web-2b   2         2         2         2         0            web-2b-bcdf2, web-2b-bcdf3
shop/web-3c   4         4         1         1         3            web-3c-bcdf2
@FIRST[0] simulate --drain node-a
A drain of node-a deletes 3 pods of 1 ReplicaSet, which then lack 3 pods.
…
shop/web-3c   4         4         3         3         1            …
@FIRST[0] simulate --drain node-c
A drain of node-c affects no ReplicaSet of shop: no active pod of one is known there.
@FIRST";

#[test]
fn drain_of_files_and_of_a_cluster_names_what_is_left_with_no_ready_pod() {
    let mut all = objects();
    for pod in all.iter_mut().filter(|it| it["kind"] == "Pod") {
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        let name = pod["metadata"]["name"].as_str().expect("a name");
        if name.starts_with("web-2b") || name == "web-3c-bcdf2" {
            pod["spec"]["nodeName"] = "node-b".into();
        }
    }
    let api = Api::start(all.clone());
    let first = "cluster north at http://127.0.0.1:…, as alice, read now\n";
    let kubeconfig = ["--kubeconfig", &api.kubeconfig, "-n", "shop"];
    check_with("", &kubeconfig, &DRAINS.replace("@FIRST", first));
    check_with(
        &decide::list(&all),
        &["-f", "-", "-n", "shop"],
        &DRAINS.replace("@FIRST", ""),
    );
}

#[test]
fn api_server_that_is_silent_and_kubeconfig_that_is_empty_are_named() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it is bound").to_string();
    let folder = TempDir::new().expect("there is room");
    let [full, empty] =
        [("full", config(&address)), ("empty", String::new())].map(|(name, text)| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("there is room");
            path.display().to_string()
        });
    for command in ["get rs", "explain web", "resume web"] {
        check(&format!(
            "
[3] {command} --timeout 20ms --kubeconfig {full}
error: http://{address}: the API server does not answer
hint: …--context
[2] {command} --kubeconfig {empty}
error: kubeconfig of --kubeconfig {empty} cannot be used: it is empty: …
hint: …"
        ));
    }
}

#[test]
fn candidates_come_from_the_cluster_of_the_flags() {
    let api = Api::start(objects());
    let config = format!("--kubeconfig={}", api.kubeconfig);
    for (words, expected) in [
        ("explain CONFIG web", "web-1a web-2b web-3c"),
        ("get CONFIG rs web-2", "web-2b"),
        (
            "simulate CONFIG --context north --namespace shop deploy",
            "deployment/web",
        ),
        ("resume CONFIG deploy", ""),
        ("explain CONFIG -n other web", ""),
        ("explain CONFIG --context south web", ""),
    ] {
        let words = words.replace("CONFIG", &config);
        let words: Vec<_> = ["decree"].into_iter().chain(words.split(' ')).collect();
        let words: Vec<_> = words.into_iter().map(OsString::from).collect();
        let (last, mut command) = (words.len() - 1, complete::command(&words));
        let offered = engine::complete(&mut command, words, last, None).expect("it is valid");
        let offered = offered.iter().map(|it| it.get_value().to_string_lossy());
        assert_eq!(offered.collect::<Vec<_>>().join(" "), expected);
    }
}
