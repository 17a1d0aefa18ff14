//! Advice beside kube-controller-manager: queues of workers, each of which says by a label whether it is busy, are scaled down many times.
//!
//! At full depth, it is the measurement of docs/advise.md.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use agent_fake::{is_active, is_ready};
use serde_json::{Value, json};
use tests::{
    depth,
    real::{Agent, ControllerManager, DecisionServer, NodeCluster, Nodes, PATIENCE, found},
    rng::Rng,
};
use tokio::{task::JoinSet, time};

use crate::{acts, another, modes, objects::DELETION_COST};

/// The numbers of queues, of workers of each, and of its scale-downs, in the gate and at full depth.
const QUEUES: [u64; 2] = [2, 20];
const WORKERS: [usize; 2] = [10, 50];
const ROUNDS: [usize; 2] = [10, 50];
/// A limit of requests for which no queue waits.
const CONTROLLER: [&str; 3] = [
    "--controllers=replicaset-controller",
    "--kube-api-qps=1000",
    "--kube-api-burst=1000",
];
/// The ReplicaSet that prefers an order of deletion, and the same without the annotation.
const SETS: [&str; 2] = ["advised", "plain"];
const ADVISED: &str = "decree.dev/advised-cost";
const STATE: &str = "app.state";
/// How long watches may take to show what the API server has.
const SEEN: Duration = Duration::from_secs(1);
/// How long a scale-down waits for advice: not for a worker that changes twice in a minute.
const ADVISED_WITHIN: Duration = Duration::from_secs(5);
/// How long nothing may change before a compared deletion, and a reserve.
const STEADY: Duration = Duration::from_secs(7);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The number of workers that end between two scale-downs.
const ENDING: usize = 3;

/// The pods of a ReplicaSet that scale-downs took.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    all: usize,
    /// Busy ones for which idle, ready ones could have been taken.
    busy: usize,
    /// Busy ones although an idle, ready one stays that costs less.
    in_vain: usize,
}

impl Taken {
    fn add(&mut self, before: &[Value], after: &[Value], set: &str) {
        let is_gone = |pod: &&Value| after.iter().all(|it| acts::name(it) != acts::name(pod));
        let (gone, stay): (Vec<_>, Vec<_>) = of(before, set).into_iter().partition(is_gone);
        let idle: Vec<_> = stay.into_iter().filter(|pod| !is_busy(pod)).collect();
        let busy: Vec<_> = gone.iter().filter(|pod| is_busy(pod)).collect();
        let in_vain = |pod: &&&&Value| idle.iter().any(|it| cost(it) < cost(pod));
        self.all += gone.len();
        self.busy += busy.len().min(idle.len());
        self.in_vain += busy.iter().filter(in_vain).count();
    }
}

fn owner(pod: &Value) -> &str {
    let owner = pod["metadata"]["ownerReferences"][0]["name"].as_str();
    owner.unwrap_or_default()
}

fn of<'a>(pods: &'a [Value], set: &str) -> Vec<&'a Value> {
    pods.iter().filter(|pod| owner(pod) == set).collect()
}

fn is_busy(pod: &Value) -> bool {
    pod["metadata"]["labels"][STATE] == "busy"
}

/// The deletion cost as Kubernetes reads it.
pub(crate) fn cost(pod: &Value) -> i32 {
    let cost = pod["metadata"]["annotations"][DELETION_COST].as_str();
    cost.map_or(0, |cost| cost.parse().expect("a number"))
}

/// Whether each idle pod of the advised ReplicaSet costs less than each busy one.
fn are_advised(pods: &[Value]) -> bool {
    let own = of(pods, SETS[0]).into_iter();
    let (busy, idle): (Vec<_>, Vec<_>) = own.partition(|pod| is_busy(pod));
    let most = idle.into_iter().map(cost).max();
    let least = busy.into_iter().map(cost).min();
    most.zip(least).is_none_or(|(idle, busy)| idle < busy)
}

/// Waits until the active pods are so, for a limited time, and returns them.
async fn wait_for(
    nodes: &Nodes,
    within: Duration,
    are_so: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let until = Instant::now() + within;
    loop {
        let pods = nodes.active();
        if are_so(&pods) || Instant::now() >= until {
            return pods;
        }
        time::sleep(LOOK_EVERY).await;
    }
}

