//! EvictionRequests with upstream's API server and their controllers: the agent is the responder of the pods that it creates.

use std::thread;

use serde_json::{Value, json};
use tests::{
    depth,
    real::{DecisionServer, Namespace, NodeCluster, User, found},
};

use crate::{
    check,
    drains::{play, run},
    objects,
};

/// Workloads and acts as in [`crate::drains`]. The words after `responder` are the state and the message of the agent in the Eviction.
const ROWS: &str = "\
requested    decree | Deployment 1 1 2 | true | request, pod 0, responder Completed the pod has ended, succeeded
half         decree | ReplicaSet 4 4 6 | 50%  | request, request, request, pod 0, succeeded
requested    decree | Deployment 1 1 2 | true | kill agent, request, kill agent, active 2, kill agent, pod 0, kill agent, succeeded
waits        decree | Deployment 1 1 2 | true | quota 1, request, says exceeded quota, responder Active waits until a replacement of the pod is available, quota 2, pod 0, succeeded
withdrawn    decree | Deployment 1 1 1 | true | quota 1, request, marked, withdraw, unmarked, pod 1
opted-out    decree | Deployment 1 1 1 | true | opt-out, request, responder Completed no ReplicaSet replaces the pod before its eviction, pod 1
";
/// The acts of EvictionRequests.
pub(crate) const VERBS: [&str; 7] = [
    "opt-out",
    "request",
    "withdraw",
    "marked",
    "unmarked",
    "responder",
    "succeeded",
];
const ROOT: &str = "/apis/lifecycle.k8s.io/v1alpha1";
const SURGE: &str = "decree.dev/surge-on-eviction";
const RESPONDER: &str = "decree.dev/replicaset";

#[test]
fn requested_evictions_wait_for_replacements() {
    // Building the API server and its controllers takes minutes.
    if !depth::is_full_or_told("EvictionRequests are made") {
        return;
    }
    let cluster = &tests::or_skip!(run(NodeCluster::start_with_evictions()));
    thread::scope(|rows| {
        for (row, seed) in ROWS.lines().zip(1..) {
            rows.spawn(move || run(play(cluster, row, seed)));
        }
    });
    run(check_lists_pods_without_the_responder(cluster));
}

async fn check_lists_pods_without_the_responder(cluster: &NodeCluster) {
    let admin = cluster.server().admin().await;
    let namespace = Namespace::create(admin, "before").await;
    let mut set = objects::replica_set("web", 1);
    set["metadata"]["annotations"] = json!({SURGE: "true"});
    let made = namespace.make(&namespace.replica_set(""), &set).await;
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": made["metadata"]["uid"], "controller": true});
    let mut pod = made["spec"]["template"].clone();
    pod["metadata"]["name"] = "web-1".into();
    pod["metadata"]["ownerReferences"] = json!([owner]);
    namespace.make(&namespace.pod(""), &pod).await;
    let server = DecisionServer::start();
    let kubeconfig = cluster.server().kubeconfig(User::Admin);
    let words = "-o json --only agent --agent off --nodes -n before";
    let found = check::lines(&check::check(&server, &kubeconfig, words));
    let found = found.iter().find(|it| it["check"] == "evictions");
    let found = found.expect("it is checked");
    assert_eq!(found["detail"], "before/web: 1 pod without a responder");
    assert_eq!(found["result"], "WARN");
}

/// Does an act. All but the first chose a pod before.
pub(crate) async fn act(namespace: &Namespace, pod: Option<&Value>, verb: &str, word: &str) {
    let Some(pod) = pod else {
        return opt_out(namespace).await;
    };
    match verb {
        "request" => request(namespace, pod).await,
        "withdraw" => withdraw(namespace, pod).await,
        "marked" | "unmarked" => is_marked(namespace, pod, verb == "marked").await,
        "responder" => responds(namespace, pod, word).await,
        _ => have_succeeded(namespace).await,
    }
}

