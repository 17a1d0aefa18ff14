//! Annotations of preferences on a Deployment, with upstream's Deployment controller.

use serde_json::{Value, json};
use tests::real::{Agent, ApiServer, ControllerManager, DecisionServer, Namespace, User};

use crate::{acts, lasting::is_explained, objects};

const HELD: &str = "example.com/held";

fn deployment() -> Value {
    let mut of = objects::replica_set("web", 2);
    of["kind"] = "Deployment".into();
    of["metadata"]["annotations"] =
        json!({"decree.dev/create": "after-termination", "decree.dev/keep-ended": "1"});
    of
}

async fn fail(namespace: &Namespace, pod: &Value) {
    acts::set_pod_status(namespace, pod, &json!({"phase": "Failed"})).await;
}

fn has_ended(pod: &&Value) -> bool {
    pod["status"]["phase"] == "Failed"
}

/// No kubelet runs, so a finalizer keeps the pod that is being deleted, and the test says when it has ended.
#[tokio::test(flavor = "multi_thread")]
async fn deployment_hands_down_what_its_pods_wait_for_and_how_many_ended_ones_stay() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, "preferences").await;
    let server = DecisionServer::start();
    let flags = ["--leader-elect=false", "--namespace", "preferences"];
    let _agent = Agent::start(&server, &cluster.kubeconfig(User::Admin), &flags);
    let _controller = ControllerManager::start(cluster, &["--controllers=deployment-controller"]);
    let path = namespace.path("/apis/apps/v1", "deployments", "");
    namespace.make(&path, &deployment()).await;
    let pods = acts::pods_become(&namespace, 2).await;
    let set = pods[0]["metadata"]["ownerReferences"][0]["name"].as_str();
    let set = format!("preferences/{}", set.expect("it has an owner"));
    let held = json!({"metadata": {"finalizers": [HELD]}});
    acts::patch_pod(&namespace, &pods[0], &held).await;
    acts::delete_pod(&namespace, &pods[0]).await;
    let waits = "Cause:       Creates wait: 1 pod being deleted";
    is_explained(&server, &set, waits).await;
    assert_eq!(acts::pods_become(&namespace, 2).await.len(), 2);
    fail(&namespace, &pods[0]).await;
    acts::pods_become(&namespace, 3).await;
    let free = json!({"metadata": {"finalizers": null}});
    acts::patch_pod(&namespace, &pods[0], &free).await;

    for ended in acts::pods_become(&namespace, 2).await {
        fail(&namespace, &ended).await;
    }
    acts::pods_become_so(&namespace, "two of three active", |pods| {
        (pods.len(), pods.iter().filter(has_ended).count()) == (3, 1)
    })
    .await;

    let misspelt = json!({"metadata": {"annotations": {"decree.dev/create": "after"}}});
    let path = namespace.path("/apis/apps/v1", "deployments", "web");
    namespace.change(&path, &misspelt).await;
    let ignored =
        "Ignored:     decree.dev/create: \"after\" is none of: after-termination, kubernetes";
    is_explained(&server, &set, ignored).await;
    is_explained(&server, &set, "Prefers:     keep-ended: 1").await;
}
