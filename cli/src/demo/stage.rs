//! A server, an agent and an embedded cluster, started and stopped in order.

use std::{error::Error, net::SocketAddr, time::Duration};

use agent_fake::{ApiError, Cluster};
use agent_kube::KubeCluster;
use decree_agent::{
    Admin, AdminServer, AgentArgs, FakeCluster, KubernetesError, Mode, manifest::Document,
};
use decree_server::{Addresses, ServeError};
use jiff::Timestamp;
use otlp::{Exporter, OtlpArgs, Tracer};
use prometheus_client::registry::Registry;
use runtime::{ListenAddr, failure::chain};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use transport::Connector;

use super::{control, feed::Feed};
use crate::{
    exit::{Exit, Failure},
    input::InputError,
    plain::is_plain,
    server::{Bearer, Server},
};

/// What the cluster is called.
pub(super) const CLUSTER: &str = "demo";
/// How long calls in flight and the session have to end: they are all in this process.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is put into an embedded cluster before the agent sees it.
pub(crate) type Prepare = fn(&mut Cluster) -> Result<(), ApiError>;

/// Where server and agent listen, and what the embedded cluster draws from.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) agent_admin: ListenAddr,
    pub(crate) seed: u64,
    /// Where traces of both go.
    pub(crate) otlp: OtlpArgs,
}

/// An embedded cluster, and what runs for it. Ended by [`Stage::close`].
#[derive(Debug)]
pub(crate) struct Stage {
    pub(super) cluster: FakeCluster,
    pub(super) running: Running,
}

/// A server and an agent that run. Ended by [`Running::close`].
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) addresses: Addresses,
    /// The admin address of the agent, if it has one.
    pub(crate) agent_admin: Option<SocketAddr>,
    pub(crate) feed: Feed,
    /// A client of the server.
    pub(crate) client: Server,
    server: Part<ServeError>,
    agent: Part<KubernetesError>,
    admin: Option<AdminServer>,
}

/// A task that runs until it is told to stop.
#[derive(Debug)]
struct Part<E> {
    name: &'static str,
    task: JoinHandle<Result<(), E>>,
    stop: CancellationToken,
}

/// A server that runs, and the way to it.
struct Served {
    addresses: Addresses,
    connector: Connector,
    client: Server,
    feed: Feed,
    part: Part<ServeError>,
}

// === impl Stage ===

impl Stage {
    /// Starts everything. The cluster begins with `objects`, and with what `prepare` adds before the agent sees it.
    pub(crate) async fn open(
        site: Site,
        mode: Mode,
        objects: Vec<Document>,
        prepare: Prepare,
    ) -> Result<Self, Failure> {
        let config = cluster_config(site.seed);
        let cluster = FakeCluster::start(config, objects).map_err(InputError::from)?;
        cluster.with(prepare).map_err(|error| {
            let cause = format!(
                "the embedded cluster refused its objects: {}",
                error.message
            );
            Failure::new(Exit::No, cause)
        })?;
        let routes = match site.admin.ip().is_loopback() {
            true => control::routes(cluster.clone()),
            false => axum::Router::new(),
        };
        let mut registry = Registry::default();
        let (tracer, exporter) = agent_tracer(&site, &mut registry)?;
        let agent_admin = site.agent_admin;
        let served = Served::start(site, routes).await?;
        let mut config = decree_agent::Config::new(served.connector.clone());
        config.agent.instance = format!("{CLUSTER}-agent");
        config.agent.cluster_name = CLUSTER.to_owned();
        config.agent.mode = mode.into();
        config.tracer = tracer;
        let admin = Admin::new(&config, registry).of_fake(&cluster);
        let admin = serve_admin(admin, agent_admin).await?;
        let handle = cluster.clone();
        let agent = Part::start("agent", async |stop| {
            let ended = decree_agent::run(config, handle, stop).await;
            exporter.finish().await;
            Ok(ended?)
        });
        let running = served.with(agent, admin);
        Ok(Self { cluster, running })
    }

    /// Ends everything.
    pub(super) async fn close(self) -> Result<(), Failure> {
        let Self { cluster, running } = self;
        let closed = running.close().await;
        drop(cluster);
        closed
    }
}

// === impl Running ===

impl Running {
    /// Starts a server, and an agent of a real cluster.
    pub(crate) async fn attend(
        site: Site,
        cluster: KubeCluster,
        mut args: AgentArgs,
    ) -> Result<Self, Failure> {
        let mut registry = Registry::default();
        let (tracer, exporter) = agent_tracer(&site, &mut registry)?;
        let agent_admin = site.agent_admin;
        let served = Served::start(site, axum::Router::new()).await?;
        if args.cluster_name.is_empty() {
            let context = cluster.target().context.as_deref();
            args.cluster_name = context.map(cluster_name).unwrap_or_default();
        }
        let mut config = decree_agent::Config::new(served.connector.clone());
        let (instance, seed) = decree_agent::identity();
        config.agent = args.agent_config(instance, seed);
        config.tracer = tracer;
        let admin = Admin::new(&config, registry).of_kubernetes(&cluster);
        let admin = serve_admin(admin, agent_admin).await?;
        let agent = Part::start("agent", |stop| async move {
            let ended = decree_agent::run_on_kubernetes(&args, config, cluster, stop).await;
            exporter.finish().await;
            ended
        });
        Ok(served.with(agent, admin))
    }