/// Requests the eviction of a pod, which names its responder.
async fn request(namespace: &Namespace, pod: &Value) {
    let responder = json!([{"name": RESPONDER, "priority": 10_000}]);
    assert_eq!(pod["spec"]["evictionResponders"], responder);
    let metadata = &pod["metadata"];
    let target = json!({"pod": {"name": metadata["name"], "uid": metadata["uid"]}});
    let request = json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "EvictionRequest",
        "metadata": {"name": metadata["name"]},
        "spec": {"target": target, "requester": "tests.decree.dev/drain", "intent": "Eviction"},
    });
    let path = namespace.path(ROOT, "evictionrequests", "");
    namespace.make(&path, &request).await;
}

async fn withdraw(namespace: &Namespace, pod: &Value) {
    let name = pod["metadata"]["name"].as_str().expect("it has one");
    let path = namespace.path(ROOT, "evictionrequests", name);
    namespace.remove(&path, &json!({})).await;
}

/// Sets the annotation of the Deployment to Kubernetes' own behaviour, and waits until its ReplicaSet has it too.
async fn opt_out(namespace: &Namespace) {
    let path = namespace.path("/apis/apps/v1", "deployments", "web");
    let own = json!({"metadata": {"annotations": {SURGE: "kubernetes"}}});
    namespace.change(&path, &own).await;
    found(async || {
        let sets = namespace.list(&namespace.replica_set("")).await;
        let sets = sets.map_err(|it| format!("{it:?}"))?;
        let is_so = |set: &Value| set["metadata"]["annotations"][SURGE] == "kubernetes";
        let are_so = sets.iter().all(is_so);
        are_so.then_some(()).ok_or_else(|| format!("{sets:#?}"))
    })
    .await;
}

/// Waits until the agent has announced the eviction of a pod, or has taken that back.
async fn is_marked(namespace: &Namespace, pod: &Value, is_marked: bool) {
    let path = namespace.pod(pod["metadata"]["name"].as_str().expect("it has one"));
    found(async || {
        let pod = namespace.get(&path).await.map_err(|it| format!("{it:?}"))?;
        let mark = &pod["metadata"]["annotations"]["decree.dev/leaving"];
        let is_so = mark.is_string() == is_marked;
        is_so
            .then_some(())
            .ok_or_else(|| format!("the mark is {mark}"))
    })
    .await;
}

/// Waits until the agent has a state and a message in the Eviction of a pod.
async fn responds(namespace: &Namespace, pod: &Value, expected: &str) {
    found(async || {
        let path = namespace.path(ROOT, "evictions", "");
        let evictions = namespace.list(&path).await;
        let evictions = evictions.map_err(|it| format!("{it:?}"))?;
        let mut evictions = evictions.iter();
        let eviction =
            evictions.find(|it| it["spec"]["target"]["pod"]["uid"] == pod["metadata"]["uid"]);
        let status = &eviction.ok_or("there is no Eviction")?["status"];
        let own = |list: &Value| {
            let list = list.as_array().into_iter().flatten();
            let mut own = list.filter(|it| it["name"] == RESPONDER);
            own.next().cloned().unwrap_or_default()
        };
        let (state, report) = (own(&status["targetResponders"]), own(&status["responders"]));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_so = format!("{} {}", text(&state["state"]), text(&report["message"])) == expected;
        is_so.then_some(()).ok_or_else(|| format!("{status:#}"))
    })
    .await;
}

/// Waits until all requests have succeeded.
async fn have_succeeded(namespace: &Namespace) {
    found(async || {
        let path = namespace.path(ROOT, "evictionrequests", "");
        let requests = namespace.list(&path).await;
        let requests = requests.map_err(|it| format!("{it:?}"))?;
        let has_succeeded = |request: &Value| {
            let conditions = request["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten();
            let mut evicted = conditions.filter(|it| it["type"] == "TargetEvicted");
            evicted.any(|it| it["status"] == "True")
        };
        let have = !requests.is_empty() && requests.iter().all(has_succeeded);
        have.then_some(()).ok_or_else(|| format!("{requests:#?}"))
    })
    .await;
}
