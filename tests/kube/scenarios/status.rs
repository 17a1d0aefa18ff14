//! The status of the pods.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tests::real::{ApiServer, Attended, Namespace};

use crate::{acts, objects};

#[tokio::test]
async fn ready_pods_become_available_after_their_time() {
    let namespace = tests::or_skip!(Attended::namespace("available-later").await);
    let mut set = objects::replica_set("web", 3);
    set["spec"]["minReadySeconds"] = 3_600.into();
    acts::create_set(&namespace, &set).await;
    let pods = acts::pods_become(&namespace, 3).await;
    let now = Timestamp::now();
    let long_ago = now - SignedDuration::from_hours(2);
    for (pod, since) in pods.iter().zip([now, long_ago]) {
        let since = Timestamp::from_second(since.as_second()).expect("it is in range");
        let ready = objects::ready_since(&since.to_string(), 0);
        acts::set_pod_status(&namespace, pod, &ready).await;
    }
    let counts = json!({"replicas": 3, "readyReplicas": 2, "availableReplicas": 1});
    acts::status_becomes(&namespace, "web", &counts).await;
}

#[tokio::test]
async fn pods_with_all_labels_of_the_template_are_fully_labelled() {
    let namespace = tests::or_skip!(Attended::namespace("fully-labelled").await);
    acts::create_set(&namespace, &objects::replica_set("web", 2)).await;
    let pods = acts::pods_become(&namespace, 2).await;
    let both = json!({"replicas": 2, "fullyLabeledReplicas": 2});
    acts::status_becomes(&namespace, "web", &both).await;
    let more = json!({"metadata": {"labels": {"tier": "front"}}});
    acts::patch_set(&namespace, "web", &json!({"spec": {"template": more}})).await;
    let none = json!({"replicas": 2, "fullyLabeledReplicas": 0});
    acts::status_becomes(&namespace, "web", &none).await;
    acts::patch_pod(&namespace, &pods[0], &more).await;
    let one = json!({"replicas": 2, "fullyLabeledReplicas": 1});
    acts::status_becomes(&namespace, "web", &one).await;
}

#[tokio::test]
async fn pods_that_terminate_are_counted_until_they_are_gone() {
    let namespace = tests::or_skip!(Attended::namespace("counted-until-gone").await);
    let (pods, _) = terminating(&namespace, &json!(0), &json!(2)).await;
    acts::remove_pod(&namespace, &pods[0]).await;
    let one = json!({"replicas": 5, "terminatingReplicas": 1});
    acts::status_becomes(&namespace, "web", &one).await;
    acts::pods_become(&namespace, 6).await;
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
    let (_, seven) = terminating(&namespace, &Value::Null, &Value::Null).await;
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

/// Makes five running pods, of which two are deleted and do not stop; returns those two, and all seven.
async fn terminating(
    namespace: &Namespace,
    before: &Value,
    after: &Value,
) -> (Vec<Value>, Vec<Value>) {
    let mut set = objects::replica_set("web", 5);
    // A pod without a node is removed at once.
    set["spec"]["template"]["spec"]["nodeName"] = "node-without-kubelet".into();
    acts::create_set(namespace, &set).await;
    let none = json!({"replicas": 5, "terminatingReplicas": before});
    acts::status_becomes(namespace, "web", &none).await;
    let mut pods = acts::pods_become(namespace, 5).await;
    pods.truncate(2);
    for pod in &pods {
        acts::delete_pod(namespace, pod).await;
    }
    let two = json!({"replicas": 5, "terminatingReplicas": after});
    let seven = acts::pods_become(namespace, 7).await;
    acts::status_becomes(namespace, "web", &two).await;
    (pods, seven)
}
