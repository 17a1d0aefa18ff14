//! Another acting controller, which has only one namespace and so does not answer the probe.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};
use tests::real::{
    Agent, ApiServer, AuditLog, DecisionServer, Namespace, ReplicaSetController, Sightings, User,
    decree,
};

use crate::{acts, budget, objects};

const SETS: [&str; 5] = ["a", "b", "c", "d", "e"];
const HELD: &str = "decree_agent_budget_held{scope=\"replicaset\",operation=\"create\"}";
const FEW: u32 = 5;
const MANY: u32 = 40;
const ROUNDS: usize = 3;
/// The maximum number of surplus pods of a ReplicaSet: those of four batches of the slow start, which begin before the agent sees the
/// first pod of the other controller.
const TOO_MANY: usize = 1 + 2 + 4 + 8;

/// A ReplicaSet whose pods have separate labels.
pub(crate) fn set(name: &str, replicas: u32) -> Value {
    let mut set = objects::replica_set(name, replicas);
    set["spec"]["selector"] = json!({"matchLabels": {"app": name}});
    set["spec"]["template"]["metadata"]["labels"] = json!({"app": name});
    set
}

/// Waits until each ReplicaSet has `replicas` pods.
async fn become_so_many(namespace: &Namespace, replicas: u32) {
    let each = usize::try_from(replicas).expect("it is small");
    let what = format!("{each} pods each");
    acts::pods_become_so(namespace, &what, |pods| {
        SETS.iter().all(|set| {
            let owner = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["name"] == *set;
            pods.iter().filter(owner).count() == each
        })
    })
    .await;
}

async fn scale(namespace: &Namespace, replicas: u32) {
    for set in SETS {
        acts::scale(namespace, set, replicas).await;
    }
    become_so_many(namespace, replicas).await;
}

/// The number of successful deletions of each pod since a place of the log.
fn deletes(log: &AuditLog, since: u64) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let lines = log.lines(since).into_iter();
    for line in lines.filter(|line| line["responseStatus"]["code"] == 200) {
        let name = line["objectRef"]["name"].as_str().unwrap_or_default();
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn replica_sets_are_held_where_another_controller_is_at_work() {
    let deletes_of_pods = json!([
        {"level": "Metadata", "verbs": ["delete"], "resources": [{"group": "", "resources": ["pods"]}]},
        {"level": "None"},
    ]);
    let log = AuditLog::of(&deletes_of_pods);
    let [policy, path] = log.flags();
    let cluster = tests::or_skip!(ApiServer::start_with(&[&policy, &path]).await);
    let namespace = Namespace::create(cluster.admin().await, "another").await;
    // It has no limit of its own: a faster controller does more at the same time as the agent.
    let other = ReplicaSetController::start(&cluster, &namespace, &[]).await;
    let other = tests::or_skip!(other);
    // The start of the controller takes a while.
    acts::create_set(&namespace, &set("first", 1)).await;
    acts::status_becomes(&namespace, "first", &json!({"replicas": 1})).await;
    let server = DecisionServer::start();
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let agent = Agent::start(&server, &kubeconfig, &["--leader-elect=false"]);
    agent.becomes_ready().await;
    let sightings = Sightings::begin(&namespace);
    for name in SETS {
        acts::create_set(&namespace, &set(name, FEW)).await;
    }
    become_so_many(&namespace, FEW).await;
    for _ in 0..ROUNDS {
        scale(&namespace, MANY).await;
        scale(&namespace, FEW).await;
    }
    assert_eq!(agent.metric(HELD), 5);
    // From here on, only the other one deletes. Before, both may delete the same pod.
    let held = fs::metadata(log.path()).expect("it has begun").len();
    scale(&namespace, MANY).await;
    scale(&namespace, FEW).await;
    let why = "replicaset-controller created its pod ";
    for set in SETS {
        let event = budget::told(&namespace, "OtherController", &format!("another/{set}")).await;
        let said = event["message"].as_str().expect("it has one");
        assert!(said.contains(why), "{said}");
        let most = sightings.most(set);
        assert!(most <= MANY as usize + TOO_MANY, "{set}: {most}");
    }
    assert!(agent.metric("decree_agent_pods_of_others_total") > 0);
    let (user, admin) = (
        kubeconfig.to_string_lossy(),
        format!("http://{}", agent.admin()),
    );
    let checked = server.ask(&["check", "--kubeconfig", &user, "--agent", &admin]);
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        checked.contains("creates are held, scope replicaset: "),
        "{checked}"
    );
    let twice: Vec<_> = deletes(&log, held)
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .collect();
    assert!(twice.is_empty(), "deleted twice: {twice:?}");

    drop(other);
    for set in SETS {
        let output = decree(&["resume", "--kubeconfig", &user, "-n", "another", set]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    scale(&namespace, FEW + 2).await;
    assert_eq!(agent.metric(HELD), 0);
}
