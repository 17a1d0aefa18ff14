//! Advice beside kube-controller-manager: a queue of workers, each of which says by a label whether it is busy, is scaled down many times.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use tests::{
    depth,
    real::{Agent, ApiServer, ControllerManager, DecisionServer, Namespace},
    rng::Rng,
};
use tokio::time;

use crate::{acts, another, modes, mutants::Kubelets, objects::DELETION_COST};

/// The number of scale-downs, and of workers, in the gate and at full depth.
const ROUNDS: [usize; 2] = [20, 1_000];
const WORKERS: [u32; 2] = [10, 50];
const CONTROLLER: &str = "--controllers=replicaset-controller";
/// The ReplicaSet that prefers an order of deletion, and the same without the annotation.
const SETS: [&str; 2] = ["advised", "plain"];
const ADVISED: &str = "decree.dev/advised-cost";
const STATE: &str = "app.state";
/// How long the watches of a controller may take to show what the API server has.
const SEEN: Duration = Duration::from_secs(1);
/// The number of workers that end between two scale-downs.
const ENDING: usize = 3;

fn owner(pod: &Value) -> &str {
    let owner = pod["metadata"]["ownerReferences"][0]["name"].as_str();
    owner.unwrap_or_default()
}

fn is_busy(pod: &Value) -> bool {
    pod["metadata"]["labels"][STATE] == "busy"
}

/// The deletion cost as Kubernetes reads it.
fn cost(pod: &Value) -> i32 {
    let cost = pod["metadata"]["annotations"][DELETION_COST].as_str();
    cost.map_or(0, |cost| cost.parse().expect("a number"))
}

fn is_ready(pod: &Value) -> bool {
    let is_ready = pod["status"]["conditions"][0]["status"] == "True";
    is_ready && pod["metadata"].get("deletionTimestamp").is_none()
}

/// Whether each idle pod of the advised ReplicaSet costs less than each busy one.
fn are_advised(pods: &[Value]) -> bool {
    let of = |busy: bool| {
        pods.iter()
            .filter(move |pod| owner(pod) == SETS[0] && is_busy(pod) == busy)
    };
    let idle = of(false).map(cost).max();
    let busy = of(true).map(cost).min();
    idle.zip(busy).is_none_or(|(idle, busy)| idle < busy)
}

/// Waits until each ReplicaSet has this many ready pods and no others.
async fn become_ready(namespace: &Namespace, count: usize) -> Vec<Value> {
    acts::pods_become_so(namespace, &format!("{count} ready pods each"), |pods| {
        let has_all = |set: &str| pods.iter().filter(|pod| owner(pod) == set).count() == count;
        SETS.into_iter().all(has_all) && pods.iter().all(is_ready)
    })
    .await
}

/// Says of each new worker whether it is busy: of every other one of each ReplicaSet.
async fn begin_work(namespace: &Namespace, pods: &[Value]) {
    for set in SETS {
        let new =
            |pod: &&Value| owner(pod) == set && pod["metadata"]["labels"].get(STATE).is_none();
        for (number, pod) in pods.iter().filter(new).enumerate() {
            let state = if number % 2 == 0 { "idle" } else { "busy" };
            let patch = json!({"metadata": {"labels": {STATE: state}}});
            acts::patch_pod(namespace, pod, &patch).await;
        }
    }
}

/// Lets the first workers of each ReplicaSet end, whatever they do.
async fn end_work(namespace: &Namespace, pods: &[Value]) {
    for set in SETS {
        let own = pods.iter().filter(|pod| owner(pod) == set);
        for pod in own.take(ENDING) {
            acts::delete_pod(namespace, pod).await;
        }
    }
}

/// Scales up, and waits until all workers work and have their advice.
async fn fill(namespace: &Namespace, workers: u32) -> Vec<Value> {
    scale(namespace, workers).await;
    let pods = become_ready(namespace, workers as usize).await;
    begin_work(namespace, &pods).await;
    acts::pods_become_so(namespace, "advice", are_advised).await
}

async fn scale(namespace: &Namespace, replicas: u32) {
    for set in SETS {
        acts::scale(namespace, set, replicas).await;
    }
}

/// The busy pods of a ReplicaSet that are gone although idle ones remain.
fn sacrificed(set: &str, before: &[Value], after: &[Value]) -> usize {
    let stays = |pod: &Value| after.iter().any(|it| acts::name(it) == acts::name(pod));
    let mut own = before.iter().filter(|pod| owner(pod) == set);
    let has_idle = own.clone().any(|pod| !is_busy(pod) && stays(pod));
    let gone = own
        .by_ref()
        .filter(|pod| is_busy(pod) && !stays(pod))
        .count();
    if has_idle { gone } else { 0 }
}