/// Scales both ReplicaSets, and waits until each has this many ready pods and no others.
async fn scale(nodes: &Nodes, replicas: usize) -> Vec<Value> {
    for set in SETS {
        let replicas = u32::try_from(replicas).expect("few");
        acts::scale(nodes.namespace(), set, replicas).await;
    }
    let are_so = |pods: &[Value]| {
        SETS.iter().all(|set| of(pods, set).len() == replicas) && pods.iter().all(is_ready)
    };
    let pods = wait_for(nodes, PATIENCE, are_so).await;
    assert!(are_so(&pods), "not {replicas} ready pods each: {pods:#?}");
    pods
}

/// Scales up. Every other new worker is busy, and one of the others changes its state. Returns the pods with their advice, which another
/// controller has seen, or as they are after a while.
async fn fill(nodes: &Nodes, (workers, within): (usize, Duration), rng: &mut Rng) -> Vec<Value> {
    let pods = scale(nodes, workers).await;
    for set in SETS {
        let is_new = |pod: &&Value| pod["metadata"]["labels"].get(STATE).is_none();
        let (new, old): (Vec<_>, Vec<_>) = of(&pods, set).into_iter().partition(is_new);
        let new = new
            .into_iter()
            .enumerate()
            .map(|(at, pod)| (pod, at % 2 == 1));
        let changed = (!old.is_empty()).then(|| *rng.pick(&old));
        for (pod, busy) in new.chain(changed.map(|pod| (pod, !is_busy(pod)))) {
            let state = if busy { "busy" } else { "idle" };
            let patch = json!({"metadata": {"labels": {STATE: state}}});
            acts::patch_pod(nodes.namespace(), pod, &patch).await;
        }
    }
    time::sleep(SEEN).await;
    let pods = wait_for(nodes, within, are_advised).await;
    time::sleep(SEEN).await;
    pods
}

/// Creates the ReplicaSets in a namespace.
async fn create(cluster: &NodeCluster, number: u64) -> Nodes {
    let nodes = cluster
        .nodes(&format!("queue-{number}"), number, SEEN)
        .await;
    for name in SETS {
        let mut set = another::set(name, 0);
        if name == SETS[0] {
            let prefers = json!({"decree.dev/scale-in": format!("first={STATE}=idle")});
            set["metadata"]["annotations"] = prefers;
        }
        acts::create_set(nodes.namespace(), &set).await;
    }
    nodes
}

/// Scales a queue down many times. After each, the first workers of each ReplicaSet end, whatever they do.
async fn shrink(nodes: Nodes, seed: u64, (workers, rounds): (usize, usize)) -> (Nodes, [Taken; 2]) {
    let mut rng = Rng::new(seed);
    let mut taken = [Taken::default(); SETS.len()];
    for round in 0..rounds {
        let before = fill(&nodes, (workers, ADVISED_WITHIN), &mut rng).await;
        let left = workers - usize::try_from(rng.between(1, 4)).expect("few");
        let after = scale(&nodes, left).await;
        // A worker that ends at once would count as one of the victims.
        time::sleep(SEEN).await;
        for (taken, set) in taken.iter_mut().zip(SETS) {
            taken.add(&before, &after, set);
            for pod in of(&after, set).into_iter().take(ENDING) {
                acts::delete_pod(nodes.namespace(), pod).await;
            }
        }
        eprintln!("{} {round}: {taken:?}", nodes.namespace().name());
    }
    (nodes, taken)
}

