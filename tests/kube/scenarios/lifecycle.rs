//! The possible changes of a ReplicaSet, and its end.

use serde_json::{Value, json};
use tests::real::Attended;

use crate::{acts, objects};

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
    let deleted = namespace.api().delete(&path, &json!({})).await;
    deleted.expect("it is there");
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

#[tokio::test]
async fn all_replica_sets_of_a_collection_can_be_deleted() {
    let namespace = tests::or_skip!(Attended::namespace("collection").await);
    let names = ["one", "two", "three"];
    for name in names {
        acts::create_set(&namespace, &objects::replica_set(name, 1)).await;
    }
    for name in names {
        acts::status_becomes(&namespace, name, &json!({"replicas": 1})).await;
    }
    let sets = namespace.replica_set("");
    let labelled = format!("{sets}?labelSelector=app%3Dweb");
    let listed = namespace.api().list(&labelled).await;
    assert_eq!(listed.expect("they can be listed").len(), 3);
    let orphans = json!({"propagationPolicy": "Background"});
    let deleted = namespace.api().delete(&labelled, &orphans).await;
    deleted.expect("they can be deleted");
    let gone = |list: &Value| (list["items"] == json!([])).then_some(());
    namespace.api().wait_for("gone", &sets, gone).await;
    assert_eq!(acts::pods_become(&namespace, 3).await.len(), 3);
}