#[tokio::test(flavor = "multi_thread")]
async fn scale_downs_of_the_built_in_controller_spare_busy_pods_where_they_are_advised() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let at = usize::from(depth::is_full());
    let (rounds, workers) = (ROUNDS[at], WORKERS[at]);
    let namespace = Namespace::create(cluster.admin().await, "queue").await;
    let advisor = modes::may(&cluster, &namespace, &["list", "watch", "patch"]).await;
    let _controller = ControllerManager::start(&cluster, &[CONTROLLER]);
    let _kubelets = Kubelets::start(namespace.clone());
    for name in SETS {
        let mut set = another::set(name, workers);
        if name == SETS[0] {
            let prefers = json!({"decree.dev/scale-in": format!("first={STATE}=idle")});
            set["metadata"]["annotations"] = prefers;
        }
        acts::create_set(&namespace, &set).await;
    }
    let server = DecisionServer::start();
    let flags = [
        "--mode",
        "advise",
        "--leader-elect=false",
        "--namespace",
        "queue",
    ];
    let agent = Agent::start(&server, &advisor, &flags);

    let mut rng = Rng::new(7);
    let mut lost = [0; SETS.len()];
    for round in 0..rounds {
        let before = fill(&namespace, workers).await;
        let left = workers - u32::try_from(rng.between(1, 4)).expect("few");
        if round == 0 {
            previewed(&server, left, &before);
        }
        // The other controller sees the costs as late as anyone.
        time::sleep(SEEN).await;
        scale(&namespace, left).await;
        let after = become_ready(&namespace, left as usize).await;
        for (lost, set) in lost.iter_mut().zip(SETS) {
            let found = sacrificed(set, &before, &after);
            if set == SETS[0] && found > 0 {
                eprintln!("round {round}, to {left}: {before:#?}");
            }
            *lost += found;
        }
        end_work(&namespace, &after).await;
    }
    eprintln!("{rounds} scale-downs: {lost:?} busy pods lost, of {SETS:?}");
    assert_eq!(lost[0], 0, "busy pods went, and idle ones stayed");
    assert!(lost[1] > 0, "without advice, none is spared");
    let metrics = agent.metrics();
    let calls = metrics
        .lines()
        .filter(|line| line.starts_with("decree_agent_calls_total{"));
    let calls: Vec<_> = calls.collect();
    assert!(
        calls.len() == 1 && calls[0].contains("advise_pod"),
        "{calls:?}"
    );
    let pods = fill(&namespace, workers).await;
    drop(agent);
    withdrawn(&server, &advisor, &namespace, &pods).await;
}

/// Checks that the preview names idle pods alone, as the other controller then deletes.
fn previewed(server: &DecisionServer, left: u32, pods: &[Value]) {
    let idle = pods
        .iter()
        .filter(|pod| owner(pod) == SETS[0] && !is_busy(pod));
    let idle: Vec<_> = idle.map(acts::name).collect();
    let replicas = left.to_string();
    let output = server.ask(&[
        "simulate",
        "queue/advised",
        "--replicas",
        &replicas,
        "-o",
        "json",
    ]);
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
    let victims = answer["deletes"].as_array().expect("some are deleted");
    let of_idle = victims.iter().filter(|it| {
        let name = it["name"].as_str().unwrap_or_default();
        idle.contains(&name)
    });
    assert_eq!(of_idle.count(), victims.len().min(idle.len()), "{answer:#}");
}

/// Withdraws all advice. The cost that a person sets in between stays.
async fn withdrawn(server: &DecisionServer, advisor: &Path, namespace: &Namespace, pods: &[Value]) {
    let is_ours = |pod: &&Value| pod["metadata"]["annotations"].get(ADVISED).is_some();
    let theirs = pods.iter().find(is_ours).expect("some have advice");
    let cost = json!({"metadata": {"annotations": {DELETION_COST: "12"}}});
    acts::patch_pod(namespace, theirs, &cost).await;
    let flags = [
        "--mode",
        "withdraw",
        "--leader-elect=false",
        "--namespace",
        "queue",
    ];
    let agent = Agent::start(server, advisor, &flags);
    assert!(agent.wait().success(), "it ends by itself");
    for pod in namespace.pods().await.expect("they can be listed") {
        let is_theirs = acts::name(&pod) == acts::name(theirs);
        let expected = if is_theirs { json!("12") } else { Value::Null };
        assert_eq!(pod["metadata"]["annotations"][DELETION_COST], expected);
    }
}
