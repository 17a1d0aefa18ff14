//! The agent on the API server: pods come and go, the status follows, and no wait is endless.

use serde_json::json;
use tests::real::{Agent, ApiServer, Attended, DecisionServer, Namespace, User};

use crate::{acts, objects};

/// Longer than the patience of the test.
const LEASE: &str = "60m";

#[tokio::test]
async fn a_replica_set_gets_its_pods_and_its_status_follows() {
    let namespace = tests::or_skip!(Attended::namespace("gets-its-pods").await);
    let set = acts::create_set(&namespace, &objects::replica_set("web", 5)).await;
    let all = json!({"replicas": 5, "fullyLabeledReplicas": 5, "readyReplicas": 0, "terminatingReplicas": 0});
    acts::status_becomes(&namespace, "web", &all).await;
    let pods = acts::pods_become(&namespace, 5).await;
    for pod in &pods {
        let owner = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": set["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true,
        }]);
        assert_eq!(pod["metadata"]["ownerReferences"], owner);
        assert_eq!(pod["metadata"]["labels"], objects::labels());
        assert!(acts::name(pod).starts_with("web-"), "{}", acts::name(pod));
    }
    for left in [2, 0] {
        acts::scale(&namespace, "web", left).await;
        let status = json!({"replicas": left, "fullyLabeledReplicas": left});
        acts::status_becomes(&namespace, "web", &status).await;
        let there = usize::try_from(left).expect("it is small");
        let rest = acts::pods_become(&namespace, there).await;
        let names = acts::names(&pods);
        assert!(acts::names(&rest).iter().all(|name| names.contains(name)));
    }
}

#[tokio::test]
async fn an_agent_without_election_acts_and_ends() {
    acts_and_ends("acts-alone", &["--leader-elect=false"]).await;
}

#[tokio::test]
async fn an_agent_acts_at_once_by_a_lease_that_nobody_has() {
    let name = "acts-elected";
    let flags = ["--lease-namespace", name, "--lease-duration", LEASE];
    acts_and_ends(name, &flags).await;
}

async fn acts_and_ends(name: &str, flags: &[&str]) {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, name).await;
    let server = DecisionServer::start();
    let mut all = vec!["--namespace", name];
    all.extend(flags);
    let agent = Agent::start(&server, &cluster.kubeconfig(User::Admin), &all);
    acts::create_set(&namespace, &objects::replica_set("web", 1)).await;
    acts::pods_become(&namespace, 1).await;
    agent.becomes_ready().await;
    let ended = agent.terminate();
    assert_eq!(ended.code(), Some(0), "the agent drained");
}
