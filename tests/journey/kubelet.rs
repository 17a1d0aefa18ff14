//! A substitute for the kubelets, kube-proxy and DNS of a cluster.
//!
//! It reports nodes, and runs the pods that the scheduler binds to them. Pods with Decree's images run as processes, with the
//! commands, environments, volumes, probes and users of their manifests, and separate name spaces for each pod. Pods with a pause
//! image do not run, but are reported as running.
//!
//! ```text
//! list of pods ─▶ kubelet ─▶ worker, one a pod ─▶ container ─▶ process
//!                              │                   └─ volumes, network
//!                              └▶ status of the pod
//! list of Services ─▶ services ◀─ sandbox, one a pod: an address of a Service is a listener in its network
//! ```
//!
//! It enforces no NetworkPolicy, no liveness and no limit of memory or processor, and does not update volumes.

mod clock;
mod container;
mod manifests;
mod network;
mod node;
mod port;
mod process;
mod sandbox;
mod services;
mod shared;
mod spdy;
mod status;
mod volumes;
mod worker;

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::real::{Api, ApiServer, Patch};
use tokio::{
    task::{self, JoinHandle},
    time,
};

use self::{
    network::Network, node::Node, services::Services, shared::Shared, status::Conditions,
    worker::Worker,
};

/// The interval of lists.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const BEATS_EVERY: Duration = Duration::from_secs(5);

/// The kubelets of some nodes. Dropping them ends everything that they run.
pub(crate) struct Kubelets {
    shared: Arc<Shared>,
    nodes: Vec<Arc<Node>>,
    task: JoinHandle<()>,
    _folder: TempDir,
}

/// The state of the loop of the kubelets between its rounds.
struct Round {
    shared: Arc<Shared>,
    nodes: Vec<Arc<Node>>,
    port: u16,
    workers: BTreeMap<String, JoinHandle<()>>,
    pretended: BTreeMap<String, (Conditions, String)>,
    next_beat: Instant,
}

/// Why name spaces cannot be made here, if so.
pub(crate) fn obstacle() -> Option<String> {
    if let Err(error) = Network::create() {
        return Some(format!("no network name space can be made: {error}"));
    }
    let mount = "mount -t tmpfs none /tmp && echo here >/proc/sys/kernel/hostname";
    let tried = Command::new("unshare")
        .args([
            "--mount",
            "--uts",
            "--propagation=private",
            "sh",
            "-euc",
            mount,
        ])
        .output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stderr);
            Some(format!("nothing can be mounted: {}", told.trim()))
        }
        Err(error) => Some(format!("unshare: {error}")),
    }
}

impl Kubelets {
    /// Starts the kubelets of these nodes; a name with `control-` is of the control plane. They can pull the images whose
    /// programs are in these folders.
    pub(crate) async fn start(
        cluster: &ApiServer,
        names: impl Iterator<Item = String>,
        images: BTreeMap<String, PathBuf>,
    ) -> io::Result<Self> {
        let folder = TempDir::with_prefix("decree-nodes-")?;
        let nodes = names.map(|name| Node::of(&name, folder.path()));
        let nodes = nodes
            .map(|node| node.map(Arc::new))
            .collect::<io::Result<Vec<_>>>()?;
        let address = cluster.url().replace("https://", "");
        let address: SocketAddr = address.parse().map_err(io::Error::other)?;
        let services = Arc::new(Services::of(address));
        let shared = Arc::new(Shared::of(cluster.admin().await, services, images));
        let round = Round {
            shared: Arc::clone(&shared),
            nodes: nodes.clone(),
            port: port::open(&shared).await?,
            workers: BTreeMap::new(),
            pretended: BTreeMap::new(),
            next_beat: Instant::now(),
        };
        Ok(Self {
            shared,
            nodes,
            task: task::spawn(round.run()),
            _folder: folder,
        })
    }

    /// Takes a node down with everything on it, or brings it back.
    pub(crate) fn set_up(&self, name: &str, is_up: bool) {
        for node in self.nodes.iter().filter(|node| node.name() == name) {
            node.set_up(is_up);
        }
    }

    /// The folder that is the root of a node's file system.
    ///
    /// # Panics
    /// If there is no such node.
    pub(crate) fn host(&self, name: &str) -> &Path {
        let node = self.nodes.iter().find(|node| node.name() == name);
        node.expect("there is such a node").host()
    }

