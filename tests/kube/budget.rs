//! The budget on the API server: an event tells people, and an annotation resumes.

use serde_json::{Value, json};
use tests::real::{Agent, ApiServer, DecisionServer, Namespace, User, decree};

use crate::{acts, check, objects};

const NAME: &str = "budget";
const HELD: &str = "decree_agent_budget_held{scope=\"replicaset\",operation=\"delete\"}";

/// Waits for an event with this reason and text.
pub(crate) async fn told(namespace: &Namespace, reason: &str, text: &str) -> Value {
    let events = namespace.path("/api/v1", "events", "");
    let api = namespace.api();
    api.wait_for(reason, &events, |list| {
        let mut events = list["items"].as_array()?.iter();
        let says = |event: &&Value| {
            let message = event["message"].as_str().unwrap_or_default();
            event["reason"] == reason && message.contains(text)
        };
        events.find(says).cloned()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_are_held_with_an_event_until_an_annotation_resumes_them() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, NAME).await;
    let server = DecisionServer::start();
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let mut flags = vec!["--leader-elect=false", "--namespace", NAME];
    flags.extend(["--budget-action=hold", "--delete-budget=replicaset=3"]);
    let agent = Agent::start(&server, &kubeconfig, &flags);
    acts::create_set(&namespace, &objects::replica_set("web", 12)).await;
    acts::pods_become(&namespace, 12).await;
    acts::scale(&namespace, "web", 0).await;

    let event = told(&namespace, "BudgetExceeded", "decree resume budget/web").await;
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["involvedObject"]["name"], "web");
    assert_eq!(event["count"], 1);
    acts::pods_become(&namespace, 9).await;
    assert_eq!(agent.metric(HELD), 1);
    agent.becomes_ready().await;
    let user = kubeconfig.to_string_lossy();
    let agent_url = format!("http://{}", agent.admin());
    let words = format!("-n {NAME} --lease-namespace {NAME} --agent {agent_url} -o json");
    let checked = check::check(&server, &kubeconfig, &words);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let mut failed = check::lines(&checked);
    failed.retain(|line| line["result"] == "FAIL");
    assert_eq!(failed.len(), 1, "{failed:#?}");
    assert_eq!(failed[0]["detail"], "deletes are held, scope replicaset: 1");

    let resume = |extent: &[&str]| {
        let output = decree(&[&["resume", "--kubeconfig", &user], extent].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    resume(&["budget/web"]);
    acts::pods_become(&namespace, 6).await;
    told(&namespace, "BudgetResumed", "replica set budget/web").await;
    let annotations = json!({"metadata": {"annotations": {"decree.dev/resume": "by hand"}}});
    acts::patch_set(&namespace, "web", &annotations).await;
    acts::pods_become(&namespace, 3).await;
    resume(&["--all", "-n", NAME]);
    acts::pods_become(&namespace, 0).await;
    assert_eq!(agent.metric(HELD), 0);
}
