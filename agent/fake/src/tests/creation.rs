//! Creating: defaults, names, validation, namespaces, quota.

use serde_json::{Value, json};

use super::{Story, cluster, owned, pod, refusal, replica_set};
use crate::{Cluster, ClusterConfig, Kind, NAMESPACE_TERMINATING};

#[test]
fn replica_set_is_born_with_what_the_server_fills_in() {
    let mut cluster = cluster();
    let mut written = replica_set("web", 0);
    written["spec"]
        .as_object_mut()
        .expect("a spec")
        .shift_remove("replicas");
    written["status"] = json!({"replicas": 7});
    let set = cluster.created(written);
    assert_eq!(set["spec"]["replicas"], 1);
    assert_eq!(set["metadata"]["namespace"], "default");
    assert_eq!(set["metadata"]["generation"], 1);
    assert_eq!(set["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(set["status"], json!({"replicas": 0}));
    let template = &set["spec"]["template"]["spec"];
    assert_eq!(template["restartPolicy"], "Always");
    assert_eq!(template["containers"][0]["imagePullPolicy"], "IfNotPresent");
}

#[test]
fn unknown_fields_of_a_pod_stay_as_written() {
    let mut cluster = cluster();
    let mut written = pod("a");
    written["spec"]["quantumEntanglement"] = json!({"with": ["b", 7, null]});
    written["spec"]["containers"][0]["env"] = json!([{"name": "X", "value": "1"}]);
    let pod = cluster.created(written.clone());
    assert_eq!(
        pod["spec"]["quantumEntanglement"],
        written["spec"]["quantumEntanglement"]
    );
    assert_eq!(
        pod["spec"]["containers"][0]["env"],
        written["spec"]["containers"][0]["env"]
    );
}

#[test]
fn uids_and_made_up_names_come_from_the_seed() {
    let birth = |seed| {
        let mut cluster = Cluster::new(ClusterConfig {
            seed,
            ..ClusterConfig::default()
        });
        let mut written = pod("");
        written["metadata"] = json!({"generateName": "web-"});
        let pod = cluster.created(written);
        (
            pod["metadata"]["uid"].clone(),
            pod["metadata"]["name"].clone(),
        )
    };
    assert_eq!(birth(1), birth(1));
    assert_ne!(birth(1), birth(2));
}

#[test]
fn made_up_name_keeps_58_characters_of_its_base() {
    let mut cluster = cluster();
    let mut written = pod("");
    written["metadata"] = json!({"generateName": format!("{}-", "n".repeat(100))});
    let pod = cluster.created(written);
    let name = pod["metadata"]["name"].as_str().expect("a name");
    assert_eq!(name.len(), 63);
    assert!(name.starts_with(&"n".repeat(58)));
}

#[test]
fn name_that_is_there_already_is_refused() {
    let mut cluster = cluster();
    cluster.created(pod("a"));
    let (code, message) = refusal(cluster.create(pod("a")));
    assert_eq!((code, message.as_str()), (409, "pods \"a\" already exists"));
}

#[test]
fn name_wins_over_its_base() {
    let mut cluster = cluster();
    let mut written = pod("web-bcdfg");
    written["metadata"]["generateName"] = json!("web-");
    assert_eq!(cluster.created(written)["metadata"]["name"], "web-bcdfg");
}

#[test]
fn missing_namespace_is_not_found() {
    let mut cluster = cluster();
    let mut written = pod("a");
    written["metadata"]["namespace"] = json!("nowhere");
    let (code, message) = refusal(cluster.create(written));
    assert_eq!(
        (code, message.as_str()),
        (404, "namespaces \"nowhere\" not found")
    );
}

#[test]
fn namespace_that_is_going_takes_nothing_in() {
    let mut cluster = cluster();
    cluster.created(json!({"kind": "Namespace", "metadata": {"name": "team"}}));
    cluster
        .delete(Kind::Namespace, "", "team", &Default::default())
        .expect("it may go");
    let mut written = pod("a");
    written["metadata"]["namespace"] = json!("team");
    let error = cluster.create(written).expect_err("the namespace is going");
    assert_eq!((error.code, error.reason.as_str()), (403, "Forbidden"));
    assert_eq!(error.causes, [NAMESPACE_TERMINATING]);
    assert_eq!(
        error.message,
        "pods \"a\" is forbidden: unable to create new content in namespace team because it is being terminated"
    );
}

#[test]
fn quota_refuses_one_pod_too_many_in_kubernetes_words() {
    let mut cluster = with_quota(2);
    cluster.created(pod("a"));
    cluster.created(pod("b"));
    let error = cluster.create(pod("c")).expect_err("the quota is used up");
    assert_eq!((error.code, error.causes.len()), (403, 0));
    assert_eq!(
        error.message,
        "pods \"c\" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2"
    );
    let quota = cluster
        .peek(Kind::ResourceQuota, "default", "compute")
        .expect("it is there");
    assert_eq!(quota["status"]["used"]["pods"], "2");
}

#[test]
fn quota_forgets_pods_that_ended_or_went() {
    let mut cluster = with_quota(2);
    cluster.created(pod("a"));
    cluster.created(pod("b"));
    cluster
        .fail_pod("default", "a", "Evicted")
        .expect("it is there");
    cluster.created(pod("c"));
    cluster.remove_pod_now("default", "b").expect("it is there");
    cluster.created(pod("d"));
    assert_eq!(refusal(cluster.create(pod("e"))).0, 403);
}

#[test]
fn raised_quota_lets_pods_in_again() {
    let mut cluster = with_quota(0);
    assert_eq!(refusal(cluster.create(pod("a"))).0, 403);
    let raise = json!({"spec": {"hard": {"pods": "1"}}});
    cluster
        .patch(Kind::ResourceQuota, "default", "compute", &raise)
        .expect("it may be raised");
    cluster.created(pod("a"));
}

#[test]
fn full_quota_answers_before_a_taken_name() {
    let mut cluster = with_quota(1);
    cluster.created(pod("a"));
    assert_eq!(refusal(cluster.create(pod("a"))).0, 403);
}

#[test]
fn pod_without_containers_or_with_two_controllers_is_invalid() {
    let mut cluster = cluster();
    let mut bare = pod("a");
    bare["spec"] = json!({});
    let (code, message) = refusal(cluster.create(bare));
    assert_eq!(
        (code, message.as_str()),
        (422, "Pod \"a\" is invalid: spec.containers: Required value")
    );
    let owner =
        |name: &str| json!({"kind": "ReplicaSet", "name": name, "uid": name, "controller": true});
    let mut twice = pod("a");
    twice["metadata"]["ownerReferences"] = json!([owner("x"), owner("y")]);
    let (code, message) = refusal(cluster.create(twice));
    assert_eq!(code, 422);
    assert!(
        message.contains("Only one reference can have Controller set to true"),
        "{message}"
    );
}

#[test]
fn names_labels_and_deletion_costs_are_checked() {
    let mut cluster = cluster();
    assert_eq!(refusal(cluster.create(pod("Upper"))).0, 422);
    let mut bad_label = pod("a");
    bad_label["metadata"]["labels"] = json!({"a b": "c"});
    assert_eq!(refusal(cluster.create(bad_label)).0, 422);
    let mut bad_cost = pod("a");
    bad_cost["metadata"]["annotations"] =
        json!({"controller.kubernetes.io/pod-deletion-cost": "text"});
    let (code, message) = refusal(cluster.create(bad_cost));
    assert_eq!(code, 422);
    assert!(message.ends_with("must be a 32bit integer"), "{message}");
}

#[test]
fn replica_set_must_select_its_own_template_and_count_from_zero() {
    let mut cluster = cluster();
    let broken: [(&str, Value); 6] = [
        ("/spec/template/metadata/labels/app", json!("other")),
        ("/spec/replicas", json!(-1)),
        ("/spec/selector", json!({})),
        ("/spec/selector/matchLabels/app", json!("-")),
        ("/spec/template/spec/containers", json!([])),
        ("/metadata/name", json!("_")),
    ];
    for (field, value) in broken {
        let mut written = replica_set("web", 1);
        *written.pointer_mut(field).expect("the field is there") = value;
        assert_eq!(refusal(cluster.create(written)).0, 422, "{field}");
    }
    let mut job_like = replica_set("web", 1);
    job_like["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    assert_eq!(refusal(cluster.create(job_like)).0, 422);
}

#[test]
fn objects_of_the_wrong_shape_are_refused_and_never_stored() {
    let mut cluster = cluster();
    let before = cluster.version();
    for odd in [
        json!(null),
        json!([]),
        json!("Pod"),
        json!({"kind": "Deployment", "metadata": {"name": "a"}}),
        json!({"kind": "Pod", "apiVersion": "v2", "metadata": {"name": "a"}}),
        json!({"kind": "Pod", "metadata": 5}),
        json!({"kind": "Pod", "metadata": {"name": "a", "labels": []}}),
        json!({"kind": "Pod", "metadata": {"name": "a", "ownerReferences": {}}}),
        json!({"kind": "Pod", "metadata": {"name": "a", "namespace": false}}),
        json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": "x"}),
        json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": ["x", 1]}}),
        json!({"kind": "ReplicaSet", "metadata": {"name": "a"}, "spec": {"template": []}}),
    ] {
        let error = cluster.create(odd.clone()).expect_err("it is no object");
        assert!(matches!(error.code, 400 | 422), "{odd}: {error}");
    }
    assert_eq!(cluster.version(), before);
}

#[test]
fn restored_objects_keep_uid_times_status_and_node() {
    let mut cluster = cluster();
    let mut set = replica_set("web", 1);
    set["metadata"]["uid"] = json!("set-uid");
    set["status"] = json!({"replicas": 1, "observedGeneration": 4});
    set["metadata"]["generation"] = json!(4);
    let set = cluster.restore(set).expect("it is valid");
    let mut written = owned(pod("a"), &set);
    written["metadata"]["creationTimestamp"] = json!("2020-02-02T02:02:02Z");
    written["spec"]["nodeName"] = json!("elsewhere");
    written["status"] = json!({"phase": "Running"});
    let pod = cluster.restore(written).expect("it is valid");
    assert_eq!(set["metadata"]["uid"], "set-uid");
    assert_eq!(set["status"]["observedGeneration"], 4);
    assert_eq!(pod["metadata"]["creationTimestamp"], "2020-02-02T02:02:02Z");
    assert!(cluster.peek(Kind::Node, "", "elsewhere").is_some());
    cluster.settle();
    let pod = cluster.pod("a").expect("its owner is there, so it stays");
    assert_eq!(pod["status"]["conditions"][1]["type"], "Ready");
    assert_eq!(pod["status"]["conditions"][1]["status"], "True");
}

fn with_quota(pods: u32) -> Cluster {
    let mut cluster = cluster();
    cluster.created(json!({
        "kind": "ResourceQuota",
        "metadata": {"name": "compute"},
        "spec": {"hard": {"pods": pods.to_string()}},
    }));
    cluster
}

#[test]
fn numbers_that_are_none_are_refused_by_what_they_should_be() {
    let whole = "must be a whole number of 32 bits, without quotes";
    let negative = "must be greater than or equal to 0";
    let cases = [
        (json!("3"), whole),
        (json!(2.5), whole),
        (json!(3_000_000_000_u64), whole),
        (json!(-1), negative),
    ];
    for (replicas, why) in cases {
        let mut cluster = cluster();
        let mut set = replica_set("web", 1);
        set["spec"]["replicas"] = replicas.clone();
        let refused = cluster.create(set).expect_err("it is no number of pods");
        let words = format!("spec.replicas: Invalid value: {replicas}: {why}");
        assert!(refused.message.contains(&words), "{}", refused.message);
    }
}
