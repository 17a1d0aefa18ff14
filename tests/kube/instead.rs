//! A replacement of the ReplicaSet controller of kube-controller-manager, whose other controllers keep running.

use std::time::Instant;

use serde_json::{Value, json};
use tests::real::{ApiServer, Attended, ControllerManager, LOOK_EVERY, Namespace, PATIENCE, Patch};
use tokio::time;

use crate::{acts, objects};

const REPLICAS: u32 = 3;

#[tokio::test]
async fn a_deployment_rolls_out_through_our_replica_sets_and_is_collected() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let attended = Attended::of(cluster).await;
    let _others = ControllerManager::start_others(attended.cluster());
    let namespace = Namespace::create(attended.cluster().admin().await, "instead").await;
    let (api, path) = (namespace.api(), deployment_path(&namespace));

    let deployments = namespace.path("/apis/apps/v1", "deployments", "");
    let created = api.create(&deployments, &deployment()).await;
    created.expect("it is valid");
    rolls_out(&namespace).await;
    let first = namespace.pods().await.expect("they can be listed");

    let change = json!({"spec": {"template": {"metadata": {"annotations": {"release": "2"}}}}});
    let changed = api.patch(&path, Patch::Merge, &change).await;
    changed.expect("it is there");
    rolls_out(&namespace).await;
    let second = namespace.pods().await.expect("they can be listed");
    let known = acts::names(&first);
    let mut kept = acts::names(&second).into_iter();
    assert!(kept.all(|name| !known.contains(&name)), "{known:?} is left");
    for pod in first.iter().chain(&second) {
        let makers = pod["metadata"]["managedFields"].as_array();
        let mut makers = makers.expect("it tells who wrote").iter();
        let ours = makers.any(|maker| maker["manager"] == "decree-agent");
        assert!(ours, "made by another: {pod}");
    }

    let options = json!({"propagationPolicy": "Foreground"});
    let deleted = api.delete(&path, &options).await;
    deleted.expect("it is there");
    let none = |list: &Value| list["items"].as_array()?.is_empty().then_some(());
    for path in [deployments, namespace.replica_set(""), namespace.pod("")] {
        api.wait_for("collected", &path, none).await;
    }
}

fn deployment_path(namespace: &Namespace) -> String {
    namespace.path("/apis/apps/v1", "deployments", "web")
}

/// A Deployment that never has fewer ready pods than desired.
fn deployment() -> Value {
    let set = objects::replica_set("web", REPLICAS);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": set["metadata"],
        "spec": {
            "replicas": REPLICAS,
            "selector": set["spec"]["selector"],
            "template": set["spec"]["template"],
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        },
    })
}

/// Acts as kubelets until the Deployment has rolled out, without pods of the old template.
async fn rolls_out(namespace: &Namespace) {
    let until = Instant::now() + PATIENCE;
    let mut looks = time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        for pod in namespace.pods().await.expect("they can be listed") {
            run(namespace, &pod).await;
        }
        let deployment = namespace.api().get(&deployment_path(namespace)).await;
        let deployment = deployment.expect("it is there");
        let status = &deployment["status"];
        let observed = status["observedGeneration"] == deployment["metadata"]["generation"];
        let counts = ["replicas", "updatedReplicas", "availableReplicas"];
        if observed && counts.iter().all(|count| status[count] == REPLICAS) {
            return;
        }
        assert!(Instant::now() < until, "no roll-out: {deployment:#}");
    }
}

/// Makes an existing pod running and ready.
async fn run(namespace: &Namespace, pod: &Value) {
    let is_new =
        pod["status"]["phase"] == "Pending" && pod["metadata"]["deletionTimestamp"].is_null();
    if is_new {
        let path = format!("{}/status", namespace.pod(acts::name(pod)));
        let running = json!({"status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }});
        // A pod that is deleted at this moment needs no kubelet.
        let _ = namespace.api().patch(&path, Patch::Merge, &running).await;
    }
}
