//! Patches, scales and statuses.

use serde_json::{Value, json};

use super::{Story, cluster, pod, refusal, replica_set};
use crate::{Cluster, Kind};

#[test]
fn object_that_is_replaced_unchecked_is_stored_as_it_is() {
    let mut cluster = cluster();
    let set = cluster.created(replica_set("web", 1));
    let mut ill = Value::clone(&set);
    ill["spec"]["template"]["metadata"]["labels"] = json!({"app": "another"});
    let stored = cluster.replace_unchecked(ill.clone());
    let stored = stored.expect("it is there");
    assert_eq!(stored["spec"], ill["spec"]);
    assert_ne!(
        stored["metadata"]["resourceVersion"],
        set["metadata"]["resourceVersion"]
    );
    let missing = cluster.replace_unchecked(replica_set("none", 1));
    assert_eq!(refusal(missing).0, 404);
}

#[test]
fn scale_is_a_new_generation() {
    let mut cluster = with_set();
    let scaled = cluster
        .scale("default", "web", 3)
        .expect("3 is a number of replicas");
    assert_eq!(
        (
            &scaled["spec"]["replicas"],
            &scaled["metadata"]["generation"]
        ),
        (&json!(3), &json!(2))
    );
    let same = cluster
        .scale("default", "web", 3)
        .expect("3 is a number of replicas");
    assert_eq!(same["metadata"]["generation"], 2);
    assert_eq!(refusal(cluster.scale("default", "web", -1)).0, 422);
    assert_eq!(refusal(cluster.scale("default", "none", 1)).0, 404);
}

#[test]
fn labels_of_a_replica_set_are_no_new_generation() {
    let mut cluster = with_set();
    let patch = json!({"metadata": {"labels": {"tier": "a"}}});
    let labelled = cluster
        .patch(Kind::ReplicaSet, "default", "web", &patch)
        .expect("a valid label");
    assert_eq!(labelled["metadata"]["generation"], 1);
    assert_eq!(labelled["metadata"]["labels"]["tier"], "a");
}

#[test]
fn selector_can_not_change() {
    let mut cluster = with_set();
    let patch = json!({"spec": {
        "selector": {"matchLabels": {"tier": "a"}},
        "template": {"metadata": {"labels": {"tier": "a"}}},
    }});
    let (code, message) = refusal(cluster.patch(Kind::ReplicaSet, "default", "web", &patch));
    assert_eq!(code, 422);
    assert!(message.ends_with("field is immutable"), "{message}");
}

#[test]
fn template_can_change() {
    let mut cluster = with_set();
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}});
    let changed = cluster
        .patch(Kind::ReplicaSet, "default", "web", &patch)
        .expect("a valid template");
    let containers = &changed["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().map(Vec::len), Some(1));
    assert_eq!(containers[0]["image"], "web:2");
    assert_eq!(changed["metadata"]["generation"], 2);
}

#[test]
fn spec_of_a_pod_can_not_change_but_for_images() {
    let mut cluster = cluster();
    cluster.created(pod("a"));
    let moved = json!({"spec": {"nodeName": "node-b"}});
    assert_eq!(
        refusal(cluster.patch(Kind::Pod, "default", "a", &moved)).0,
        422
    );
    let odd = json!({"spec": "x"});
    assert_eq!(
        refusal(cluster.patch(Kind::Pod, "default", "a", &odd)).0,
        400
    );
    let image = json!({"spec": {"containers": [{"name": "main", "image": "web:2"}]}});
    cluster
        .patch(Kind::Pod, "default", "a", &image)
        .expect("an image may change");
}