    /// Returns whether both still run.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.agent.check()?;
        self.server.check()
    }

    /// Ends the agent, so that its calls and its session end in peace, and then the server.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        let Self {
            feed,
            client,
            server,
            agent,
            admin,
            ..
        } = self;
        let agent = agent.end().await;
        if let Some(admin) = admin {
            // Everything ends: that the port failed before is no news.
            let _ = admin.end().await;
        }
        drop((feed, client));
        let server = server.end().await;
        agent.and(server)
    }
}

/// Returns the name of the cluster of a context: a kubeconfig may call it by characters that a cluster's name must not have.
fn cluster_name(context: &str) -> String {
    let plain = context.chars().map(|c| if is_plain(c) { c } else { '-' });
    let plain: String = plain.take(128).collect();
    let is_end = |c: char| !c.is_ascii_alphanumeric();
    plain.trim_matches(is_end).to_owned()
}

// === impl Served ===

impl Served {
    /// Starts a server that has these routes on its admin port as well.
    async fn start(site: Site, routes: axum::Router) -> Result<Self, Failure> {
        let config = decree_server::Config {
            listen: site.listen.into(),
            admin: ListenAddr::At(site.admin),
            drain_deadline: DRAIN_MAX,
            session_seed: Some(site.seed),
            otlp: site.otlp,
            ..decree_server::Config::embedded()
        };
        let server = decree_server::Server::bind(config).await.map_err(|error| {
            Failure::new(
                Exit::No,
                format!("the server cannot start: {}", chain(&error)),
            )
            .hint("use free ports: --listen 127.0.0.1:0 --admin 127.0.0.1:0")
        })?;
        let addresses = server.addresses().clone();
        let connector = server.connector();
        let server = server.with_admin_routes(routes);
        let part = Part::start("server", |stop| server.serve(stop));
        let client = Server::connect_by(connector.clone(), Bearer::none(), PATIENCE).await?;
        let feed = Feed::open(&client).await?;
        Ok(Self {
            addresses,
            connector,
            client,
            feed,
            part,
        })
    }

    fn with(
        self,
        agent: Part<KubernetesError>,
        admin: Option<(SocketAddr, AdminServer)>,
    ) -> Running {
        let Self {
            addresses,
            client,
            feed,
            part: server,
            ..
        } = self;
        let (agent_admin, admin) = admin.unzip();
        Running {
            addresses,
            agent_admin,
            feed,
            client,
            server,
            agent,
            admin,
        }
    }
}

/// Starts what makes the agent's spans. What that counts is in `registry` then, and that there is no TLS within the process.
fn agent_tracer(site: &Site, registry: &mut Registry) -> Result<(Tracer, Exporter), Failure> {
    transport::Metrics::default().register(registry);
    let version = env!("CARGO_PKG_VERSION");
    let started = Tracer::start(&site.otlp, "decree-agent", version, registry);
    started.map_err(|error| Failure::new(Exit::Usage, chain(&error)))
}

/// Opens and serves the admin port of the agent, if it has one.
async fn serve_admin(
    admin: Admin,
    listen: ListenAddr,
) -> Result<Option<(SocketAddr, AdminServer)>, Failure> {
    let failed = |error: &dyn Error| {
        let cause = format!("the agent cannot start: {}", chain(error));
        Failure::new(Exit::No, cause).hint("use a free port: --agent-admin 127.0.0.1:0")
    };
    let opened = listen.open("agent-admin", "--agent-admin").await;
    let Some(listener) = opened.map_err(|error| failed(&error))? else {
        return Ok(None);
    };
    let address = listener.local_addr().map_err(|error| failed(&error))?;
    Ok(Some((address, admin.serve(listener))))
}

/// Returns a cluster in a hurry: what takes minutes elsewhere takes a second here.
fn cluster_config(seed: u64) -> agent_fake::Config {
    let millis = Duration::from_millis;
    agent_fake::Config {
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
            evict_after: millis(900),
            // It comes back before anyone takes it out of the cluster.
            remove_after: Duration::MAX,
        },
        ..agent_fake::Config::default()
    }
}

// === impl Part ===

impl<E: Error + Send + 'static> Part<E> {
    fn start<F>(name: &'static str, run: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        Self {
            name,
            task: tokio::spawn(run(stop.clone())),
            stop,
        }
    }

    fn check(&self) -> Result<(), Failure> {
        match self.task.is_finished() {
            true => Err(
                Failure::new(Exit::No, format!("the {} stopped unexpectedly", self.name))
                    .hint("run again with --log-level info to see why"),
            ),
            false => Ok(()),
        }
    }

    async fn end(self) -> Result<(), Failure> {
        self.stop.cancel();
        let ended: Result<Result<(), E>, JoinError> = self.task.await;
        let failed = |error: &dyn Error| {
            Failure::new(
                Exit::No,
                format!("the {} failed: {}", self.name, chain(error)),
            )
        };
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(&error)),
            Err(error) => Err(failed(&error)),
        }
    }
}
