//! The budget on the API server: people are told by an event, and go on by an annotation.

use serde_json::{Value, json};
use tests::real::{Agent, ApiServer, DecisionServer, Namespace, User, decree};

use crate::{acts, objects};

const NAME: &str = "budget";
const HELD: &str = "decree_agent_budget_held{scope=\"replicaset\",operation=\"delete\"}";

/// Waits for an event of this reason that says so.
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
    let Some(cluster) = ApiServer::shared().await else {
        return;
    };
    let namespace = Namespace::create(cluster.admin().await, NAME).await;
    let server = DecisionServer::start();
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let mut flags = vec!["--leader-elect=false", "--namespace", NAME];
    flags.extend(["--budget-action=hold", "--delete-budget-replicaset=3"]);
    let agent = Agent::start(&server, &kubeconfig, &flags);
    acts::create_set(&namespace, &objects::replica_set("web", 9)).await;
    acts::pods_become(&namespace, 9).await;
    acts::scale(&namespace, "web", 0).await;

    let event = told(&namespace, "BudgetExceeded", "decree resume budget/web").await;
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["involvedObject"]["name"], "web");
    assert_eq!(event["count"], 1);
    acts::pods_become(&namespace, 6).await;
    assert_eq!(agent.metric(HELD), 1);
    agent.becomes_ready().await;
    let (user, admin) = (kubeconfig.to_string_lossy(), agent.admin());
    let admin = format!("http://{admin}");
    let check = [
        "check",
        "--kubeconfig",
        &user,
        "-n",
        NAME,
        "--agent",
        &admin,
        "-o",
        "json",
    ];
    let checked = server.ask(&check);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let lines: Vec<Value> = serde_json::from_slice(&checked.stdout).expect("it is JSON");
    let failed: Vec<_> = lines
        .iter()
        .filter(|line| line["result"] == "FAIL")
        .collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
    assert_eq!(failed[0]["hint"], "decree resume budget/web");

    let resume = |extent: &[&str]| {
        let output = decree(&[&["resume", "--kubeconfig", &user], extent].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    resume(&["budget/web"]);
    acts::pods_become(&namespace, 3).await;
    told(&namespace, "BudgetResumed", "replica set budget/web").await;
    let annotations = json!({"metadata": {"annotations": {"decree.dev/resume": "by hand"}}});
    acts::patch_set(&namespace, "web", &annotations).await;
    acts::pods_become(&namespace, 0).await;
    assert_eq!(agent.metric(HELD), 0);
    resume(&["-n", NAME]);
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_says_what_is_not_there_and_what_is_not_allowed() {
    let Some(cluster) = ApiServer::shared().await else {
        return;
    };
    let namespace = Namespace::create(cluster.admin().await, "budget-none").await;
    let resume = |user, extent: &[&str]| {
        let kubeconfig = cluster.kubeconfig(user);
        let user = kubeconfig.to_string_lossy();
        decree(&[&["resume", "--kubeconfig", &user], extent].concat())
    };
    let none = resume(User::Admin, &["-n", namespace.name()]);
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    let absent = resume(User::Admin, &["budget-none/web"]);
    assert_eq!(absent.status.code(), Some(1), "{absent:?}");
    let forbidden = resume(User::Nobody, &["budget-none/web"]);
    assert_eq!(forbidden.status.code(), Some(4), "{forbidden:?}");
}
