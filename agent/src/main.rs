//! `decree-agent`: wraps a cluster, streams it to a decision server, executes what comes back.

use std::{env, error::Error, process::ExitCode, sync::Arc};

use decree_agent::{
    AgentArgs, ClusterKind, Config, FakeCluster, KubeCluster, Metrics, cluster::kube, manifest,
};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use runtime::{Readiness, admin, failure};
use tokio_util::sync::CancellationToken;

/// A decision is many small allocations, for which the allocator of the system is slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The agent waits far more than it works, and what it does for a pod crosses several tasks: on one thread they wake each other for
/// nothing. It bears more pods a second so than an API server creates.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: AgentArgs = match runtime::config::parse(env::args_os()) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    match start(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            failure::report(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

async fn start(args: AgentArgs) -> Result<(), Box<dyn Error>> {
    args.log.init()?;
    let shutdown = runtime::shutdown::on_signal()?;
    let metrics = Metrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let readiness = Readiness::not_ready("no session");
    let admin_stop = CancellationToken::new();
    let admin = args.admin.open("admin", "--admin").await?.map(|listener| {
        let router = admin::router(readiness.clone(), Arc::new(registry));
        tokio::spawn(admin::serve(listener, router, admin_stop.clone()))
    });

    let (instance, seed) = identity();
    let config = Config {
        server: args.server.clone(),
        agent: args.agent_config(instance, seed),
        metrics,
        readiness,
    };
    match args.cluster_kind(kube::in_pod()) {
        ClusterKind::Kube => run_on_kube(&args, config, shutdown).await?,
        ClusterKind::Fake => {
            let manifests = manifest::read(&args.fake.manifests)?;
            let fake = args.fake.fake_config(Timestamp::now());
            let cluster = FakeCluster::start(fake, manifests)?;
            decree_agent::run(config, cluster, shutdown).await?;
        }
    }
    admin_stop.cancel();
    if let Some(admin) = admin {
        admin.await??;
    }
    Ok(())
}

async fn run_on_kube(
    args: &AgentArgs,
    mut config: Config,
    shutdown: CancellationToken,
) -> Result<(), Box<dyn Error>> {
    let cluster = KubeCluster::connect(&args.kube_config()).await?;
    config.agent.api_version = args.kube.resource.api_version();
    if !args.kube.leader_elect {
        return Ok(decree_agent::run(config, cluster, shutdown).await?);
    }
    let instance = config.agent.instance.clone();
    let lease = args.lease_config(instance, cluster.own_namespace());
    // Who stands by does all that it should.
    config.readiness.set(Ok(()));
    let act = |epoch, led| {
        config.agent.epoch = epoch;
        Box::pin(decree_agent::run(config, led, shutdown.clone()))
    };
    decree_agent::lead(lease, cluster, shutdown.clone(), act)
        .await?
        .transpose()?;
    Ok(())
}

/// Returns a name that no other process has, and a seed for the jitter from the same source.
fn identity() -> (String, u64) {
    let nanos = Timestamp::now().as_nanosecond().unsigned_abs();
    let process = std::process::id();
    let seed = u64::try_from(nanos % u128::from(u64::MAX)).unwrap_or(0) ^ u64::from(process);
    (format!("agent-{process}-{seed:016x}"), seed)
}
