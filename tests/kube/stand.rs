//! A namespace of the cluster without a controller, and an agent that comes late.

use tests::real::{Agent, ApiServer, DecisionServer, Namespace, User};

/// A namespace with objects from before any agent.
pub(crate) struct Stand {
    cluster: &'static ApiServer,
    pub(crate) namespace: Namespace,
}

/// A decree-agent that acts in only one namespace, and its decree-server.
pub(crate) type Attendance = (Agent, DecisionServer);

impl Stand {
    /// Makes a namespace. `None` without programs to run a cluster.
    pub(crate) async fn new(name: &str) -> Option<Self> {
        let cluster = ApiServer::shared().await?;
        let namespace = Namespace::create(cluster.admin().await, name).await;
        Some(Self { cluster, namespace })
    }

    /// Starts an agent.
    pub(crate) async fn attend(&self) -> Attendance {
        let server = DecisionServer::start();
        let flags = ["--leader-elect=false", "--namespace", self.namespace.name()];
        let agent = Agent::start(&server, &self.cluster.kubeconfig(User::Admin), &flags);
        agent.becomes_ready().await;
        (agent, server)
    }
}
