//! The life of a pod: scheduler, kubelet, and the loss of a node.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Story, cluster, pod, refusal};
use crate::{Cluster, ClusterConfig, Kind, Kubelet, NodeLoss};

#[test]
fn pod_is_assigned_then_runs_then_is_ready() {
    let mut cluster = cluster();
    cluster.created(pod("a"));
    assert_eq!(seen(&cluster, "a"), ("Pending", "", None));
    cluster.pass(20);
    assert_eq!(seen(&cluster, "a"), ("Pending", "node-a", None));
    cluster.pass(200);
    assert_eq!(seen(&cluster, "a"), ("Running", "node-a", Some("False")));
    cluster.pass(300);
    assert_eq!(seen(&cluster, "a"), ("Running", "node-a", Some("True")));
    assert_eq!(cluster.next_due(), None);
}

#[test]
fn container_statuses_are_written_as_kubernetes_does() {
    let mut cluster = cluster();
    let mut written = pod("a");
    written["spec"]["initContainers"] = json!([
        {"name": "setup", "image": "s"},
        {"name": "mesh", "image": "m", "restartPolicy": "Always"},
    ]);
    cluster.created(written);
    cluster.settle();
    let status = &cluster.pod("a").expect("it is there")["status"];
    assert_eq!(status["containerStatuses"][0]["name"], "main");
    assert_eq!(status["containerStatuses"][0]["ready"], true);
    assert_eq!(status["containerStatuses"][0]["restartCount"], 0);
    assert_eq!(
        status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"],
        0
    );
    assert!(status["initContainerStatuses"][1]["state"]["running"].is_object());
    assert_eq!(status["startTime"], "2026-01-01T00:00:00Z");
}

#[test]
fn pods_spread_over_nodes() {
    let mut cluster = cluster();
    for name in ["a", "b", "c"] {
        cluster.created(pod(name));
    }
    cluster.settle();
    let mut nodes: Vec<_> = ["a", "b", "c"].map(|name| seen(&cluster, name).1).to_vec();
    nodes.sort_unstable();
    assert_eq!(nodes, ["node-a", "node-b", "node-c"]);
}

#[test]
fn new_node_takes_pods_that_found_none() {
    let mut cluster = Cluster::new(ClusterConfig {
        nodes: Vec::new(),
        ..ClusterConfig::default()
    });
    cluster.created(pod("a"));
    cluster.settle();
    assert_eq!(seen(&cluster, "a"), ("Pending", "", None));
    let condition = &cluster.pod("a").expect("it waits")["status"]["conditions"][0];
    assert_eq!(condition["status"], "False");
    assert_eq!(condition["reason"], "Unschedulable");
    cluster.created(json!({"kind": "Node", "metadata": {"name": "late"}}));
    cluster.settle();
    assert_eq!(seen(&cluster, "a"), ("Running", "late", Some("True")));
}

#[test]
fn idle_kubelet_leaves_pods_to_the_test() {
    let mut cluster = Cluster::new(ClusterConfig {
        kubelet: Kubelet::idle(),
        ..ClusterConfig::default()
    });
    cluster.created(pod("a"));
    assert_eq!(cluster.next_due(), None);
    let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    cluster
        .set_pod_status("default", "a", &status)
        .expect("it is there");
    assert_eq!(seen(&cluster, "a"), ("Running", "", Some("True")));
}

#[test]
fn jitter_comes_from_the_seed() {
    let end = |seed| {
        let kubelet = Kubelet {
            jitter: Duration::from_millis(500),
            ..Kubelet::default()
        };
        let mut cluster = Cluster::new(ClusterConfig {
            seed,
            kubelet,
            ..ClusterConfig::default()
        });
        cluster.created(pod("a"));
        cluster.settle();
        cluster.now()
    };
    assert_eq!(end(1), end(1));
    assert_ne!(end(1), end(2));
}

