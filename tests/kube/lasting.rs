//! Pods that end or lose their owner right after their creation, on the API server.

use std::time::Instant;

use kube::core::WatchEvent;
use serde_json::{Value, json};
use tests::real::{Agent, ApiServer, DecisionServer, Namespace, User, decree, found};
use tokio::task;
use tokio_stream::StreamExt as _;

use crate::{acts, budget, objects};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";

/// Rejects each new pod as a kubelet does, and counts the pods, while polled.
async fn reject_all(namespace: &Namespace, count: &mut usize) {
    let api = namespace.api();
    let list = api.get(&namespace.pod("")).await.expect("it can be listed");
    // The pods from before the watch.
    for pod in list["items"].as_array().into_iter().flatten() {
        *count += 1;
        reject(namespace, pod).await;
    }
    let version = list["metadata"]["resourceVersion"].as_str();
    let from = version.expect("a list has one");
    let events = api.watch(&namespace.pod(""), from).await;
    let mut events = std::pin::pin!(events.expect("it can be watched"));
    while let Some(event) = events.next().await {
        let Ok(WatchEvent::Added(pod)) = event else {
            continue;
        };
        *count += 1;
        reject(namespace, &pod).await;
    }
}

async fn reject(namespace: &Namespace, pod: &Value) {
    let status = json!({"phase": "Failed", "reason": "UnexpectedAdmissionError"});
    acts::set_pod_status(namespace, pod, &status).await;
}

/// Waits until the server explains a ReplicaSet in these words; a batch in flight is explained first. Meanwhile, [`reject_all`] goes on:
/// the command runs on another thread.
pub(crate) async fn is_explained(server: &DecisionServer, set: &str, words: &str) {
    found(async || {
        let (server, set) = (server.url(), set.to_owned());
        let asked = task::spawn_blocking(move || decree(&["explain", &set, "--server", &server]));
        let explained = asked.await.expect("the command runs");
        let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
        let is_so = explained.contains(words);
        is_so.then_some(()).ok_or(explained)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_a_kubelet_rejects_are_few_and_an_event_says_so() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, "rejected").await;
    let server = DecisionServer::start();
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let flags = ["--leader-elect=false", "--namespace", "rejected"];
    let _agent = Agent::start(&server, &kubeconfig, &flags);
    let (mut count, set, begun) = (0, "rejected/web", Instant::now());
    let words = "the latest has failed";
    let event = {
        let learned = async {
            acts::create_set(&namespace, &objects::replica_set("web", 3)).await;
            let event = budget::told(&namespace, "PodsDoNotLast", words).await;
            is_explained(&server, set, "Because:     PODS_DO_NOT_LAST").await;
            event
        };
        tokio::select! {
            event = learned => event,
            () = reject_all(&namespace, &mut count) => panic!("the watch has ended"),
        }
    };
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["involvedObject"]["name"], "web");
    // Three desired, an allowance of 20, and the grants since then.
    let grants = usize::try_from(begun.elapsed().as_secs() / 10).expect("few") + 1;
    assert!((23..=23 + 5 * grants).contains(&count), "{count}");

    // The cause is fixed, and a person resumes: the server creates all missing pods at once, and they last.
    let user = kubeconfig.to_string_lossy();
    let resumed = decree(&["resume", "--kubeconfig", &user, set]);
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    acts::status_becomes(&namespace, "web", &json!({"replicas": 3})).await;
}

/// A policy that removes the owner of each pod of a namespace, at each write, until it is deleted.
async fn remove_owners(namespace: &Namespace) {
    let name = namespace.name();
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"],
                }],
            },
            "matchConditions": [{"name": "owned", "expression": "has(object.metadata.ownerReferences)"}],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [{
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": "[JSONPatch{op: \"remove\", path: \"/metadata/ownerReferences\"}]"},
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name},
    });
    for (path, object) in [(POLICIES, policy), (BINDINGS, binding)] {
        namespace.make(path, &object).await;
    }
    // The API server learns of policies later than they are written.
    let path = format!("{}?dryRun=All", namespace.pod(""));
    let mut probe = objects::pod("probe");
    probe["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "probe", "uid": "probe"}]);
    found(async || {
        let made = namespace.make(&path, &probe).await;
        let is_free = made["metadata"]["ownerReferences"].is_null();
        is_free.then_some(()).ok_or_else(|| made.to_string())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_whose_owner_a_policy_removes_at_each_write_are_created_once() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, "disowned").await;
    remove_owners(&namespace).await;
    let server = DecisionServer::start();
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let flags = ["--leader-elect=false", "--namespace", "disowned"];
    let _agent = Agent::start(&server, &kubeconfig, &flags);
    acts::create_set(&namespace, &objects::replica_set("web", 7)).await;
    // The server counts the pods as adopted; the agent, which has seen none with an owner, refuses such a status.
    is_explained(
        &server,
        "disowned/web",
        "replicas is 7, and at most 0 have been seen",
    )
    .await;
    assert_eq!(namespace.pods().await.map(|pods| pods.len()), Ok(7));
    for path in [BINDINGS, POLICIES] {
        namespace
            .remove(&format!("{path}/disowned"), &json!({}))
            .await;
    }
    // The server adopts the pods again within a minute.
    acts::status_becomes(&namespace, "web", &json!({"replicas": 7})).await;
    assert_eq!(namespace.pods().await.map(|pods| pods.len()), Ok(7));
}
