//! Who is compared: a running controller, and the API server that it has for itself.

use std::path::PathBuf;

use serde_json::json;
use tests::real::{Agent, Api, ApiServer, ControllerManager, DecisionServer, Namespace, User};

use crate::{meter, objects::replica_set};

/// A kind of controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// kube-controller-manager with its ReplicaSet controller alone, and its limiter raised out of the way.
    Peer,
    /// decree-server and decree-agent.
    Decree,
}

/// Who the API server takes the contenders for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guest {
    /// A member of `system:masters`, whom API Priority and Fairness lets pass: what a controller can do at most.
    Exempt,
    /// A service account of kube-system, as controllers are in a cluster: above some 400 requests at a time it is told to wait a second.
    ServiceAccount,
}

/// A controller that acts.
pub(crate) struct Arena {
    pub(crate) namespace: Namespace,
    pub(crate) pids: Vec<u32>,
    // The controller ends before its API server.
    _acting: Acting,
    server: ApiServer,
}

enum Acting {
    Peer {
        _manager: ControllerManager,
    },
    // The agent ends first.
    Decree {
        _agent: Agent,
        _server: DecisionServer,
    },
}

// === impl Contender ===

impl Contender {
    pub(crate) const BOTH: [Self; 2] = [Self::Peer, Self::Decree];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Peer => "kube-controller-manager",
            Self::Decree => "decree",
        }
    }

    /// Starts an API server and the controller, and returns when the controller has made a pod.
    pub(crate) async fn start(self, guest: Guest) -> Arena {
        let server = ApiServer::start().await.expect("there is an API server");
        let kubeconfig = match guest {
            Guest::Exempt => server.kubeconfig(User::Admin),
            Guest::ServiceAccount => account(&server).await,
        };
        let (pids, acting) = match self {
            Self::Peer => {
                let flags = [
                    "--controllers=replicaset-controller",
                    "--kube-api-qps=10000",
                    "--kube-api-burst=10000",
                    "--use-service-account-credentials=false",
                    &format!("--kubeconfig={}", kubeconfig.display()),
                ];
                let manager = ControllerManager::start(&server, &flags);
                (vec![manager.pid()], Acting::Peer { _manager: manager })
            }
            Self::Decree => {
                let decision_server = DecisionServer::start();
                // The level at which a controller that is measured logs what it logs anyway.
                let flags = ["--leader-elect=false", "--log-level", "info"];
                let agent = Agent::start(&decision_server, &kubeconfig, &flags);
                let pids = vec![decision_server.pid(), agent.pid()];
                let acting = Acting::Decree {
                    _agent: agent,
                    _server: decision_server,
                };
                (pids, acting)
            }
        };
        let namespace = Namespace::create(server.admin().await, "bench").await;
        let arena = Arena {
            namespace,
            pids,
            _acting: acting,
            server,
        };
        arena.warm_up().await;
        meter::until_quiet(&arena.cluster()).await;
        arena
    }
}

// === impl Arena ===

impl Arena {
    pub(crate) fn api(&self) -> &Api {
        self.namespace.api()
    }

    /// Returns the processes of the API server and of etcd.
    pub(crate) fn cluster(&self) -> Vec<u32> {
        self.server.pids()
    }

    async fn warm_up(&self) {
        let sets = self.namespace.replica_set("");
        let created = self.api().create(&sets, &replica_set("warm-up", 1)).await;
        created.expect("it is valid");
        let set = self.namespace.replica_set("warm-up");
        let status = |replicas| {
            move |set: &serde_json::Value| (set["status"]["replicas"] == replicas).then_some(())
        };
        self.api().wait_for("one pod", &set, status(1)).await;
        let deleted = self.api().delete(&self.namespace.pod(""), &json!({})).await;
        deleted.expect("pods can be deleted");
        let deleted = self.api().delete(&set, &json!({})).await;
        deleted.expect("it can be deleted");
        let none = |pods: &serde_json::Value| pods["items"].as_array()?.is_empty().then_some(());
        let pods = self.namespace.pod("");
        // A pod that was replaced meanwhile has no garbage collector here.
        while self
            .api()
            .list(&pods)
            .await
            .is_ok_and(|pods| !pods.is_empty())
        {
            let _ = self.api().delete(&pods, &json!({})).await;
        }
        self.api().wait_for("no pod", &pods, none).await;
    }
}

/// Makes a service account of kube-system that may do all.
async fn account(server: &ApiServer) -> PathBuf {
    let (namespace, name) = ("kube-system", "contender");
    let admin = server.admin().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    admin.create(&path, &account).await.expect("it is new");
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.create(path, &binding).await.expect("it is new");
    server.service_account(namespace, name).await
}