#[test]
fn pods_of_a_lost_node_become_unknown_then_go() {
    let mut cluster = with_lost_node();
    cluster.pass(1000);
    assert_eq!(seen(&cluster, "a"), ("Unknown", "node-a", Some("False")));
    assert_eq!(
        cluster.pod("a").expect("it is there")["status"]["reason"],
        "NodeLost"
    );
    cluster.pass(1000);
    let deleting = cluster
        .pod("a")
        .is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string());
    assert!(deleting, "it is asked to go, and nobody obeys");
    cluster.pass(1000);
    assert!(cluster.pod("a").is_none());
    assert!(cluster.peek(Kind::Node, "", "node-a").is_none());
}

#[test]
fn node_that_comes_back_revives_its_pods() {
    let mut cluster = with_lost_node();
    cluster.pass(1500);
    cluster.recover_node("node-a").expect("it is there");
    cluster.settle();
    assert_eq!(seen(&cluster, "a"), ("Running", "node-a", Some("True")));
    assert!(cluster.peek(Kind::Node, "", "node-a").is_some());
}

#[test]
fn node_that_comes_back_late_stops_what_was_asked_to_go() {
    let mut cluster = with_lost_node();
    cluster.pass(2500);
    cluster.recover_node("node-a").expect("it is there");
    cluster.settle();
    assert!(cluster.pod("a").is_none());
}

#[test]
fn node_known_to_be_lost_gets_no_pods() {
    let mut cluster = with_lost_node();
    cluster.pass(1000);
    for name in ["b", "c", "d"] {
        cluster.created(pod(name));
    }
    cluster.pass(800);
    assert!(
        ["b", "c", "d"]
            .iter()
            .all(|name| !["", "node-a"].contains(&seen(&cluster, name).1))
    );
}

#[test]
fn unknown_node_or_pod_is_not_found() {
    let mut cluster = cluster();
    assert_eq!(refusal(cluster.fail_node("x")).0, 404);
    assert_eq!(refusal(cluster.recover_node("x")).0, 404);
    assert_eq!(refusal(cluster.fail_pod("default", "x", "Evicted")).0, 404);
    assert_eq!(refusal(cluster.remove_pod_now("default", "x")).0, 404);
}

fn with_lost_node() -> Cluster {
    let node_loss = NodeLoss {
        unknown_after: Duration::from_secs(1),
        evict_after: Duration::from_secs(2),
        remove_after: Duration::from_secs(3),
    };
    let mut cluster = Cluster::new(ClusterConfig {
        node_loss,
        ..ClusterConfig::default()
    });
    cluster.created(pod("a"));
    cluster.settle();
    cluster.fail_node("node-a").expect("it is there");
    cluster
}

fn seen<'a>(cluster: &'a Cluster, name: &str) -> (&'a str, &'a str, Option<&'a str>) {
    let pod = cluster.pod(name).expect("the pod is there");
    let conditions = pod["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|it| it["type"] == "Ready");
    (
        pod["status"]["phase"].as_str().unwrap_or_default(),
        pod["spec"]["nodeName"].as_str().unwrap_or_default(),
        ready.and_then(|it| it["status"].as_str()),
    )
}

#[test]
fn ready_again_has_a_new_transition_time() {
    let mut cluster = cluster();
    cluster.created(pod("a"));
    cluster.settle();
    let since = |cluster: &Cluster| -> Value {
        let conditions = cluster.pod("a").expect("it is there")["status"]["conditions"].clone();
        conditions
            .as_array()
            .into_iter()
            .flatten()
            .find(|it| it["type"] == "Ready")
            .expect("a condition")["lastTransitionTime"]
            .clone()
    };
    assert_eq!(since(&cluster), "2026-01-01T00:00:00Z");
    cluster.pass(5000);
    cluster.fail_node("node-a").expect("it is there");
    cluster.pass(40_000);
    cluster.recover_node("node-a").expect("it is there");
    cluster.settle();
    assert_eq!(since(&cluster), "2026-01-01T00:00:45Z");
}
