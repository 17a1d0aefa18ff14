//! The number of pods.

use serde_json::{Value, json};
use tests::real::{Attended, Sightings};

use crate::{acts, objects};

#[tokio::test]
async fn pods_follow_each_change_of_replicas() {
    let namespace = tests::or_skip!(Attended::namespace("each-change").await);
    let set = acts::create_set(&namespace, &objects::replica_set("web", 2)).await;
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": set["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    for pod in acts::pods_become(&namespace, 2).await {
        assert_eq!(pod["metadata"]["ownerReferences"], owner);
        assert_eq!(pod["metadata"]["labels"], objects::labels());
        assert!(acts::name(&pod).starts_with("web-"), "{pod}");
    }
    for (replicas, count) in [(3, 3), (0, 0), (2, 2)] {
        acts::scale(&namespace, "web", replicas).await;
        acts::status_becomes(&namespace, "web", &json!({"replicas": replicas})).await;
        acts::pods_become(&namespace, count).await;
    }
}

#[tokio::test]
async fn a_change_of_the_template_is_observed_and_no_pod_is_touched() {
    let namespace = tests::or_skip!(Attended::namespace("template-changes").await);
    acts::create_set(&namespace, &objects::replica_set("web", 2)).await;
    let before = acts::status_becomes(&namespace, "web", &json!({"replicas": 2})).await;
    let pods = acts::pods_become(&namespace, 2).await;
    let annotated =
        json!({"spec": {"template": {"metadata": {"annotations": {"example.com/round": "2"}}}}});
    acts::patch_set(&namespace, "web", &annotated).await;
    let after = acts::status_becomes(&namespace, "web", &json!({"replicas": 2})).await;
    let generation = |set: &Value| set["metadata"]["generation"].as_i64();
    assert!(generation(&after) > generation(&before));
    let observed = &after["status"]["observedGeneration"];
    assert_eq!(*observed, after["metadata"]["generation"]);
    assert_eq!(acts::pods_become(&namespace, 2).await, pods);
}

#[tokio::test]
async fn the_scale_subresource_scales() {
    let namespace = tests::or_skip!(Attended::namespace("scale-subresource").await);
    acts::create_set(&namespace, &objects::replica_set("web", 1)).await;
    acts::status_becomes(&namespace, "web", &json!({"replicas": 1})).await;
    let path = format!("{}/scale", namespace.replica_set("web"));
    for replicas in [3, 0] {
        let scale = namespace.api().get(&path).await;
        let mut scale = scale.expect("a ReplicaSet has a scale");
        scale["spec"]["replicas"] = replicas.into();
        let replaced = namespace.api().replace(&path, &scale).await;
        replaced.expect("nobody else writes the spec");
        acts::status_becomes(&namespace, "web", &json!({"replicas": replicas})).await;
        let scale = namespace.api().get(&path).await.expect("it is there");
        let status = json!({"replicas": replicas, "selector": "app=web"});
        assert_eq!(scale["status"], status);
    }
    acts::pods_become(&namespace, 0).await;
}

#[tokio::test]
async fn two_replica_sets_of_one_selector_share_nothing() {
    let namespace = tests::or_skip!(Attended::namespace("one-selector").await);
    let sightings = Sightings::begin(&namespace);
    let wanted = [("one", 1), ("two", 2)];
    for (name, replicas) in wanted {
        acts::create_set(&namespace, &objects::replica_set(name, replicas)).await;
    }
    for _round in 0..2 {
        for (name, replicas) in wanted {
            let status = json!({"replicas": replicas, "fullyLabeledReplicas": replicas});
            acts::status_becomes(&namespace, name, &status).await;
            // Makes the controller sync both again.
            acts::patch_set(&namespace, name, &json!({"spec": {"minReadySeconds": 1}})).await;
        }
    }
    sightings.reach(3).await;
    assert_eq!((sightings.count(), sightings.gone()), (3, Vec::new()));
}

#[tokio::test]
async fn pods_that_terminate_or_failed_are_replaced_and_left_alone() {
    let namespace = tests::or_skip!(Attended::namespace("terminate-or-failed").await);
    acts::create_set(&namespace, &objects::replica_set("web", 2)).await;
    acts::status_becomes(&namespace, "web", &json!({"replicas": 2})).await;
    let pods = acts::pods_become(&namespace, 2).await;
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    acts::patch_pod(&namespace, &pods[0], &held).await;
    acts::delete_pod(&namespace, &pods[0]).await;
    acts::set_pod_status(&namespace, &pods[1], &json!({"phase": "Failed"})).await;
    let four = acts::pods_become(&namespace, 4).await;
    let one = json!({"replicas": 2, "terminatingReplicas": 1});
    acts::status_becomes(&namespace, "web", &one).await;
    for pod in &pods {
        assert!(acts::names(&four).contains(&acts::name(pod)));
    }
    let free = json!({"metadata": {"finalizers": null}});
    acts::patch_pod(&namespace, &pods[0], &free).await;
    acts::pods_become(&namespace, 3).await;
}
