//! `decree-agent`: wraps a cluster, streams it to a decision server, executes what comes back.

use std::{env, process::ExitCode};

use agent_kube::KubeCluster;
use clap::{CommandFactory as _, error::ErrorKind};
use decree_agent::{AgentArgs, AgentError, Cluster as _, ClusterKind, FakeCluster, ShellConfig};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use service::failure;
use service::transport::Metrics;
use tracing::{info, warn};

/// A decision makes many small allocations, for which the system's allocator is slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

enum ConnectedCluster {
    Kubernetes(Box<KubeCluster>),
    Fake(FakeCluster),
}

/// The agent waits far more than it works, and the work for a pod crosses several tasks. One thread avoids the cost of waking other
/// threads, and handles more pods a second than an API server creates.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: AgentArgs = match service::config::parse(env::args_os()) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    let kind = match args.cluster_kind(agent_kube::is_configured()) {
        Ok(kind) => kind,
        Err(error) => AgentArgs::command()
            .error(ErrorKind::MissingRequiredArgument, error)
            .exit(),
    };
    match Box::pin(start(args, kind)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            failure::report(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

async fn start(args: AgentArgs, kind: ClusterKind) -> Result<(), AgentError> {
    args.log.init()?;
    failure::end_on_panic(agent_kube::catches_panic);
    let shutdown = service::shutdown::on_signal(None)?;
    let (instance, seed) = decree_agent::identity();
    let cluster = connect_cluster(&args, kind, seed).await?;
    let mut registry = Registry::default();
    let metrics = Metrics::default();
    metrics.register_tls(&mut registry);
    let (server, ranker) = args.connectors(&metrics)?;
    let config = ShellConfig {
        token: args.token_file.clone(),
        ranker,
        agent: args.agent_config(instance, seed),
        ..ShellConfig::new(server)
    };
    let listener = args.admin.open("admin", "--admin").await?;
    let _admin = listener.map(|it| decree_agent::serve_admin(&config, registry, it));
    match cluster {
        ConnectedCluster::Kubernetes(cluster) => {
            decree_agent::run_on_kubernetes(&args, config, *cluster, shutdown).await?;
        }
        ConnectedCluster::Fake(cluster) => decree_agent::run(config, cluster, shutdown).await?,
    }
    Ok(())
}

/// Connects to the cluster, and names it in the first line of the log.
async fn connect_cluster(
    args: &AgentArgs,
    kind: ClusterKind,
    seed: u64,
) -> Result<ConnectedCluster, AgentError> {
    let namespaces = match args.namespaces.join(",") {
        all if all.is_empty() => "all".to_owned(),
        some => some,
    };
    let server = args.server.to_string();
    match kind {
        ClusterKind::Kubernetes => {
            let cluster = KubeCluster::connect(&args.kube_config()).await?;
            let agent_kube::Target {
                api_server,
                context,
                credentials,
                ..
            } = cluster.target();
            info!(
                kind = "kubernetes",
                api_server,
                context,
                credentials,
                namespaces,
                server,
                "connected to a Kubernetes cluster"
            );
            Ok(ConnectedCluster::Kubernetes(Box::new(cluster)))
        }
        ClusterKind::Fake => {
            let contents = agent_fake::manifest::read(&args.fake.manifests)?;
            for notice in &contents.notices {
                warn!("{notice}");
            }
            let fake = args.fake.fake_config(Timestamp::now(), seed);
            let nodes = fake.nodes.len();
            let cluster = FakeCluster::start(fake, contents.documents)?;
            let uid = cluster.uid().await?;
            info!(
                kind = "fake",
                uid, nodes, namespaces, server, "connected to an embedded cluster"
            );
            Ok(ConnectedCluster::Fake(cluster))
        }
    }
}