#[tokio::test(flavor = "multi_thread")]
async fn scale_downs_of_the_built_in_controller_spare_busy_pods_where_they_are_advised() {
    let cluster = tests::or_skip!(NodeCluster::start("").await);
    let at = usize::from(depth::is_full());
    let (queues, workers, rounds) = (QUEUES[at], WORKERS[at], ROUNDS[at]);
    let _controller = ControllerManager::start(cluster.server(), &CONTROLLER);
    let server = DecisionServer::start();
    let mut rng = Rng::new(7);
    let mut shrinking = JoinSet::new();
    let first = create(&cluster, 0).await;
    let advisor = modes::may(
        cluster.server(),
        first.namespace(),
        &["list", "watch", "patch"],
    )
    .await;
    let agent = Agent::start(
        &server,
        &advisor,
        &["--leader-elect=false", "--mode", "advise"],
    );
    let pods = fill(&first, (workers, PATIENCE), &mut rng).await;
    previewed(&server, workers - 3, &pods);
    for queue in 1..queues {
        let nodes = create(&cluster, queue).await;
        fill(&nodes, (workers, PATIENCE), &mut rng).await;
        shrinking.spawn(shrink(nodes, queue, (workers, rounds)));
    }
    let (first, mut all) = shrink(first, 0, (workers, rounds)).await;
    while let Some(ended) = shrinking.join_next().await {
        let (_, taken) = ended.expect("it does not panic");
        for (all, taken) in all.iter_mut().zip(taken) {
            all.all += taken.all;
            all.busy += taken.busy;
            all.in_vain += taken.in_vain;
        }
    }
    let all_rounds = rounds as u64 * queues;
    eprintln!("{all_rounds} scale-downs of {workers} workers, of {SETS:?}: {all:?}");
    let [advised, plain] = all;
    assert_eq!(advised.in_vain, 0, "the costs were not followed");
    assert!(advised.busy * 4 < plain.busy, "busy pods are spared");
    let metrics = agent.metrics();
    let calls = metrics
        .lines()
        .filter(|line| line.starts_with("decree_agent_calls_total{"));
    let calls: Vec<_> = calls.collect();
    assert!(
        calls.len() == 1 && calls[0].contains("advise_pod"),
        "{calls:?}"
    );
    fill(&first, (workers, PATIENCE), &mut rng).await;
    compared(&server, &first, workers).await;
    drop(agent);
    withdrawn(&server, &advisor, &first).await;
}

/// Checks that the victims of the other controller are compared, and are those that the costs say.
async fn compared(server: &DecisionServer, nodes: &Nodes, workers: usize) {
    time::sleep(STEADY).await;
    scale(nodes, workers - 1).await;
    let victims = found(async || {
        let answer = modes::differences(server);
        let all = answer["agreements"].as_array().into_iter().flatten();
        let mut all = all.filter(|it| it["subject"] == "SUBJECT_VICTIMS" && it["compared"] != "0");
        all.next().cloned().ok_or_else(|| answer.to_string())
    })
    .await;
    assert_eq!(victims["unexplained"], "0", "{victims}");
    eprintln!("the choice of victims: {victims}");
}

/// Checks that the preview names idle pods alone, as the other controller then deletes.
fn previewed(server: &DecisionServer, left: usize, pods: &[Value]) {
    let own = of(pods, SETS[0]).into_iter();
    let idle: Vec<_> = own.filter(|pod| !is_busy(pod)).map(acts::name).collect();
    let replicas = left.to_string();
    let output = server.ask(&[
        "simulate",
        "queue-0/advised",
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
async fn withdrawn(server: &DecisionServer, advisor: &Path, nodes: &Nodes) {
    let pods = nodes.active();
    let is_ours = |pod: &&Value| pod["metadata"]["annotations"].get(ADVISED).is_some();
    let theirs = pods.iter().find(is_ours).expect("some have advice");
    let cost = json!({"metadata": {"annotations": {DELETION_COST: "12"}}});
    acts::patch_pod(nodes.namespace(), theirs, &cost).await;
    let flags = ["--leader-elect=false", "--mode", "withdraw"];
    let agent = Agent::start(server, advisor, &flags);
    assert!(agent.wait().success(), "it ends by itself");
    let pods = nodes.namespace().pods().await;
    for pod in pods
        .expect("they can be listed")
        .iter()
        .filter(|it| is_active(it))
    {
        let is_theirs = acts::name(pod) == acts::name(theirs);
        let expected = if is_theirs { json!("12") } else { Value::Null };
        assert_eq!(pod["metadata"]["annotations"][DELETION_COST], expected);
    }
}
