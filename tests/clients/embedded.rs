//! The bundled agent with an embedded cluster that outlives it.

use std::io;

use conformance::{Running, Subject};
use decree_agent::FakeCluster;
use service::transport::{Connector, ListenEndpoint};
use tests::builders::{brisk_cluster, replica_set};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// The ReplicaSet that the conformance kit finds.
const NAME: &str = "web";

/// An embedded cluster. Agents for it are started one after the other.
pub(crate) struct Embedded(FakeCluster);

/// An agent on a separate thread. Dropping this ends all its tasks immediately.
pub(crate) struct Attending {
    runtime: Option<Runtime>,
    agent: JoinHandle<()>,
    stop: CancellationToken,
}

impl Embedded {
    pub(crate) fn new() -> Self {
        let cluster = FakeCluster::start(brisk_cluster(), Vec::new()).expect("it is empty");
        let set = replica_set(NAME).replicas(0).build();
        cluster.with(|cluster| cluster.create(set)).expect("valid");
        Self(cluster)
    }
}

impl Subject for Embedded {
    type Running = Attending;

    fn start(&self, address: &str, replicas: usize) -> io::Result<Attending> {
        let replicas = i32::try_from(replicas).map_err(io::Error::other)?;
        let scaled = self
            .0
            .with(|cluster| cluster.scale("default", NAME, replicas));
        scaled.map_err(|error| io::Error::other(error.message))?;
        let address = address.parse().map_err(io::Error::other)?;
        let server = Connector::local(&ListenEndpoint::Tcp(address));
        let config = decree_agent::ShellConfig::new(server);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let stop = CancellationToken::new();
        let agent = decree_agent::run(config, self.0.clone(), stop.clone());
        let agent = runtime.spawn(async { drop(agent.await) });
        Ok(Attending {
            runtime: Some(runtime),
            agent,
            stop,
        })
    }
}

impl Running for Attending {
    fn stop(&mut self) -> io::Result<()> {
        self.stop.cancel();
        Ok(())
    }

    fn has_ended(&mut self) -> bool {
        self.agent.is_finished()
    }
}

impl Drop for Attending {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
