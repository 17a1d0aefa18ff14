//! An embedded cluster with a server and an agent, or a server and an agent of a real cluster, in this process.
//!
//! ```text
//! acts ─▶ embedded cluster ◀─▶ agent ◀─ gRPC ─▶ server ─▶ decisions
//! ```
//! `decree up` keeps it running, and `decree demo` is a script on it. Server and agent speak gRPC as two processes would. They
//! use a socket only if the server must be killable.

use std::{error::Error, net::SocketAddr, time::Duration};

use agent_fake::{ApiError, Cluster};
use agent_kube::KubeCluster;
use decree::v1;
use decree_agent::{
    Admin, AdminServer, AgentArgs, FakeCluster, KubernetesError, Mode, ShellConfig,
};
use jiff::Timestamp;
use manifest::Document;
use otlp::Tracer;
use prometheus_client::registry::Registry;
use runtime::failure::chain;
use tokio::{
    runtime::{Builder, Handle},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    exit::{Exit, Failure},
    plain::is_plain,
};

pub(crate) mod act;
pub(crate) mod beginning;
pub(crate) mod control;
mod decision_log;
pub(crate) mod missing;
mod server;
mod task;

pub(crate) use decision_log::DecisionLog;
use server::{Decided, RunningServer};
pub(crate) use server::{Settings, Threads};
use task::Task;

/// The name of the cluster.
pub(crate) const CLUSTER: &str = "demo";
/// The number of threads that server, agent and cluster share.
const WORKERS: usize = 2;
/// The interval of checks that everything still runs.
const TICK: Duration = Duration::from_millis(50);
/// How long the address of a killed server may stay in use.
const RESTART_MAX: Duration = Duration::from_secs(5);
/// The interval of repeated questions and attempts.
pub(crate) const AGAIN: Duration = Duration::from_millis(20);

/// Prepares an embedded cluster before the agent sees it.
pub(crate) type Prepare = fn(&mut Cluster) -> Result<(), ApiError>;

/// An embedded cluster, with its server and agent. Ended by [`Running::close`].
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) cluster: FakeCluster,
    pub(crate) running: Running,
    settings: Settings,
}

/// A running server and agent. Ended by [`Running::close`].
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) server: RunningServer,
    pub(crate) agent_admin: Option<SocketAddr>,
    agent: Task<KubernetesError>,
    admin: Option<AdminServer>,
}

pub(crate) fn on_threads<T>(
    everything: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::new(Exit::No, format!("cannot start threads: {error}")))?;
    runtime.block_on(everything)
}

/// The token that a signal to end cancels.
pub(crate) fn on_signal() -> Result<CancellationToken, Failure> {
    runtime::shutdown::on_signal(None)
        .map_err(|error| Failure::new(Exit::No, format!("cannot install signal handlers: {error}")))
}

/// Repeats a question until it has an answer; `None` if it has none in time.
pub(crate) async fn poll<T>(
    within: Duration,
    question: impl AsyncFn() -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let end = Instant::now() + within;
    loop {
        let answer = question().await?;
        if answer.is_some() || Instant::now() >= end {
            return Ok(answer);
        }
        sleep(AGAIN).await;
    }
}

/// Sets up the logs of server and agent, if there is a level.
pub(crate) fn log(log_level: Option<&runtime::Filter>) -> Option<runtime::Log> {
    let log = runtime::LogArgs {
        log_format: runtime::Format::Auto,
        log_level: log_level.cloned()?,
    };
    // In a process with several sandboxes, the first sandbox has set up the logs.
    log.init().ok()
}

// === impl Sandbox ===

impl Sandbox {
    /// Starts everything. The cluster begins with `objects` and the additions of `prepare`, before the agent sees it.
    pub(crate) async fn open(
        settings: Settings,
        mode: Mode,
        objects: Vec<Document>,
        prepare: Option<Prepare>,
    ) -> Result<Self, Failure> {
        let cluster = FakeCluster::start(cluster_config(settings.seed), objects)?;
        if let Some(prepare) = prepare {
            cluster.with(prepare).map_err(|error| {
                let cause = error.message;
                let cause = format!("the embedded cluster refused its objects: {cause}");
                Failure::new(Exit::No, cause)
            })?;
        }
        let routes = routes(&settings, &cluster);
        let running = Running::start(&settings, routes, |mut config, registry, stop| {
            config.agent.instance = format!("{CLUSTER}-agent");
            config.agent.cluster_name = CLUSTER.to_owned();
            config.agent.mode = mode.into();
            config.agent.budget = settings.budget;
            let admin = Admin::new(&config, registry).with_fake(&cluster);
            let cluster = cluster.clone();
            let work = Box::pin(async move {
                let ended = decree_agent::run(config, cluster, stop).await;
                ended.map_err(KubernetesError::from)
            });
            (admin, work)
        })
        .await?;
        Ok(Self {
            cluster,
            running,
            settings,
        })
    }

    /// Kills the server: it does not drain, sends nothing, and loses its state.
    pub(crate) fn kill_server(&mut self) {
        self.running.server.threads = None;
    }

    /// Starts another server at the addresses of the killed one.
    pub(crate) async fn start_server(&mut self) -> Result<(), Failure> {
        let addresses = &self.running.server.addresses;
        let settings = Settings {
            listen: addresses.grpc.tcp().unwrap_or(self.settings.listen),
            admin: addresses.admin.unwrap_or(self.settings.admin),
            // Another process draws other names.
            seed: self.settings.seed.wrapping_add(1),
            ..self.settings.clone()
        };
        let start =
            async || RunningServer::start(&settings, routes(&settings, &self.cluster)).await;
        // The threads of the killed server end later, and with them its sockets.
        let started = poll(RESTART_MAX, async || Ok(start().await.ok())).await?;
        self.running.server = match started {
            Some(server) => server,
            None => start().await?,
        };
        Ok(())
    }
}