    /// Kills the processes of all containers of a namespace, and returns their number.
    pub(crate) fn kill(&self, namespace: &str) -> usize {
        let places = self.shared.places().into_iter();
        let pids = places
            .filter(|it| it.namespace == namespace)
            .filter_map(|it| it.pid);
        let pids: Vec<_> = pids.map(|pid| pid.to_string()).collect();
        let script = format!("kill -KILL {}", pids.join(" "));
        // A process may end at this moment.
        let _ = Command::new("sh")
            .args(["-c", &script])
            .stderr(Stdio::null())
            .status();
        pids.len()
    }

    /// The last lines of all containers.
    pub(crate) fn logs(&self) -> String {
        self.shared.logs()
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.task.abort();
        for node in &self.nodes {
            node.set_up(false);
        }
        // The runtime kills the remaining processes when it drops its workers.
    }
}

impl Round {
    async fn run(mut self) {
        let mut looks = time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            self.beat().await;
            self.read_files();
            // While the API server is away, everything continues unchanged.
            let _ = self.look().await;
        }
    }

    /// Runs static pods, which need no API server.
    fn read_files(&mut self) {
        self.workers.retain(|_, worker| !worker.is_finished());
        let up = self.nodes.iter().filter(|node| node.is_up()).cloned();
        let read: Vec<_> = up.map(|node| (manifests::of(&node), node)).collect();
        // All at once: a pod that is left out for a moment ends.
        let all = read.iter().flat_map(|(pods, _)| pods.clone()).collect();
        self.shared.take_static(all);
        for (pods, node) in &read {
            for (uid, pod) in pods.clone() {
                // The earlier pod of this name ends first.
                let name = uid.rsplit_once('-').map_or(&*uid, |(name, _)| name);
                if !self.workers.keys().any(|other| other.starts_with(name)) {
                    self.attend(uid, node, pod);
                }
            }
        }
    }

    /// Makes sure that a pod of a node has a worker.
    fn attend(&mut self, uid: String, node: &Arc<Node>, pod: Value) {
        if !self.workers.contains_key(&uid)
            && let Ok(worker) = Worker::of(&self.shared, node, pod)
        {
            self.workers.insert(uid, task::spawn(worker.run()));
        }
    }

    async fn beat(&mut self) {
        if Instant::now() < self.next_beat {
            return;
        }
        self.next_beat = Instant::now() + BEATS_EVERY;
        for node in self.nodes.iter().filter(|node| node.is_up()) {
            node.beats(&self.shared.api, self.port).await;
        }
    }

    /// Lists the pods, and makes sure that each pod of a running node has a worker.
    async fn look(&mut self) -> Result<(), tests::real::Refusal> {
        let api = self.shared.api.clone();
        self.shared
            .services
            .take(&api.list("/api/v1/services").await?);
        let pods = api
            .list("/api/v1/pods?fieldSelector=spec.nodeName!=")
            .await?;
        let uid = |pod: &Value| {
            pod["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let pods: BTreeMap<_, _> = pods.into_iter().map(|pod| (uid(&pod), pod)).collect();
        self.shared.take(pods.clone());
        self.pretended.retain(|uid, _| pods.contains_key(uid));
        for (uid, pod) in pods {
            let mut nodes = self.nodes.iter();
            let node = nodes.find(|node| pod["spec"]["nodeName"] == node.name() && node.is_up());
            let Some(node) = node else {
                continue;
            };
            if shared::is_pretended(&pod) {
                self.pretend(&api, &uid, &pod).await;
            } else if !manifests::is_mirror(&pod) {
                let node = Arc::clone(node);
                self.attend(uid, &node, pod);
            }
        }
        Ok(())
    }

    /// Reports a pod as running and ready, or deletes it.
    async fn pretend(&mut self, api: &Api, uid: &str, pod: &Value) {
        let metadata = &pod["metadata"];
        let [namespace, name] = ["namespace", "name"].map(|key| metadata[key].as_str());
        let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        if !metadata["deletionTimestamp"].is_null() {
            let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
            // The next round repeats failed requests, here and below.
            let _ = api.delete(&path, &options).await;
            return;
        }
        let shared = &self.shared;
        let known = self.pretended.entry(uid.to_owned());
        let (conditions, address) = known.or_insert_with(|| (Conditions::new(), shared.address()));
        let status = json!({
            "phase": "Running", "hostIP": "127.0.0.1", "podIP": address, "podIPs": [{"ip": address}],
            "startTime": conditions.since(), "conditions": conditions.told(true, true),
        });
        if pod["status"]["phase"] != "Running" || !status::says_conditions(&pod["status"], &status)
        {
            let patch = json!({"metadata": {"uid": uid}, "status": status});
            let path = format!("{path}/status");
            let _ = api.patch(&path, Patch::Merge, &patch).await;
        }
    }
}
