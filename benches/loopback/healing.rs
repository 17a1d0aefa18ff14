//! The time from the deletion of a pod of the embedded cluster to its replacement, for each connection of server and agent.

use std::time::{Duration, Instant};

use agent_fake::{DeleteOptions, Kind, Kubelet};
use decree_agent::FakeCluster;
use decree_server::{Config, Server};
use service::transport::{Connector, ListenEndpoint};
use tempfile::TempDir;
use tests::{
    binaries,
    builders::replica_set,
    objects,
    real::DecisionServer,
    table::{head, quantile_of, row},
};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// The number of lost pods for each connection, one for each connection in turn.
const LOSSES: usize = 1_000;
/// The number of first losses that do not count.
const WARM_UP: usize = 100;
const REPLICAS: usize = 10;
/// The pause between two losses.
const REST: Duration = Duration::from_millis(1);

/// The connection of server and agent.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// In one process, over TCP, as in `decree up`.
    OwnTcp,
    /// Two processes, over a Unix socket.
    Unix,
    /// Two processes, over TCP.
    Tcp,
}

/// A server, an agent and an embedded cluster, which end when this is dropped.
struct Site {
    way: Way,
    times: Vec<f64>,
    cluster: FakeCluster,
    runtime: Runtime,
    // Dropped after the agent.
    _process: Option<(DecisionServer, TempDir)>,
}

pub(crate) fn run() {
    let mut sites = [Way::OwnTcp, Way::Unix, Way::Tcp].map(Site::open);
    for at in 0..WARM_UP + LOSSES {
        for site in &mut sites {
            let took = site.runtime.block_on(lose_one(&site.cluster));
            if at >= WARM_UP {
                site.times.push(took.as_secs_f64() * 1e6);
            }
        }
    }
    head(
        "Pod lost → replaced in the embedded cluster",
        &["way", "p50 µs", "p99 µs", "p50 relative"],
    );
    let base = quantile_of(&mut sites[0].times, 0.5);
    for mut site in sites {
        let [p50, p99] = [0.5, 0.99].map(|share| quantile_of(&mut site.times, share));
        let figures = [p50, p99].map(|it| format!("{it:.0}"));
        let relative = format!("{:.2}", p50 / base);
        row(&[&[site.way.name().to_owned()], &figures[..], &[relative]].concat());
    }
}

/// The time until the replacement of a pod exists.
async fn lose_one(cluster: &FakeCluster) -> Duration {
    tokio::time::sleep(REST).await;
    cluster.with(|model| {
        let pod = model.objects(Kind::Pod).next().expect("there are pods");
        let name = pod["metadata"]["name"].as_str().expect("it has one");
        let name = name.to_owned();
        let deleted = model.delete(Kind::Pod, "default", &name, &DeleteOptions::default());
        deleted.expect("it is there");
    });
    let start = Instant::now();
    until(cluster, |model| {
        model.objects(Kind::Pod).count() == REPLICAS
    })
    .await;
    start.elapsed()
}

async fn until(cluster: &FakeCluster, is_so: impl Fn(&agent_fake::Cluster) -> bool) {
    loop {
        let changed = cluster.changed();
        if cluster.with(|model| is_so(model)) {
            return;
        }
        changed.await;
    }
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::OwnTcp => "one process, TCP",
            Self::Unix => "two processes, Unix socket",
            Self::Tcp => "two processes, TCP",
        }
    }

    /// A runtime like that of `decree up`, or like that of `decree-agent`.
    fn runtime(self) -> Runtime {
        let mut builder = match self {
            Self::OwnTcp => Builder::new_multi_thread(),
            Self::Unix | Self::Tcp => Builder::new_current_thread(),
        };
        let runtime = builder.worker_threads(2).enable_all().build();
        runtime.expect("a runtime")
    }
}

impl Site {
    fn open(way: Way) -> Self {
        let runtime = way.runtime();
        let (connector, process) = match way {
            Way::OwnTcp => (runtime.block_on(serve()), None),
            Way::Unix | Way::Tcp => {
                let (connector, server, folder) = start(way);
                (connector, Some((server, folder)))
            }
        };
        let cluster = runtime.block_on(attend(connector));
        Self {
            way,
            times: Vec::with_capacity(LOSSES),
            cluster,
            runtime,
            _process: process,
        }
    }
}

/// Starts a server in this process.
async fn serve() -> Connector {
    let server = Server::bind(Config::embedded()).await.expect("free ports");
    let connector = Connector::local(&server.addresses().grpc);
    tokio::spawn(server.serve(CancellationToken::new()));
    connector
}

/// Starts a server as a process.
fn start(way: Way) -> (Connector, DecisionServer, TempDir) {
    let folder = TempDir::with_prefix("decree-bench-").expect("there is room");
    let path = folder.path().join("server.sock");
    let listen = match way {
        Way::Unix => format!("unix:{}", path.display()),
        Way::OwnTcp | Way::Tcp => "127.0.0.1:0".to_owned(),
    };
    let server = DecisionServer::start_in(binaries::folder(), &listen, &[]);
    let endpoint = match server.url().strip_prefix("http://") {
        Some(address) => ListenEndpoint::Tcp(address.parse().expect("it is one")),
        None => ListenEndpoint::Unix(path),
    };
    (Connector::local(&endpoint), server, folder)
}

/// Starts a cluster and an agent, and returns after the ReplicaSet has its pods.
async fn attend(connector: Connector) -> FakeCluster {
    let config = agent_fake::ClusterConfig {
        kubelet: Kubelet::idle(),
        ..agent_fake::ClusterConfig::default()
    };
    let cluster = FakeCluster::start(config, Vec::new()).expect("it is empty");
    let replicas = i32::try_from(REPLICAS).expect("few");
    let set = replica_set("web").replicas(replicas).build();
    cluster
        .with(|model| model.create(set))
        .expect("it is valid");
    let mut config = decree_agent::ShellConfig::new(connector);
    config.agent.options = objects::replacing_at_once();
    let agent = decree_agent::run(config, cluster.clone(), CancellationToken::new());
    tokio::spawn(agent);
    until(&cluster, |model| {
        model.objects(Kind::Pod).count() == REPLICAS
    })
    .await;
    cluster
}