// === impl Running ===

impl Running {
    /// Starts a server, and an agent of a real cluster.
    pub(crate) async fn of_real_cluster(
        settings: &Settings,
        cluster: KubeCluster,
        mut args: AgentArgs,
    ) -> Result<Self, Failure> {
        if args.cluster_name.is_empty() {
            let context = cluster.target().context.as_deref();
            args.cluster_name = context.map(cluster_name).unwrap_or_default();
        }
        Self::start(
            settings,
            axum::Router::new(),
            |mut config, registry, stop| {
                let (instance, seed) = decree_agent::identity();
                config.agent = args.agent_config(instance, seed);
                let admin = Admin::new(&config, registry).with_kubernetes(&cluster);
                let work = Box::pin(async move {
                    decree_agent::run_on_kubernetes(&args, config, cluster, stop).await
                });
                (admin, work)
            },
        )
        .await
    }

    /// Starts a server with additional routes on its admin port, and the agent whose admin port and work `agent` returns.
    async fn start<F>(
        settings: &Settings,
        routes: axum::Router,
        agent: impl FnOnce(ShellConfig, Registry, CancellationToken) -> (Admin, F),
    ) -> Result<Self, Failure>
    where
        F: Future<Output = Result<(), KubernetesError>> + Send + 'static,
    {
        let mut registry = Registry::default();
        transport::Metrics::default().register_tls(&mut registry);
        let version = env!("CARGO_PKG_VERSION");
        let tracer = Tracer::start(&settings.otlp, "decree-agent", version, &mut registry);
        let (tracer, exporter) =
            tracer.map_err(|error| Failure::new(Exit::Usage, chain(&error)))?;
        let server = RunningServer::start(settings, routes).await?;
        let mut config = ShellConfig::new(server.connector.clone());
        config.tracer = tracer;
        let stop = CancellationToken::new();
        let (admin, work) = agent(config, registry, stop.clone());
        let (agent_admin, admin) = serve_admin(admin, settings).await?.unzip();
        let agent = Task::start("agent", &Handle::current(), stop, async move {
            let ended = work.await;
            exporter.finish().await;
            ended
        });
        Ok(Self {
            server,
            agent_admin,
            agent,
            admin,
        })
    }

    /// The addresses of server and agent, and the first of the commands to try. `end` says what a signal does.
    pub(crate) fn introduction(&self, end: &str) -> String {
        let decree_server::Addresses { grpc, admin, .. } = &self.server.addresses;
        let console = admin.map(|admin| format!("\nConsole: http://{admin}/console/\n"));
        let agent = self.agent_admin;
        let agent = agent.map(|agent| format!("Agent:   http://{agent}/metrics\n"));
        format!(
            "{}{}\nEverything keeps running until Ctrl-C or SIGTERM{end}. In another terminal, try:\n  \
             export DECREE_SERVER=http://{grpc}\n",
            console.unwrap_or_default(),
            agent.unwrap_or_default(),
        )
    }

    /// The next decision, or `None` after a moment.
    ///
    /// # Errors
    /// If server or agent have ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Decided>, Failure> {
        self.agent.check()?;
        self.server.task.check()?;
        Ok(timeout(TICK, self.server.feed.next()).await.ok())
    }

    /// The session, once the server has seen all objects of the cluster.
    pub(crate) async fn synced(&self) -> Result<Option<v1::SessionSummary>, Failure> {
        let sessions = self.server.client.sessions("").await?.sessions;
        Ok(sessions.into_iter().find(|session| session.synced))
    }

    /// Ends the agent first, so that its calls and its session end cleanly, and then the server. If a part has failed, its end says
    /// why, and otherwise this returns `result`.
    pub(crate) async fn close<T>(self, result: Result<T, Failure>) -> Result<T, Failure> {
        let Self {
            server,
            agent,
            admin,
            ..
        } = self;
        let agent = agent.end().await;
        if let Some(admin) = admin {
            // An earlier failure of the port does not matter at the end.
            let _ = admin.end().await;
        }
        let server = server.end().await;
        agent.and(server).and(result)
    }
}

/// The routes of other processes to the embedded cluster, if the admin port is on the loopback interface.
fn routes(settings: &Settings, cluster: &FakeCluster) -> axum::Router {
    if settings.admin.ip().is_loopback() {
        control::routes(cluster.clone())
    } else {
        axum::Router::new()
    }
}

/// The name of the cluster of a context. A kubeconfig may use characters that the name of a cluster must not have.
fn cluster_name(context: &str) -> String {
    let plain = context.chars().map(|c| if is_plain(c) { c } else { '-' });
    let plain: String = plain.take(128).collect();
    let is_end = |c: char| !c.is_ascii_alphanumeric();
    plain.trim_matches(is_end).to_owned()
}

/// Opens and serves the admin port of the agent, if it has one.
async fn serve_admin(
    admin: Admin,
    settings: &Settings,
) -> Result<Option<(SocketAddr, AdminServer)>, Failure> {
    let failed = |error: &dyn Error| {
        let cause = format!("the agent cannot start: {}", chain(error));
        Failure::new(Exit::No, cause).hint("use a free port: --agent-admin 127.0.0.1:0")
    };
    let listen = settings.agent_admin;
    let opened = listen.open("agent-admin", "--agent-admin").await;
    let Some(listener) = opened.map_err(|error| failed(&error))? else {
        return Ok(None);
    };
    let address = listener.local_addr().map_err(|error| failed(&error))?;
    Ok(Some((address, admin.serve(listener))))
}

/// A cluster with short delays: seconds instead of minutes.
fn cluster_config(seed: u64) -> agent_fake::ClusterConfig {
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
