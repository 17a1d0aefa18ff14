//! Owners: adoption, release, and the garbage collector.

use serde_json::{Value, json};

use super::{Story, cluster, owned, pod, refusal, replica_set};
use crate::{Cluster, DeleteOptions, Kind, Object, Propagation};

#[test]
fn pods_of_a_deleted_replica_set_are_collected() {
    let (mut cluster, _) = with_owned_pod();
    assert!(delete_set(&mut cluster, None));
    assert!(cluster.pod("a").is_some());
    cluster.settle();
    assert!(cluster.pod("a").is_none());
}

#[test]
fn foreground_deletion_waits_for_the_pods() {
    let (mut cluster, _) = with_owned_pod();
    cluster.settle();
    assert!(!delete_set(&mut cluster, Some(Propagation::Foreground)));
    let set = cluster
        .peek(Kind::ReplicaSet, "default", "web")
        .expect("it waits");
    assert_eq!(set["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(set["metadata"]["generation"], 2);
    cluster.pass(300);
    assert!(
        cluster
            .pod("a")
            .is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    );
    assert!(cluster.peek(Kind::ReplicaSet, "default", "web").is_some());
    cluster.settle();
    assert!(cluster.pod("a").is_none());
    assert!(cluster.peek(Kind::ReplicaSet, "default", "web").is_none());
}

#[test]
fn orphaned_pods_stay_without_an_owner() {
    let (mut cluster, _) = with_owned_pod();
    delete_set(&mut cluster, Some(Propagation::Orphan));
    cluster.settle();
    assert!(cluster.peek(Kind::ReplicaSet, "default", "web").is_none());
    let pod = cluster.pod("a").expect("it stays");
    assert!(pod["metadata"]["ownerReferences"].is_null());
}

#[test]
fn pod_that_is_born_after_its_owner_went_is_collected() {
    let (mut cluster, set) = with_owned_pod();
    delete_set(&mut cluster, None);
    cluster.created(owned(pod("late"), &set));
    cluster.settle();
    assert!(cluster.pod("late").is_none());
}

#[test]
fn pod_that_is_born_under_an_owner_that_waits_is_collected_too() {
    let (mut cluster, set) = with_owned_pod();
    delete_set(&mut cluster, Some(Propagation::Foreground));
    cluster.created(owned(pod("late"), &set));
    cluster.settle();
    assert!(cluster.pod("late").is_none());
    assert!(cluster.peek(Kind::ReplicaSet, "default", "web").is_none());
}

#[test]
fn pod_with_another_owner_only_loses_the_reference() {
    let (mut cluster, set) = with_owned_pod();
    let mut shared = owned(pod("shared"), &set);
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c"});
    shared["metadata"]["ownerReferences"]
        .as_array_mut()
        .expect("a list")
        .push(other.clone());
    cluster.created(shared);
    delete_set(&mut cluster, None);
    cluster.settle();
    let pod = cluster.pod("shared").expect("it has an owner left");
    assert_eq!(pod["metadata"]["ownerReferences"], json!([other]));
}

#[test]
fn replica_set_with_a_finalizer_stays_and_so_do_its_pods() {
    let (mut cluster, _) = with_owned_pod();
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    cluster
        .patch(Kind::ReplicaSet, "default", "web", &hold)
        .expect("it may be held");
    assert!(!delete_set(&mut cluster, None));
    cluster.settle();
    let set = cluster
        .peek(Kind::ReplicaSet, "default", "web")
        .expect("it is held");
    assert_eq!(set["metadata"]["finalizers"], json!(["example.com/hold"]));
    assert!(cluster.pod("a").is_some());
}

#[test]
fn orphan_is_adopted_once() {
    let mut cluster = cluster();
    let set = cluster.created(replica_set("web", 1));
    let orphan = cluster.created(pod("a"));
    let adopted = cluster.patch(Kind::Pod, "default", "a", &adoption(&orphan, &set));
    let adopted = adopted.expect("nobody else has it");
    assert_eq!(
        adopted["metadata"]["ownerReferences"][0]["uid"],
        set["metadata"]["uid"]
    );
    let version = cluster.version();
    cluster
        .patch(Kind::Pod, "default", "a", &adoption(&orphan, &set))
        .expect("it is ours already");
    assert_eq!(
        cluster.version(),
        version,
        "a change of nothing is no change"
    );
}

#[test]
fn second_controller_is_refused() {
    let (mut cluster, _) = with_owned_pod();
    let other = cluster.created(replica_set("other", 1));
    let taken = cluster.pod("a").expect("it is there").clone();
    let result = cluster.patch(Kind::Pod, "default", "a", &adoption(&taken, &other));
    assert_eq!(refusal(result).0, 422);
}

#[test]
fn patch_of_another_uid_is_refused() {
    let mut cluster = cluster();
    let set = cluster.created(replica_set("web", 1));
    let mut stranger = Value::clone(&cluster.created(pod("a")));
    stranger["metadata"]["uid"] = json!("stranger");
    let result = cluster.patch(Kind::Pod, "default", "a", &adoption(&stranger, &set));
    let (code, message) = refusal(result);
    assert_eq!(code, 422);
    assert!(
        message.contains("metadata.uid: Invalid value: \"stranger\": field is immutable"),
        "{message}"
    );
}

#[test]
fn released_pod_is_an_orphan() {
    let (mut cluster, set) = with_owned_pod();
    let uid = &set["metadata"]["uid"];
    let release = json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": uid}]}});
    let released = cluster
        .patch(Kind::Pod, "default", "a", &release)
        .expect("it is there");
    assert!(released["metadata"]["ownerReferences"].is_null());
    delete_set(&mut cluster, None);
    cluster.settle();
    assert!(cluster.pod("a").is_some());
}

fn with_owned_pod() -> (Cluster, Object) {
    let mut cluster = cluster();
    let set = cluster.created(replica_set("web", 1));
    cluster.created(owned(pod("a"), &set));
    (cluster, set)
}

fn delete_set(cluster: &mut Cluster, propagation: Option<Propagation>) -> bool {
    let options = DeleteOptions {
        propagation,
        ..DeleteOptions::default()
    };
    let deletion = cluster.delete(Kind::ReplicaSet, "default", "web", &options);
    deletion.expect("it is there").gone
}

fn adoption(pod: &Value, set: &Value) -> Value {
    let owner = owned(json!({"metadata": {}}), set);
    json!({"metadata": {
        "uid": pod["metadata"]["uid"],
        "ownerReferences": owner["metadata"]["ownerReferences"],
    }})
}
