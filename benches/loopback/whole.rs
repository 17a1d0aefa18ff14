//! Server, agent and embedded cluster together, as in `decree demo`: from a scale-up to the pods in the cluster.

use std::time::Instant;

use agent_fake::Kind;
use decree_agent::FakeCluster;
use decree_server::{Config, Server};
use tests::{
    builders::replica_set,
    table::{head, quantile, row},
};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 30;
const SIZES: [usize; 3] = [10, 500, 600];

pub(crate) fn run() {
    head(
        "0 → N pods in the embedded cluster, with the agent",
        &["pods", "p50 ms", "p99 ms"],
    );
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    for size in SIZES {
        let mut times: Vec<_> = (0..ROUNDS)
            .map(|_| runtime.block_on(scale_up(size)))
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |share| format!("{:.1}", quantile(&times, share));
        row(&[size.to_string(), at(0.5), at(0.99)]);
    }
}

/// The duration of a scale-up in milliseconds.
async fn scale_up(size: usize) -> f64 {
    let server = Server::bind(Config::embedded()).await.expect("free ports");
    let connector = service::transport::Connector::local(&server.addresses().grpc);
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(stop.clone()));
    let cluster =
        FakeCluster::start(agent_fake::ClusterConfig::default(), Vec::new()).expect("it is empty");
    let set = replica_set("web").replicas(0).build();
    cluster
        .with(|model| model.create(set))
        .expect("it is valid");
    let config = decree_agent::ShellConfig::new(connector);
    let agent = tokio::spawn(decree_agent::run(config, cluster.clone(), stop.clone()));
    until(&cluster, |model| {
        let set = model.peek(Kind::ReplicaSet, "default", "web");
        set.is_some_and(|set| set["status"]["observedGeneration"] == 1)
    })
    .await;
    let start = Instant::now();
    let replicas = i32::try_from(size).expect("few");
    cluster
        .with(|model| model.scale("default", "web", replicas))
        .expect("it is there");
    until(&cluster, |model| model.objects(Kind::Pod).count() == size).await;
    let took = start.elapsed().as_secs_f64() * 1e3;
    stop.cancel();
    agent.await.expect("no panic").expect("it ran");
    serving.await.expect("no panic").expect("it served");
    took
}

async fn until(cluster: &FakeCluster, is_so: impl Fn(&agent_fake::Cluster) -> bool) {
    loop {
        if cluster.with(|model| is_so(model)) {
            return;
        }
        cluster.changed().await;
    }
}
