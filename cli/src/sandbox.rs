//! A server and an agent in this process, of an embedded cluster or of a real one.
//!
//! ```text
//! acts ─▶ embedded cluster ◀─▶ agent ◀─ gRPC ─▶ server
//! ```
//! `decree up` keeps them running, and `decree demo` runs commands on them. Each runs on the threads that started it.

use std::{error::Error, net::SocketAddr, time::Duration};

use agent_core::{
    agent::AgentConfig, asking::CostKind, budget::BudgetConfig, nodes::NodeFields,
    preferences::PreferencePolicy,
};
use agent_kube::KubeCluster;
use decree_agent::{AgentArgs, FakeCluster, Mode, ShellConfig};
use decree_server::{Addresses, ServeError};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use service::{Fault, ListenAddr, failure::chain, transport::Connector};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    exit::{Exit, Failure},
    server::{Bearer, Server},
};

pub(crate) mod act;
pub(crate) mod beginning;

pub(crate) const CLUSTER: &str = "demo";
/// The interval of repeated checks.
pub(crate) const AGAIN: Duration = Duration::from_millis(20);
/// The timeout for calls in flight and the session at the end: all are in this process.
const DRAIN_MAX: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(5);

/// The addresses of a server, and the seed of its session ids. On a real cluster, they are random: they are the beginning of pod names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerSettings {
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) seed: Option<u64>,
}

/// A task that runs until it is told to stop.
#[derive(Debug)]
struct Part {
    name: &'static str,
    task: JoinHandle<Result<(), String>>,
    stop: CancellationToken,
}

/// The cluster of an agent; a real one with the flags of the agent.
pub(crate) enum Cluster {
    Embedded(FakeCluster),
    Real(Box<KubeCluster>, Box<AgentArgs>),
}

#[derive(Debug)]
pub(crate) struct RunningServer {
    pub(crate) addresses: Addresses,
    pub(crate) connector: Connector,
    part: Part,
}

#[derive(Debug)]
pub(crate) struct RunningAgent {
    pub(crate) admin: Option<SocketAddr>,
    _port: Option<AbortOnDropHandle<()>>,
    part: Part,
}

pub(crate) fn threads(count: usize) -> Result<Runtime, Failure> {
    let threads = Builder::new_multi_thread()
        .worker_threads(count)
        .enable_all()
        .build();
    threads.map_err(|error| Failure::new(Exit::No, format!("cannot start threads: {error}")))
}

/// The token that a signal to end cancels.
pub(crate) fn on_signal() -> Result<CancellationToken, Failure> {
    service::shutdown::on_signal(None)
        .map_err(|error| Failure::new(Exit::No, format!("cannot install signal handlers: {error}")))
}

/// Sets up the logs of server and agent, if there is a level.
pub(crate) fn log(log_level: Option<&service::Filter>) {
    if let Some(log_level) = log_level.cloned() {
        let log_format = service::Format::Auto;
        let log = service::LogArgs {
            log_format,
            log_level,
        };
        // In a process that runs several commands, the first has set up the logs.
        let _ = log.init();
    }
}

/// A cluster with short delays: seconds instead of minutes.
pub(crate) fn cluster_config(seed: u64) -> agent_fake::ClusterConfig {
    let millis = Duration::from_millis;
    agent_fake::ClusterConfig {
        seed,
        start: Timestamp::now(),
        kubelet: agent_fake::Kubelet {
            schedule_after: millis(50),
            start_after: millis(250),
            ready_after: millis(500),
            grace: millis(400),
            jitter: millis(150),
        },
        node_loss: agent_fake::NodeLoss {
            unknown_after: millis(300),
            // Time to see the cause that the server names.
            evict_after: Duration::from_secs(10),
            // The node comes back before its removal from the cluster.
            remove_after: Duration::MAX,
        },
        ..agent_fake::ClusterConfig::default()
    }
}

/// An agent of the embedded cluster.
pub(crate) fn agent_config(mode: Mode, budget: BudgetConfig) -> AgentConfig {
    let preferences = PreferencePolicy {
        cost_sources: [CostKind::Http].into(),
        ..PreferencePolicy::default()
    };
    AgentConfig {
        preferences,
        instance: format!("{CLUSTER}-agent"),
        cluster_name: CLUSTER.to_owned(),
        mode: mode.into(),
        budget,
        nodes: Some(NodeFields::default()),
        ..AgentConfig::default()
    }
}

