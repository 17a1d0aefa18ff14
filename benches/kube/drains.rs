//! Drains of the nodes of single pods: which of them end, and for how long fewer pods are ready than the budget asks for.

use std::{
    thread,
    time::{Duration, Instant},
};

use agent_fake::is_ready;
use serde_json::{Value, json};
use tests::{
    real::{Agent, DecisionServer, Judged, NodeCluster, User, node_of},
    table::{head, quantile_of, row},
};
use tokio::runtime::Builder;

/// The number of drains of each contender, unless the command line names one.
const DRAINS: usize = 200;
/// The number of workloads, which are drained at the same time.
const WORKLOADS: usize = 16;
/// The longest time until a pod is ready.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// The time after which kubectl gives a drain up. It asks for an eviction every 5 s.
const GIVES_UP: &str = "20s";
const UPSTREAM: &str = ",replicaset-controller";

/// The drains of one workload.
#[derive(Default)]
struct Drained {
    seconds: Vec<f64>,
    hang: usize,
    judged: Judged,
}

/// Prints the table.
pub(crate) async fn run(drains: Option<usize>) {
    let each = drains.unwrap_or(DRAINS).div_ceil(WORKLOADS);
    let columns = [
        "controller",
        "minAvailable",
        "drains",
        "that hang",
        "s with no ready pod",
        "times",
        "p50 s",
        "p99 s",
    ];
    head("kubectl drain of the nodes of single pods", &columns);
    for (name, controllers, kept) in [
        ("kube-controller-manager", UPSTREAM, 1),
        ("kube-controller-manager", UPSTREAM, 0),
        ("decree", "", 1),
    ] {
        let cluster = NodeCluster::start(controllers).await;
        let cluster = cluster.expect("there is an API server");
        let kubeconfig = cluster.server().kubeconfig(User::Admin);
        let flags = ["--leader-elect=false", "--nodes", "--log-level", "info"];
        let _decree = controllers.is_empty().then(|| {
            let server = DecisionServer::start();
            (Agent::start(&server, &kubeconfig, &flags), server)
        });
        let cluster = &cluster;
        let all: Vec<_> = thread::scope(|scope| {
            let begin = |at| scope.spawn(move || drain(cluster, at, (each, kept)));
            let begun: Vec<_> = (0..WORKLOADS).map(begin).collect();
            let ended = begun.into_iter().map(|it| it.join());
            ended.collect::<Result<_, _>>().expect("no workload panics")
        });
        print(name, kept, &all);
    }
}

fn print(name: &str, kept: usize, all: &[Drained]) {
    let mut seconds: Vec<_> = all.iter().flat_map(|it| it.seconds.clone()).collect();
    let short: Duration = all.iter().map(|it| it.judged.short).sum();
    let dips: usize = all.iter().map(|it| it.judged.dips.len()).sum();
    let hang: usize = all.iter().map(|it| it.hang).sum();
    let at = [0.5, 0.99].map(|share| format!("{:.1}", quantile_of(&mut seconds, share)));
    let counts = [kept, seconds.len(), hang].map(|count| count.to_string());
    let mut cells = vec![name.to_owned()];
    cells.extend(counts);
    cells.extend([format!("{:.1}", short.as_secs_f64()), dips.to_string()]);
    cells.extend(at);
    row(&cells);
}

/// Drains the node of the only pod of a workload, again and again.
fn drain(cluster: &NodeCluster, at: usize, (drains, kept): (usize, usize)) -> Drained {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let nodes = cluster
            .nodes(&format!("pool-{at}"), at as u64, READY_WITHIN)
            .await;
        nodes.run("ReplicaSet", (1, kept, 1), "true").await;
        let mut drained = Drained::default();
        for _ in 0..drains {
            let node = node_of(&nodes.active()[0]).to_owned();
            let start = Instant::now();
            let output = nodes.drain(&node, GIVES_UP).await.expect("it ends");
            drained.seconds.push(start.elapsed().as_secs_f64());
            drained.hang += usize::from(!output.status.success());
            nodes.change(&node, &json!({"unschedulable": null})).await;
            let rests = |pods: &[Value]| pods.len() == 1 && is_ready(&pods[0]);
            nodes.become_so("at rest", rests).await;
        }
        drained.judged = nodes.judged();
        drained
    })
}