#[test]
fn patch_leaves_the_status_and_the_identity_alone() {
    let mut cluster = with_set();
    let patch =
        json!({"status": {"replicas": 9}, "metadata": {"generation": 99, "labels": {"a": "b"}}});
    let patched = cluster
        .patch(Kind::ReplicaSet, "default", "web", &patch)
        .expect("the rest is valid");
    assert_eq!(patched["status"]["replicas"], 0);
    assert_eq!(patched["metadata"]["generation"], 1);
    for identity in [json!({"name": "x"}), json!({"namespace": "x"}), json!(null)] {
        let result = cluster.patch(
            Kind::ReplicaSet,
            "default",
            "web",
            &json!({"metadata": identity}),
        );
        assert!(matches!(refusal(result).0, 409 | 422), "{identity}");
    }
}

#[test]
fn patch_on_an_older_version_conflicts() {
    let mut cluster = with_set();
    let patch = json!({"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}});
    assert_eq!(
        refusal(cluster.patch(Kind::ReplicaSet, "default", "web", &patch)).0,
        409
    );
}

#[test]
fn status_is_written_without_touching_the_spec() {
    let mut cluster = with_set();
    let mut sent = seen(&cluster);
    sent["spec"]["replicas"] = json!(50);
    sent["status"] =
        json!({"replicas": 1, "readyReplicas": 0, "terminatingReplicas": 0, "conditions": []});
    let written = cluster.update_status(&sent).expect("a valid status");
    assert_eq!(written["spec"]["replicas"], 1);
    assert_eq!(written["metadata"]["generation"], 1);
    assert_eq!(
        written["status"],
        json!({"replicas": 1, "terminatingReplicas": 0})
    );
}

#[test]
fn same_status_again_keeps_the_version() {
    let mut cluster = with_set();
    let mut sent = seen(&cluster);
    sent["status"] = json!({"replicas": 1});
    let first = cluster.update_status(&sent).expect("a valid status");
    let version = cluster.version();
    let second = cluster.update_status(&first).expect("the same status");
    assert_eq!((second, cluster.version()), (first, version));
}

#[test]
fn status_on_an_older_version_or_another_uid_conflicts() {
    let mut cluster = with_set();
    let mut sent = seen(&cluster);
    sent["status"] = json!({"replicas": 1});
    cluster.update_status(&sent).expect("a valid status");
    let (code, message) = refusal(cluster.update_status(&sent));
    assert_eq!(code, 409);
    assert!(
        message.contains("please apply your changes to the latest version and try again"),
        "{message}"
    );
    let mut stranger = seen(&cluster);
    stranger["metadata"]["uid"] = json!("stranger");
    assert_eq!(refusal(cluster.update_status(&stranger)).0, 409);
}

#[test]
fn impossible_counts_are_invalid() {
    let mut cluster = with_set();
    for status in [
        json!({"replicas": -1}),
        json!({"replicas": 1, "readyReplicas": 2}),
        json!({"replicas": 1, "fullyLabeledReplicas": 2}),
        json!({"replicas": 2, "readyReplicas": 1, "availableReplicas": 2}),
        json!({"replicas": 2, "terminatingReplicas": -1}),
        json!({"replicas": "2"}),
    ] {
        let mut sent = seen(&cluster);
        sent["status"] = status.clone();
        assert_eq!(refusal(cluster.update_status(&sent)).0, 422, "{status}");
    }
}

#[test]
fn labels_of_a_pod_move_it_out_of_a_selector_and_back() {
    let mut cluster = cluster();
    cluster.created(pod("a"));
    let out = json!({"metadata": {"labels": {"app": "quarantine", "old": "x"}}});
    cluster
        .patch(Kind::Pod, "default", "a", &out)
        .expect("valid labels");
    let back = json!({"metadata": {"labels": {"app": "web", "old": null}}});
    let pod = cluster
        .patch(Kind::Pod, "default", "a", &back)
        .expect("valid labels");
    assert_eq!(pod["metadata"]["labels"], json!({"app": "web"}));
}

fn with_set() -> Cluster {
    let mut cluster = cluster();
    cluster.created(replica_set("web", 1));
    cluster
}

fn seen(cluster: &Cluster) -> Value {
    let set = cluster.peek(Kind::ReplicaSet, "default", "web");
    Value::clone(set.expect("it is there"))
}
