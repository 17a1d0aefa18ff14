//! The modes that execute nothing: the agent shows decisions, and the cluster stays unchanged.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::real::{Agent, Api, ApiServer, DecisionServer, Namespace, User};

use crate::{another, objects, rendered};

/// The permissions of an agent that executes nothing, as a role and its binding.
pub(crate) async fn may_only_read(server: &ApiServer, namespace: &Namespace) -> PathBuf {
    may(server, namespace, &["list", "watch"]).await
}

/// The permissions of an agent that does this with pods, and only reads all else.
pub(crate) async fn may(server: &ApiServer, namespace: &Namespace, pods: &[&str]) -> PathBuf {
    let (api, name) = (namespace.api(), namespace.name());
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": pods},
            {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["list", "watch"]},
            {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
        ],
    });
    let accounts = namespace.path("/api/v1", "serviceaccounts", "");
    api.make(&accounts, &account).await;
    rendered::grant(api, &role, name, "reader").await;
    let kubeconfig = server.service_account(name, "reader").await;
    let reader = Api::of(&kubeconfig).await;
    // The API server learns of roles later than they are written.
    for path in [
        "/api/v1/pods",
        "/apis/apps/v1/replicasets",
        "/api/v1/namespaces/kube-system",
    ] {
        reader.wait_for("permitted", path, |_| Some(())).await;
    }
    kubeconfig
}

/// The output of `decree diff -o json`.
pub(crate) fn differences(server: &DecisionServer) -> Value {
    let output = server.ask(&["diff", "-o", "json"]);
    serde_json::from_slice(&output.stdout).expect("a shadow answers")
}

/// The number of comparisons in the output of `decree diff -o json`.
pub(crate) fn compared(answer: &Value) -> u64 {
    let compared = answer["compared"].as_str();
    compared.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The number of unexplained differences in the output of `decree diff -o json`.
pub(crate) fn unexplained(answer: &Value) -> u64 {
    let agreements = answer["agreements"].as_array().into_iter().flatten();
    let counts = agreements.filter_map(|agreement| agreement["unexplained"].as_str());
    counts.filter_map(|count| count.parse::<u64>().ok()).sum()
}

/// The lines by which a dry run shows its actions for this ReplicaSet.
fn shown(agent: &Agent, replica_set: &str, action: &str) -> Value {
    let what = format!("{action} for {replica_set}");
    agent.running().line(&what, |line| {
        let is_shown = line["message"] == "decided, not executed";
        is_shown && line["replica_set"] == replica_set && line["action"] == action
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_run_shows_what_it_would_do_and_writes_nothing() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, "dry-run").await;
    let reader = may_only_read(cluster, &namespace).await;
    let sets = namespace.replica_set("");
    let few = namespace.make(&sets, &objects::replica_set("few", 2)).await;
    let many = namespace.make(&sets, &another::set("many", 0)).await;
    let mut surplus = objects::pod("surplus");
    surplus["metadata"]["labels"] = json!({"app": "many"});
    surplus["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "many", "uid": many["metadata"]["uid"], "controller": true,
    }]);
    let surplus = namespace.make(&namespace.pod(""), &surplus).await;

    let server = DecisionServer::start();
    let flags = [
        "--mode=dry-run",
        "--leader-elect=false",
        "--namespace=dry-run",
    ];
    let agent = Agent::start(&server, &reader, &flags);
    let created = shown(&agent, "dry-run/few", "create");
    assert_eq!(created["operations"], 2, "{created}");
    assert_eq!(created["why"], "TOO_FEW_REPLICAS: 0 active pods, 2 desired");
    let deleted = shown(&agent, "dry-run/many", "delete");
    assert_eq!(
        deleted["pods"], "surplus (ALL_GO: all active pods are deleted)",
        "{deleted}"
    );
    shown(&agent, "dry-run/few", "status");
    shown(&agent, "dry-run/many", "status");

    let pods = namespace.pods().await.expect("they can be listed");
    assert_eq!(pods.len(), 1, "no pod was made or deleted");
    assert_eq!(pods[0]["metadata"], surplus["metadata"], "nor changed");
    for (name, before) in [("few", few), ("many", many)] {
        let path = namespace.replica_set(name);
        let after = namespace.get(&path).await.expect("it is there");
        assert_eq!(after, before, "nothing was written to {name}");
    }
    let events = namespace.path("/api/v1", "events", "");
    let events = namespace.list(&events).await.expect("they can be listed");
    assert_eq!(events, Vec::<Value>::new());
    let metrics = agent.metrics();
    assert!(
        !metrics.contains("decree_agent_calls_total{"),
        "calls were made: {metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_run_takes_the_lease_and_only_that_where_it_is_asked_to() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let admin = cluster.admin().await;
    let namespace = Namespace::create(admin, "dry-run-led").await;
    let sets = namespace.replica_set("");
    let written = namespace.make(&sets, &objects::replica_set("web", 1)).await;
    let server = DecisionServer::start();
    let flags = "--mode=dry-run --lease-namespace=dry-run-led --namespace=dry-run-led";
    let flags: Vec<_> = flags.split(' ').collect();
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let agent = Agent::start(&server, &kubeconfig, &flags);
    shown(&agent, "dry-run-led/web", "status");
    let lease = namespace.path("/apis/coordination.k8s.io/v1", "leases", "decree-agent");
    let lease = namespace.get(&lease).await.expect("it is taken");
    let holder = lease["spec"]["holderIdentity"].as_str();
    assert!(holder.is_some_and(|name| !name.is_empty()), "{lease:#}");
    let path = namespace.replica_set("web");
    let after = namespace.get(&path).await.expect("it is there");
    assert_eq!(after, written);
    assert_eq!(namespace.pods().await.expect("they can be listed").len(), 0);
}
