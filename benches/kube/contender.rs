//! The contenders: a running controller, and its own API server.

use std::{
    env, mem,
    path::{Path, PathBuf},
};

use serde_json::json;
use tempfile::TempDir;
use tests::{
    binaries,
    real::{Agent, Api, ApiServer, ControllerManager, DecisionServer, Namespace, Up, User},
    usage::Used,
};

use crate::{meter, objects::replica_set};

/// Flags with which the limiter of kube-controller-manager never delays a call.
const LIMITS_RAISED: [&str; 2] = ["--kube-api-qps=10000", "--kube-api-burst=10000"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// kube-controller-manager with only its ReplicaSet controller, without an effective limiter.
    Peer,
    /// The same with its default limits.
    PeerByDefault,
    /// decree-server and decree-agent, over loopback TCP.
    Decree,
    /// The same over a Unix socket.
    Unix,
    /// Both in one process, as `decree up` runs them.
    Up,
    /// decree-server and decree-agent of another build, in the folder in `DECREE_BEFORE`.
    Before,
}

/// The identity of the contenders at the API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Guest {
    /// A member of `system:masters`, which is exempt from API Priority and Fairness: the upper bound of a controller.
    #[default]
    Exempt,
    /// A service account of kube-system, as controllers have in a cluster. Above some 400 concurrent requests, the API server
    /// makes it wait for a second.
    ServiceAccount,
}

/// A running controller, and its API server.
pub(crate) struct Arena {
    pub(crate) namespace: Namespace,
    pub(crate) pids: Vec<u32>,
    /// The processor time of the controller at the last [`lap`](Arena::lap).
    lap: f64,
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
        _socket: TempDir,
    },
    Up {
        _up: Up,
    },
}

impl Contender {
    pub(crate) const BOTH: [Self; 2] = [Self::Peer, Self::Decree];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Peer => "kube-controller-manager",
            Self::PeerByDefault => "kube-controller-manager, its defaults",
            Self::Decree => "decree",
            Self::Unix => "decree, Unix socket",
            Self::Up => "decree, one process",
            Self::Before => "decree before",
        }
    }

    /// Reads the name of a contender that is not in [`BOTH`](Self::BOTH).
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "unix" => Some(Self::Unix),
            "up" => Some(Self::Up),
            "before" => Some(Self::Before),
            _ => None,
        }
    }

    /// Starts an API server and the controller, and returns after the controller has created a pod.
    pub(crate) async fn start(self, guest: Guest) -> Arena {
        let server = ApiServer::start().await;
        let server = server.expect("there is an API server");
        let kubeconfig = match guest {
            Guest::Exempt => server.kubeconfig(User::Admin),
            Guest::ServiceAccount => account(&server).await,
        };
        let (pids, acting) = match self {
            Self::Peer => peer(&server, &kubeconfig, &LIMITS_RAISED),
            Self::PeerByDefault => peer(&server, &kubeconfig, &[]),
            Self::Decree | Self::Unix | Self::Before => self.decree(&kubeconfig),
            Self::Up => {
                let up = Up::start(&kubeconfig);
                (vec![up.pid()], Acting::Up { _up: up })
            }
        };
        let namespace = Namespace::create(server.admin().await, "bench").await;
        let mut arena = Arena {
            namespace,
            pids,
            lap: 0.0,
            _acting: acting,
            server,
        };
        arena.warm_up().await;
        meter::until_quiet(&arena.cluster()).await;
        arena.lap();
        arena
    }

    /// Starts Decree as two processes.
    fn decree(self, kubeconfig: &Path) -> (Vec<u32>, Acting) {
        let programs = if self == Self::Before {
            let folder = env::var_os("DECREE_BEFORE").map(PathBuf::from);
            folder.expect("DECREE_BEFORE names a folder")
        } else {
            binaries::folder().to_owned()
        };
        let socket = TempDir::with_prefix("decree-bench-").expect("there is room");
        let listen = if self == Self::Unix {
            format!("unix:{}", socket.path().join("server.sock").display())
        } else {
            "127.0.0.1:0".to_owned()
        };
        let server = DecisionServer::start_in(&programs, &listen, &[]);
        // The level at which a controller in production logs.
        let flags = ["--leader-elect=false", "--log-level", "info"];
        let agent = Agent::start_in(&programs, &server, kubeconfig, &flags);
        let pids = vec![server.pid(), agent.pid()];
        let acting = Acting::Decree {
            _agent: agent,
            _server: server,
            _socket: socket,
        };
        (pids, acting)
    }
}

fn peer(server: &ApiServer, kubeconfig: &Path, limits: &[&str]) -> (Vec<u32>, Acting) {
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let mut flags = vec!["--controllers=replicaset-controller"];
    flags.extend(["--use-service-account-credentials=false", &kubeconfig]);
    flags.extend(limits);
    let manager = ControllerManager::start(server, &flags);
    (vec![manager.pid()], Acting::Peer { _manager: manager })
}

impl Arena {
    pub(crate) fn api(&self) -> &Api {
        self.namespace.api()
    }

    /// The processes of the API server and of etcd.
    pub(crate) fn cluster(&self) -> Vec<u32> {
        self.server.pids()
    }

    /// What the controller used since the last call, or since its start.
    pub(crate) fn lap(&mut self) -> Used {
        let processor = meter::processor_time(&self.pids);
        Used {
            processor_s: processor - mem::replace(&mut self.lap, processor),
            peak_mb: meter::peak_megabytes(&self.pids),
        }
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

/// Creates a service account of kube-system with all permissions.
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
