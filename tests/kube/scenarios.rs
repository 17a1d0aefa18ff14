//! ReplicaSets on the API server: what no other test of this tier shows on the way. The recorded run (`recording`) scales them, loses, relabels
//! and adopts pods, and deletes a ReplicaSet; `shadow` and `mutants` compare victims and statuses with upstream's.
//!
//! No kubelet runs: if a pod must run, be ready or stop, the test acts as its kubelet.

use serde_json::{Value, json};
use tests::real::{Agent, ApiServer, Attended, DecisionServer, Namespace, User};

use crate::{acts, another, objects};

/// References of a pod, by its ReplicaSet.
type References = fn(&Value) -> Value;

/// The names of ReplicaSets, the references of a pod from before the agent, the references then, and the number of pods.
const FOUND: [(&str, References, References, usize); 5] = [
    (
        "plain",
        |set| json!([reference(set)]),
        |set| json!([controller(set)]),
        1,
    ),
    ("orphan", |_| json!([]), |set| json!([controller(set)]), 1),
    (
        "beside-another",
        |_| json!([reference(&stranger())]),
        |set| json!([reference(&stranger()), controller(set)]),
        1,
    ),
    // Not even `blockOwnerDeletion` is added.
    ("ours", without_block, without_block, 1),
    (
        "of-another",
        |_| json!([controller(&stranger())]),
        |_| json!([controller(&stranger())]),
        2,
    ),
];

fn without_block(set: &Value) -> Value {
    let mut reference = reference(set);
    reference["controller"] = true.into();
    json!([reference])
}

#[tokio::test]
async fn pods_from_before_the_agent_get_their_controller_unless_they_have_one() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = &Namespace::create(cluster.admin().await, "found").await;
    let mut found = Vec::new();
    for (name, before, ..) in FOUND {
        let set = acts::create_set(namespace, &another::set(name, 1)).await;
        let mut pod = objects::pod(&format!("found-{name}"));
        pod["metadata"]["labels"] = json!({"app": name});
        pod["metadata"]["ownerReferences"] = before(&set);
        let pod = acts::create_pod(namespace, &pod).await;
        found.push((set, pod));
    }
    let server = DecisionServer::start();
    let flags = ["--leader-elect=false", "--namespace", "found"];
    let _agent = Agent::start(&server, &cluster.kubeconfig(User::Admin), &flags);
    for ((name, before, after, count), (set, pod)) in FOUND.into_iter().zip(found) {
        acts::status_becomes(namespace, name, &json!({"replicas": 1})).await;
        acts::pods_become_so(namespace, name, |pods| {
            let of_it = |it: &&Value| it["metadata"]["labels"]["app"] == name;
            pods.iter().filter(of_it).count() == count
        })
        .await;
        let now = acts::pod_becomes(namespace, &pod, "there", |_| true).await;
        if before(&set) == after(&set) {
            assert_eq!(now, pod, "{name}");
        }
        assert_eq!(sorted(references(&now)), sorted(&after(&set)), "{name}");
    }
}

#[tokio::test]
async fn a_deleted_replica_set_gets_no_finalizer_of_ours_and_its_pods_are_left_alone() {
    let namespace = tests::or_skip!(Attended::namespace("own-finalizer").await);
    let finalizers = json!(["example.com/held"]);
    let mut set = objects::replica_set("web", 2);
    set["metadata"]["finalizers"] = finalizers.clone();
    acts::create_set(&namespace, &set).await;
    acts::status_becomes(&namespace, "web", &json!({"replicas": 2})).await;
    let pods = acts::pods_become(&namespace, 2).await;
    let path = namespace.replica_set("web");
    namespace.remove(&path, &json!({})).await;
    // A deletion request is a new generation, which the controller observes.
    let set = acts::status_becomes(&namespace, "web", &json!({"replicas": 2})).await;
    assert!(set["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(set["metadata"]["finalizers"], finalizers);
    assert_eq!(acts::pods_become(&namespace, 2).await, pods);
    acts::patch_set(
        &namespace,
        "web",
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    let api = namespace.api();
    let gone = |list: &Value| (list["items"] == json!([])).then_some(());
    api.wait_for("gone", &namespace.replica_set(""), gone).await;
    // Only the garbage collector deletes them, and none runs.
    assert_eq!(acts::pods_become(&namespace, 2).await, pods);
}

/// The API server drops the count then. Each sync of the ReplicaSet writes the count once, as upstream's does, and a write
/// without a change leads to no further sync.
#[tokio::test]
async fn where_the_api_server_knows_no_terminating_pods_none_are_counted() {
    let off = "--feature-gates=DeploymentReplicaSetTerminatingReplicas=false";
    let cluster = tests::or_skip!(ApiServer::start_with(&[off]).await);
    let attended = Attended::of(cluster).await;
    let admin = attended.cluster().admin().await;
    let namespace = Namespace::create(admin, "none-counted").await;
    let seven = terminating(&namespace).await;
    let statuses = || attended.agent().calls("replace_status");
    let before = statuses();
    // During each of these steps, an endless loop of status writes would write the status many times.
    for pod in &seven {
        let noted = json!({"metadata": {"annotations": {"example.com/noted": "true"}}});
        acts::patch_pod(&namespace, pod, &noted).await;
    }
    let scaled = acts::scale(&namespace, "web", 6).await;
    assert!(scaled["status"]["terminatingReplicas"].is_null());
    let six = json!({"replicas": 6, "terminatingReplicas": null});
    acts::status_becomes(&namespace, "web", &six).await;
    let (written, changes) = (statuses() - before, 7 + 2);
    assert!(written < 3 * changes, "{written} times");
}

/// Makes five running pods, of which two are deleted and do not stop; returns all seven.
async fn terminating(namespace: &Namespace) -> Vec<Value> {
    let mut set = objects::replica_set("web", 5);
    // A pod without a node is removed at once.
    set["spec"]["template"]["spec"]["nodeName"] = "node-without-kubelet".into();
    acts::create_set(namespace, &set).await;
    let none = json!({"replicas": 5, "terminatingReplicas": null});
    acts::status_becomes(namespace, "web", &none).await;
    for pod in &acts::pods_become(namespace, 5).await[..2] {
        acts::delete_pod(namespace, pod).await;
    }
    let seven = acts::pods_become(namespace, 7).await;
    acts::status_becomes(namespace, "web", &none).await;
    seven
}

fn stranger() -> Value {
    let uid = "5f0a9a4c-7b6d-4f43-9c41-0c2b8ad2f0e7";
    json!({"metadata": {"name": "a-stranger", "uid": uid}})
}

fn reference(set: &Value) -> Value {
    let (name, uid) = (&set["metadata"]["name"], &set["metadata"]["uid"]);
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": uid})
}

fn controller(set: &Value) -> Value {
    let mut reference = reference(set);
    reference["controller"] = true.into();
    reference["blockOwnerDeletion"] = true.into();
    reference
}

/// References by the name of their objects: their order is the API server's.
fn sorted(list: &Value) -> Vec<Value> {
    let mut list = list.as_array().expect("there are some").clone();
    list.sort_by_key(|one| one["name"].to_string());
    list
}

fn references(pod: &Value) -> &Value {
    &pod["metadata"]["ownerReferences"]
}