impl RunningServer {
    /// Starts a server. If its admin port is on the loopback interface, the port takes acts on an embedded cluster.
    pub(crate) async fn start(
        settings: &ServerSettings,
        cluster: Option<&FakeCluster>,
    ) -> Result<Self, Failure> {
        let config = decree_server::Config {
            listen: settings.listen.into(),
            admin: ListenAddr::At(settings.admin),
            drain_deadline: DRAIN_MAX,
            session_seed: settings.seed,
            ..decree_server::Config::embedded()
        };
        let bound = decree_server::Server::bind(config).await;
        let server = bound.map_err(|error| {
            if error.is::<Fault>() {
                let failure = cannot_start("server", "it serves this machine only");
                return failure.hint("for other machines, run decree-server and decree-agent");
            }
            let failure = cannot_start("server", &chain(error.as_ref()));
            failure.hint("use free ports: --listen 127.0.0.1:0 --admin 127.0.0.1:0")
        })?;
        let addresses = server.addresses().clone();
        let connector = Connector::local(&addresses.grpc);
        let cluster = cluster.filter(|_| settings.admin.ip().is_loopback());
        let routes = cluster.map_or_else(axum::Router::new, |it| act::routes(it.clone()));
        let stop = CancellationToken::new();
        let work = server.with_admin_routes(routes).serve(stop.clone());
        Ok(Self {
            addresses,
            connector,
            part: Part::start("server", stop, work),
        })
    }

    pub(crate) async fn client(&self) -> Result<Server, Failure> {
        Server::connect_by(self.connector.clone(), Bearer::default(), PATIENCE).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addresses.grpc)
    }
}

impl RunningAgent {
    pub(crate) async fn start(
        server: Connector,
        admin: ListenAddr,
        agent: AgentConfig,
        cluster: Cluster,
    ) -> Result<Self, Failure> {
        let mut registry = Registry::default();
        service::transport::Metrics::default().register_tls(&mut registry);
        let config = ShellConfig {
            agent,
            ..ShellConfig::new(server)
        };
        let failed = |error: &dyn Error| {
            let failure = cannot_start("agent", &chain(error));
            failure.hint("use a free port: --agent-admin 127.0.0.1:0")
        };
        let opened = admin.open("agent-admin", "--agent-admin").await;
        let listener = opened.map_err(|error| failed(&error))?;
        let stop = CancellationToken::new();
        let admin = listener.as_ref().map(|it| it.local_addr()).transpose();
        Ok(Self {
            admin: admin.map_err(|error| failed(&error))?,
            _port: listener.map(|it| decree_agent::serve_admin(&config, registry, it)),
            part: Part::start("agent", stop.clone(), async move {
                match cluster {
                    Cluster::Embedded(cluster) => {
                        let running = decree_agent::run(config, cluster, stop);
                        Box::pin(running).await
                    }
                    Cluster::Real(cluster, args) => {
                        let running =
                            decree_agent::run_on_kubernetes(&args, config, *cluster, stop);
                        Box::pin(running).await
                    }
                }
            }),
        })
    }
}

/// Waits until server or agent end by themselves.
pub(crate) async fn failed(server: &RunningServer, agent: &RunningAgent) -> Failure {
    loop {
        let mut parts = [&agent.part, &server.part].into_iter();
        if let Some(ended) = parts.find(|it| it.task.is_finished()) {
            let cause = format!("the {} stopped unexpectedly", ended.name);
            let failure = Failure::new(Exit::No, cause);
            return failure.hint("run again with --log-level info to see why");
        }
        sleep(AGAIN).await;
    }
}

/// Ends the agent first, so that its calls and its session end cleanly, and then the server. If a part has failed, its end says why, and
/// otherwise this returns `result`.
pub(crate) async fn close<T>(
    server: RunningServer,
    agent: RunningAgent,
    result: Result<T, Failure>,
) -> Result<T, Failure> {
    let ended = agent.part.end().await;
    let server = server.part.end().await;
    ended.and(server).and(result)
}

impl Part {
    /// Starts work that ends when `stop` is cancelled.
    fn start<E: Into<ServeError>>(
        name: &'static str,
        stop: CancellationToken,
        work: impl Future<Output = Result<(), E>> + Send + 'static,
    ) -> Self {
        let said = |error: ServeError| chain(error.as_ref());
        let work = async move { work.await.map_err(|error| said(error.into())) };
        let task = tokio::spawn(work);
        Self { name, task, stop }
    }

    async fn end(self) -> Result<(), Failure> {
        self.stop.cancel();
        let ended = self.task.await.unwrap_or_else(|error| Err(chain(&error)));
        ended.map_err(|cause| Failure::new(Exit::No, format!("the {} failed: {cause}", self.name)))
    }
}

fn cannot_start(name: &str, cause: &str) -> Failure {
    Failure::new(Exit::No, format!("the {name} cannot start: {cause}"))
}
