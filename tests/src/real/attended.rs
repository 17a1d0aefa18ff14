//! A cluster with Decree as its ReplicaSet controller.

use tokio::sync::OnceCell;

use super::{
    agent::Agent,
    api_server::{ApiServer, User},
    decision_server::DecisionServer,
    namespace::Namespace,
};

/// A decree-server, a decree-agent without leader election, and the API server of their cluster.
#[derive(Debug)]
pub struct Attended {
    agent: Agent,
    _server: DecisionServer,
    cluster: ApiServer,
}

impl Attended {
    /// Returns the cluster that all tests of this process share; the first call starts it. `None` without programs to run it.
    pub async fn shared() -> Option<&'static Self> {
        static SHARED: OnceCell<Option<Attended>> = OnceCell::const_new();
        let start = || async { Some(Self::of(ApiServer::start().await?).await) };
        SHARED.get_or_init(start).await.as_ref()
    }

    /// Makes a namespace in the shared cluster. `None` without programs to run it.
    pub async fn namespace(name: &str) -> Option<Namespace> {
        let admin = Self::shared().await?.cluster.admin().await;
        Some(Namespace::create(admin, name).await)
    }

    /// Starts a decree-server and a decree-agent for an API server.
    pub async fn of(cluster: ApiServer) -> Self {
        let server = DecisionServer::start();
        let kubeconfig = cluster.kubeconfig(User::Admin);
        let agent = Agent::start(&server, &kubeconfig, &["--leader-elect=false"]);
        agent.becomes_ready().await;
        Self {
            agent,
            _server: server,
            cluster,
        }
    }

    /// Returns the API server.
    pub fn cluster(&self) -> &ApiServer {
        &self.cluster
    }

    /// Returns the agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }
}
