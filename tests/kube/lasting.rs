//! Pods that end right after their creation, on the API server.

use std::time::Instant;

use kube::core::WatchEvent;
use serde_json::{Value, json};
use tests::real::{Agent, ApiServer, DecisionServer, LOOK_EVERY, Namespace, PATIENCE, Patch, User};
use tokio::time;
use tokio_stream::StreamExt as _;

use crate::{acts, budget, objects};

/// The fate of each new pod.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// A kubelet rejects the pod.
    Fails,
    /// The pod loses its labels, as by a webhook.
    LosesLabels,
}

/// Applies the fate to each new pod, and counts the pods, while polled.
async fn meet(namespace: &Namespace, fate: Fate, count: &mut usize) {
    let api = namespace.api();
    let list = api.get(&namespace.pod("")).await.expect("it can be listed");
    // The pods from before the watch.
    for pod in list["items"].as_array().into_iter().flatten() {
        *count += 1;
        end(namespace, pod, fate).await;
    }
    let version = list["metadata"]["resourceVersion"].as_str();
    let from = version.expect("a list has one");
    let events = api.watch(&namespace.pod(""), from).await;
    let mut events = std::pin::pin!(events.expect("it can be watched"));
    while let Some(event) = events.next().await {
        let Ok(WatchEvent::Added(pod)) = event else {
            continue;
        };
        *count += 1;
        end(namespace, &pod, fate).await;
    }
}

async fn end(namespace: &Namespace, pod: &Value, fate: Fate) {
    match fate {
        Fate::Fails => {
            let status = json!({"phase": "Failed", "reason": "UnexpectedAdmissionError"});
            acts::set_pod_status(namespace, pod, &status).await;
        }
        Fate::LosesLabels => {
            let labels = json!({"metadata": {"labels": {"app": null}}});
            acts::patch_pod(namespace, pod, &labels).await;
        }
    }
}

/// Waits until the server explains why it creates nothing; a batch in flight is explained first.
async fn is_explained(server: &DecisionServer, set: &str) {
    let until = Instant::now() + PATIENCE;
    let mut looks = time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        let explained = server.ask(&["explain", set]);
        let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
        if explained.contains("Because:     PODS_DO_NOT_LAST") {
            return;
        }
        assert!(Instant::now() < until, "{explained}");
    }
}

async fn a_person_learns_of_it(name: &str, fate: Fate, words: &str) {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, name).await;
    let server = DecisionServer::start();
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let flags = ["--leader-elect=false", "--namespace", name];
    let _agent = Agent::start(&server, &kubeconfig, &flags);
    let mut count = 0;
    let event = {
        let story = async {
            acts::create_set(&namespace, &objects::replica_set("web", 3)).await;
            let event = budget::told(&namespace, "PodsDoNotLast", words).await;
            is_explained(&server, &format!("{name}/web")).await;
            event
        };
        tokio::select! {
            event = story => event,
            () = meet(&namespace, fate, &mut count) => panic!("the watch has ended"),
        }
    };
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["involvedObject"]["name"], "web");
    // Ten that did not last, those created meanwhile, and the first trials.
    assert!((10..=23).contains(&count), "{count}");

    // With another spec, the server creates pods again at once, and they last.
    let spec = json!([{"op": "replace", "path": "/spec/replicas", "value": 2}]);
    let path = namespace.replica_set("web");
    let patched = namespace.api().patch(&path, Patch::Json, &spec).await;
    patched.expect("it is valid");
    acts::status_becomes(&namespace, "web", &json!({"replicas": 2})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_a_kubelet_rejects_are_few_and_an_event_says_so() {
    a_person_learns_of_it("rejected", Fate::Fails, "the latest has failed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_lose_their_labels_are_few_and_an_event_says_so() {
    a_person_learns_of_it("unlabelled", Fate::LosesLabels, "other labels").await;
}
