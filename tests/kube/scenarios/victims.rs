//! The victims.

use serde_json::json;
use tests::real::Attended;

use crate::{acts, objects};

#[tokio::test]
async fn the_pod_of_the_higher_cost_survives_its_restarts() {
    survives("higher-cost", [(Some("10"), 0), (Some("100"), 5)], 1).await;
}

#[tokio::test]
async fn of_equal_costs_the_pod_of_fewer_restarts_survives() {
    survives("equal-costs", [(Some("10"), 5), (Some("10"), 0)], 1).await;
}

#[tokio::test]
async fn without_costs_the_pod_of_fewer_restarts_survives() {
    survives("without-costs", [(None, 0), (None, 5)], 0).await;
}

/// Scales two ready pods with these costs and restarts down to one, and checks the survivor.
async fn survives(namespace: &str, pods_are: [(Option<&str>, u32); 2], survivor: usize) {
    let namespace = tests::or_skip!(Attended::namespace(namespace).await);
    acts::create_set(&namespace, &objects::replica_set("web", 2)).await;
    let pods = acts::pods_become(&namespace, 2).await;
    for (pod, (cost, restarts)) in pods.iter().zip(pods_are) {
        let cost = cost.map_or(json!({}), |cost| json!({objects::DELETION_COST: cost}));
        let annotated = json!({"metadata": {"annotations": cost}});
        acts::patch_pod(&namespace, pod, &annotated).await;
        let ready = objects::ready_since("2026-01-01T00:00:00Z", restarts);
        acts::set_pod_status(&namespace, pod, &ready).await;
    }
    // The controller has seen both as ready, and everything before.
    let both = json!({"replicas": 2, "readyReplicas": 2});
    acts::status_becomes(&namespace, "web", &both).await;
    acts::scale(&namespace, "web", 1).await;
    let left = acts::pods_become(&namespace, 1).await;
    assert_eq!(acts::name(&left[0]), acts::name(&pods[survivor]));
}
