//! Deleting: grace, finalizers, preconditions, namespaces.

use serde_json::json;

use super::{Story, cluster, pod, refusal, replica_set};
use crate::{Cluster, DeleteOptions, EventKind, Kind, WatchPoll};

#[test]
fn pod_without_a_node_goes_at_once_with_one_event() {
    let mut cluster = cluster();
    cluster.created(pod("a"));
    let watch = cluster
        .watch(Kind::Pod, cluster.version())
        .expect("the version is the newest");
    let deletion = cluster
        .drop_pod("a", &DeleteOptions::default())
        .expect("it is there");
    assert!(deletion.gone);
    let WatchPoll::Event(event) = cluster.poll_watch(watch) else {
        panic!("the deletion is delivered")
    };
    assert_eq!(event.kind, EventKind::Deleted);
    assert!(event.object["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(
        event.object["metadata"]["resourceVersion"],
        cluster.version().to_string()
    );
    assert_eq!(cluster.poll_watch(watch), WatchPoll::Pending);
}

#[test]
fn running_pod_is_given_its_grace() {
    let mut cluster = running();
    let deletion = cluster
        .drop_pod("a", &DeleteOptions::default())
        .expect("it is there");
    assert!(!deletion.gone);
    let metadata = &deletion.object["metadata"];
    assert_eq!(metadata["deletionTimestamp"], "2026-01-01T00:00:30Z");
    assert_eq!(metadata["deletionGracePeriodSeconds"], 30);
    assert_eq!(metadata["generation"], 2);
    cluster.pass(499);
    assert!(cluster.pod("a").is_some());
    cluster.pass(1);
    assert!(cluster.pod("a").is_none());
}

#[test]
fn second_deletion_is_accepted_and_changes_nothing() {
    let mut cluster = running();
    cluster
        .drop_pod("a", &DeleteOptions::default())
        .expect("it is there");
    let version = cluster.version();
    let again = cluster
        .drop_pod("a", &DeleteOptions::default())
        .expect("it is still there");
    assert!(!again.gone);
    assert_eq!(cluster.version(), version);
}

#[test]
fn ended_pod_goes_at_once() {
    let mut cluster = running();
    cluster
        .fail_pod("default", "a", "Evicted")
        .expect("it is there");
    assert!(
        cluster
            .drop_pod("a", &DeleteOptions::default())
            .expect("it is there")
            .gone
    );
}

#[test]
fn stopped_pod_shows_its_end_before_it_goes() {
    let mut cluster = running();
    cluster
        .drop_pod("a", &DeleteOptions::default())
        .expect("it is there");
    let watch = cluster
        .watch(Kind::Pod, cluster.version())
        .expect("the version is the newest");
    cluster.settle();
    let WatchPoll::Event(last) = cluster.poll_watch(watch) else {
        panic!("the last status is delivered")
    };
    assert_eq!(
        (last.kind, &last.object["status"]["phase"]),
        (EventKind::Modified, &json!("Succeeded"))
    );
    let WatchPoll::Event(gone) = cluster.poll_watch(watch) else {
        panic!("the deletion is delivered")
    };
    assert_eq!(gone.kind, EventKind::Deleted);
}

#[test]
fn finalizer_holds_a_pod_until_it_is_taken_off() {
    let mut cluster = cluster();
    let mut held = pod("a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.created(held);
    let deletion = cluster
        .drop_pod("a", &DeleteOptions::default())
        .expect("it is there");
    assert!(!deletion.gone && deletion.object["metadata"]["deletionTimestamp"].is_string());
    cluster.settle();
    assert!(cluster.pod("a").is_some());
    let fresh = json!({"metadata": {"finalizers": ["example.com/late"]}});
    assert_eq!(
        refusal(cluster.patch(Kind::Pod, "default", "a", &fresh)).0,
        422
    );
    let release =
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hold"]}});
    cluster
        .patch(Kind::Pod, "default", "a", &release)
        .expect("it may be released");
    assert!(cluster.pod("a").is_none());
}

#[test]
fn finalizer_outlasts_the_grace() {
    let mut cluster = running();
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    cluster
        .patch(Kind::Pod, "default", "a", &hold)
        .expect("it may be held");
    cluster
        .drop_pod("a", &DeleteOptions::default())
        .expect("it is there");
    cluster.settle();
    let held = cluster.pod("a").expect("it is held");
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(held["status"]["phase"], "Succeeded");
    let release = json!({"metadata": {"finalizers": null}});
    cluster
        .patch(Kind::Pod, "default", "a", &release)
        .expect("it may be released");
    assert!(cluster.pod("a").is_none());
}

#[test]
fn wrong_uid_or_version_spares_the_pod() {
    let mut cluster = cluster();
    let born = cluster.created(pod("a"));
    let wrong_uid = DeleteOptions {
        uid: Some("other".into()),
        ..DeleteOptions::default()
    };
    let (code, message) = refusal(cluster.drop_pod("a", &wrong_uid));
    assert_eq!(code, 409);
    assert!(
        message.contains("the UID in the precondition (other) does not match"),
        "{message}"
    );
    let old = DeleteOptions {
        resource_version: Some("1".into()),
        ..DeleteOptions::default()
    };
    assert_eq!(refusal(cluster.drop_pod("a", &old)).0, 409);
    let right = DeleteOptions {
        uid: born["metadata"]["uid"].as_str().map(str::to_owned),
        resource_version: born["metadata"]["resourceVersion"]
            .as_str()
            .map(str::to_owned),
        ..DeleteOptions::default()
    };
    assert!(cluster.drop_pod("a", &right).expect("both are right").gone);
}

#[test]
fn unknown_names_are_not_found() {
    let mut cluster = cluster();
    let nothing = DeleteOptions::default();
    let (code, message) = refusal(cluster.drop_pod("a", &nothing));
    assert_eq!((code, message.as_str()), (404, "pods \"a\" not found"));
    let (code, message) = refusal(cluster.delete(Kind::ReplicaSet, "default", "a", &nothing));
    assert_eq!(
        (code, message.as_str()),
        (404, "replicasets.apps \"a\" not found")
    );
}

#[test]
fn namespace_goes_after_all_that_is_in_it() {
    let mut cluster = cluster();
    cluster.created(json!({"kind": "Namespace", "metadata": {"name": "team"}}));
    for mut object in [replica_set("web", 1), pod("a")] {
        object["metadata"]["namespace"] = json!("team");
        cluster.created(object);
    }
    cluster.settle();
    let deletion = cluster.delete(Kind::Namespace, "", "team", &DeleteOptions::default());
    assert_eq!(
        deletion.expect("it is there").object["status"]["phase"],
        "Terminating"
    );
    cluster.pass(250);
    assert!(cluster.peek(Kind::ReplicaSet, "team", "web").is_none());
    assert!(
        cluster
            .peek(Kind::Pod, "team", "a")
            .is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    );
    cluster.settle();
    assert!(cluster.peek(Kind::Pod, "team", "a").is_none());
    assert!(cluster.peek(Kind::Namespace, "", "team").is_none());
}

#[test]
fn namespace_default_stays() {
    let nothing = DeleteOptions::default();
    assert_eq!(
        refusal(cluster().delete(Kind::Namespace, "", "default", &nothing)).0,
        403
    );
}

fn running() -> Cluster {
    let mut cluster = cluster();
    cluster.created(pod("a"));
    cluster.settle();
    cluster
}
