//! A server, an agent and an embedded cluster, started and stopped in order.

use std::{error::Error, time::Duration};

use agent_fake::ApiError;
use decree_agent::{FakeCluster, RunError, manifest::Document};
use decree_server::{Addresses, ServeError};
use jiff::Timestamp;
use runtime::{ListenAddr, failure::chain};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use transport::Connector;

use super::feed::Feed;
use crate::{
    args::DemoArgs,
    exit::{Exit, Failure},
    input::InputError,
    server::{Bearer, Server},
};

/// What the cluster is called.
pub(super) const CLUSTER: &str = "demo";
/// How long calls in flight and the session have to end: they are all in this process.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Everything that runs. Ended by [`Stage::close`].
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) cluster: FakeCluster,
    pub(super) addresses: Addresses,
    pub(super) feed: Feed,
    /// A client of the server.
    pub(super) client: Server,
    server: Part<ServeError>,
    agent: Part<RunError>,
}

/// A task that runs until it is told to stop.
#[derive(Debug)]
struct Part<E> {
    name: &'static str,
    task: JoinHandle<Result<(), E>>,
    stop: CancellationToken,
}

// === impl Stage ===

impl Stage {
    /// Starts everything. The cluster begins with `objects`, and with what `prepare` adds before the agent sees it.
    pub(super) async fn open(
        args: &DemoArgs,
        objects: Vec<Document>,
        prepare: impl FnOnce(&mut agent_fake::Cluster) -> Result<(), ApiError>,
    ) -> Result<Self, Failure> {
        let cluster = FakeCluster::start(cluster_config(), objects).map_err(InputError::from)?;
        cluster.with(prepare).map_err(|error| {
            let cause = format!(
                "the embedded cluster refused its objects: {}",
                error.message
            );
            Failure::new(Exit::No, cause)
        })?;
        let config = decree_server::Config {
            listen: args.listen.into(),
            admin: ListenAddr::At(args.admin),
            drain_deadline: DRAIN_MAX,
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
        let connector = Connector::local(&addresses.grpc);
        let server = Part::start("server", |stop| server.serve(stop));
        let client = Server::connect_by(connector.clone(), Bearer::none(), PATIENCE).await?;
        let feed = Feed::open(&client).await?;
        let mut config = decree_agent::Config::new(connector);
        config.agent.instance = format!("{CLUSTER}-agent");
        config.agent.cluster_name = CLUSTER.to_owned();
        let handle = cluster.clone();
        let agent = Part::start("agent", |stop| decree_agent::run(config, handle, stop));
        Ok(Self {
            cluster,
            addresses,
            feed,
            client,
            server,
            agent,
        })
    }

    /// Returns whether both still run.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.agent.check()?;
        self.server.check()
    }

    /// Ends the agent, so that its calls and its session end in peace, and then the server.
    pub(super) async fn close(self) -> Result<(), Failure> {
        let Self {
            cluster,
            feed,
            client,
            server,
            agent,
            ..
        } = self;
        let agent = agent.end().await;
        drop((feed, client));
        let server = server.end().await;
        drop(cluster);
        agent.and(server)
    }
}

/// Returns a cluster in a hurry: what takes minutes elsewhere takes a second here.
fn cluster_config() -> agent_fake::Config {
    let millis = Duration::from_millis;
    agent_fake::Config {
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
