//! A shadow-mode agent beside upstream's own ReplicaSet controller with a fault for each subject of a comparison. `shadow` runs beside
//! the controller without faults, and the unit tests of shadow mode have more of them.

use std::time::Duration;

use serde_json::{Value, json};
use tests::real::{Agent, ApiServer, DecisionServer, Namespace, PATIENCE, ReplicaSetController};
use tokio::time::{self, Instant};

use crate::{
    acts, another,
    modes::{compared, differences, may_only_read},
    objects,
};

/// The namespace.
const NAME: &str = "mutants";
/// The ReplicaSets, their desired replicas, and the subjects of their differences: `tests/cluster/replicaset-controller` knows the names.
const FAULTS: [(&str, u32, &str); 4] = [
    ("adopting", 2, "SUBJECT_ADOPTION"),
    ("costs", COSTS, "SUBJECT_VICTIMS"),
    ("more", 2, "SUBJECT_COUNT"),
    ("observed", 2, "SUBJECT_STATUS"),
];
const COSTS: u32 = 8;
/// The number of pods at first: one more than desired.
const PODS: usize = 15;

/// Creates the ReplicaSets and an orphan to adopt, and gives each pod of `costs` another cost.
async fn create(namespace: &Namespace) {
    for (name, replicas, _) in FAULTS {
        acts::create_set(namespace, &another::set(name, replicas)).await;
    }
    let pods = acts::pods_become(namespace, PODS).await;
    let costs = pods
        .iter()
        .filter(|pod| pod["metadata"]["labels"]["app"] == "costs");
    for (cost, pod) in costs.enumerate() {
        let costs = json!({objects::DELETION_COST: cost.to_string()});
        acts::patch_pod(namespace, pod, &json!({"metadata": {"annotations": costs}})).await;
    }
    let mut orphan = objects::pod("orphan");
    orphan["metadata"]["labels"] = json!({"app": "adopting"});
    acts::create_pod(namespace, &orphan).await;
}

/// The number of faults with an unexplained difference that has both sides.
fn told(answer: &Value) -> usize {
    let is_told = |(name, _, subject): &&(&str, u32, &str)| {
        let mut all = answer["differences"].as_array().into_iter().flatten();
        all.any(|it| {
            let has = |side: &str| it[side].as_str().is_some_and(|text| !text.is_empty());
            it["replicaSet"]["name"] == *name
                && it["subject"] == *subject
                && it["departure"] == "DEPARTURE_UNSPECIFIED"
                && ["decided", "done", "why"].into_iter().all(has)
        })
    };
    FAULTS.iter().filter(is_told).count()
}

/// Reads the differences until they are so, and returns them.
async fn become_so(server: &DecisionServer, are_so: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + PATIENCE;
    let mut looks = time::interval(Duration::from_secs(1));
    loop {
        looks.tick().await;
        let answer = differences(server);
        if are_so(&answer) {
            return answer;
        }
        assert!(Instant::now() < until, "{answer:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_upstreams_controller_is_told() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, NAME).await;
    let reader = may_only_read(cluster, &namespace).await;
    let server = DecisionServer::start();
    let flags = [
        "--mode",
        "shadow",
        "--leader-elect=false",
        "--namespace",
        NAME,
    ];
    let agent = Agent::start(&server, &reader, &flags);
    agent.running().wait_for_message("listed", 2);
    let controller = ReplicaSetController::start(cluster, &namespace, &["--faulty"]).await;
    let _controller = tests::or_skip!(controller);
    create(&namespace).await;
    // Missing actions are reported after half a minute. Until then the pods of `costs` have not changed for long enough.
    let mut answer = become_so(&server, |answer| told(answer) + 1 >= FAULTS.len()).await;
    // The first wrong victim counts as deleted by a person.
    for replicas in (1..COSTS).rev() {
        if told(&answer) == FAULTS.len() {
            break;
        }
        let comparisons_at_rest = compared(&answer) + 2;
        acts::scale(&namespace, "costs", replicas).await;
        answer = become_so(&server, |answer| compared(answer) >= comparisons_at_rest).await;
    }
    eprintln!("{answer:#}");
    assert_eq!(told(&answer), FAULTS.len(), "{answer:#}");
}
