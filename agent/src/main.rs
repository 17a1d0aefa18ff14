//! `decree-agent`: wraps a cluster, streams it to a decision server, executes what comes back.

use std::{env, error::Error, process::ExitCode, sync::Arc};

use decree_agent::{AgentArgs, ClusterKind, Config, FakeCluster, Metrics, manifest};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use runtime::{Readiness, admin};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> ExitCode {
    let args: AgentArgs = match runtime::config::parse(env::args_os()) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    match start(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

async fn start(args: AgentArgs) -> Result<(), Box<dyn Error>> {
    args.log.init()?;
    let shutdown = runtime::shutdown::on_signal()?;
    let cluster = match args.cluster {
        ClusterKind::Fake => {
            let manifests = manifest::read(&args.fake.manifests)?;
            FakeCluster::start(args.fake.fake_config(Timestamp::now()), manifests)?
        }
    };
    let metrics = Metrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let readiness = Readiness::not_ready("no session");
    let listener = runtime::listen("admin", args.admin).await?;
    let router = admin::router(readiness.clone(), Arc::new(registry));
    let admin_stop = CancellationToken::new();
    let admin = tokio::spawn(admin::serve(listener, router, admin_stop.clone()));

    let (instance, seed) = identity();
    let agent = args.agent_config(instance, seed);
    let config = Config {
        server: args.server,
        agent,
        metrics,
        readiness,
    };
    decree_agent::run(config, cluster, shutdown).await?;
    admin_stop.cancel();
    admin.await??;
    Ok(())
}

/// Returns a name that no other process has, and a seed for the jitter from the same source.
fn identity() -> (String, u64) {
    let nanos = Timestamp::now().as_nanosecond().unsigned_abs();
    let process = std::process::id();
    let seed = u64::try_from(nanos % u128::from(u64::MAX)).unwrap_or(0) ^ u64::from(process);
    (format!("agent-{process}-{seed:016x}"), seed)
}

/// Says on standard error why the process ends, causes included: the log may not be there yet.
fn report(error: &dyn Error) {
    eprintln!("error: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
}
