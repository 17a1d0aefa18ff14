//! A cluster whose nodes can be drained: upstream's scheduler and controllers, except the ReplicaSet controller, and three nodes for each
//! namespace.
//!
//! No kubelet runs. A task reports a scheduled pod ready after a delay by seed, and removes a pod that is being deleted. The same task
//! judges each event of the pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use agent_fake::{is_active, is_ready};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{
    task::{self, JoinHandle},
    time,
};

use super::{
    LOOK_EVERY, api::Patch, api_server::ApiServer, controller_manager::ControllerManager, found,
    namespace::Namespace, program::Program, scheduler::Scheduler, sightings::watch,
};
use crate::{invariants::has_status_beyond_desired, lock, rng::Rng, tools};

/// The controllers of kube-controller-manager that take part in a drain.
const CONTROLLERS: &str = "deployment-controller,disruption-controller,resourcequota-controller,node-lifecycle-controller,taint-eviction-controller,horizontal-pod-autoscaler-controller";
/// Nodes send no heartbeats, and are lost at once. Autoscalers look each second. A pod that was refused may be charged until pods are counted.
const FLAGS: [&str; 4] = [
    "--node-monitor-grace-period=1h",
    "--node-eviction-rate=10",
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--resource-quota-sync-period=10s",
];
/// The taint of a lost node.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// What `kubectl drain` says when a budget refuses an eviction.
pub const REFUSED: &str = "violate the pod's disruption budget";
/// The longest time until a pod that is being deleted has ended.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// A running API server with upstream's controllers.
#[derive(Debug)]
pub struct NodeCluster {
    _scheduler: Scheduler,
    _manager: ControllerManager,
    _evictions: Option<Program>,
    server: ApiServer,
    kubectl: &'static Path,
}

/// Three nodes for the pods of one namespace.
#[derive(Debug)]
pub struct Nodes {
    namespace: Namespace,
    kubectl: &'static Path,
    seen: Arc<Mutex<Seen>>,
}

/// The findings on the pods of a namespace.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// The maximum number of active pods.
    pub most: usize,
    /// For each time with fewer ready pods than the floor: the pods at its beginning. And each status of more pods than desired.
    pub dips: Vec<String>,
    /// The duration of these times.
    pub short: Duration,
}

#[derive(Debug, Default)]
struct Seen {
    /// By UID.
    pods: BTreeMap<String, Value>,
    /// The pods that a kubelet has started, and those that it has ended.
    begun: BTreeSet<(String, bool)>,
    lost: BTreeSet<String>,
    floor: usize,
    short_since: Option<Instant>,
    judged: Judged,
}

impl NodeCluster {
    /// Starts the cluster, with `more` controllers, such as `,replicaset-controller`. `None` without programs to run it.
    pub async fn start(more: &str) -> Option<Self> {
        Self::start_on(ApiServer::start().await?, more).await
    }

    /// Starts a cluster that serves Evictions, with their controllers. `None` without programs to run it.
    pub async fn start_with_evictions() -> Option<Self> {
        let server = ApiServer::start_with_evictions().await?;
        let name = "eviction-controllers";
        let evictions = Program::start(server.assets(), server.folder(), name, &[]);
        let mut cluster = Self::start_on(server, "").await?;
        cluster._evictions = Some(evictions);
        Some(cluster)
    }

    async fn start_on(server: ApiServer, more: &str) -> Option<Self> {
        let kubectl = tools::kubectls()?.first()?;
        let controllers = format!("--controllers={CONTROLLERS}{more}");
        let flags = [&[&*controllers][..], &FLAGS].concat();
        Some(Self {
            _scheduler: Scheduler::start(&server).await?,
            _manager: ControllerManager::start(&server, &flags),
            _evictions: None,
            server,
            kubectl,
        })
    }

    /// Returns the API server.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Makes a namespace and its nodes, whose pods become ready within a duration, by seed.
    pub async fn nodes(&self, name: &str, seed: u64, ready_within: Duration) -> Nodes {
        let namespace = Namespace::create(self.server.admin().await, name).await;
        for node in ["a", "b", "c"].map(|letter| format!("{name}-{letter}")) {
            let room = json!({"cpu": "8", "memory": "16Gi", "pods": "110"});
            let ready = json!([{"type": "Ready", "status": "True"}]);
            let object = json!({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": {"pool": name}},
                "status": {"capacity": room, "allocatable": room, "conditions": ready},
            });
            namespace.make("/api/v1/nodes", &object).await;
        }
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (kubelet, into, mut rng) = (namespace.clone(), Arc::clone(&seen), Rng::new(seed));
        let see = move |pod: &Value, is_removed| {
            if lock(&into).see(pod, is_removed) {
                let is_ending = !pod["metadata"]["deletionTimestamp"].is_null();
                let after = rng.delay([ready_within, ENDS_WITHIN][usize::from(is_ending)]);
                let act = act(kubelet.clone(), Arc::clone(&into), pod.clone(), after);
                tokio::spawn(act);
            }
        };
        let (api, sets) = (namespace.api(), Arc::clone(&seen));
        let see_set = move |set: &Value, _| lock(&sets).judge_status(set);
        // They end with the runtime.
        let _watch = watch(api, namespace.pod(""), see);
        let _watch = watch(api, namespace.replica_set(""), see_set);
        let kubectl = self.kubectl;
        Nodes {
            namespace,
            kubectl,
            seen,
        }
    }
}

impl Nodes {
    /// Returns the namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Creates a Deployment or a ReplicaSet `web` with a surge, and a budget that keeps some pods. Returns after all its pods are ready, and
    /// judges from then on whether at least `floor` are, which a Deployment keeps.
    pub async fn run(&self, kind: &str, sizes: (usize, usize, usize), surge: &str) {
        let (replicas, kept, floor) = sizes;
        let (labels, pool) = (json!({"app": "web"}), self.namespace.name());
        let mut spec = json!({
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "nodeSelector": {"pool": pool},
                "tolerations": [{"key": UNREACHABLE, "effect": "NoExecute", "tolerationSeconds": 1}],
                "containers": [{"name": "web", "image": "registry.invalid/web:1"}],
            }},
        });
        let mut budget = json!({"minAvailable": kept, "selector": {"matchLabels": labels}});
        if kind == "Deployment" {
            // The same, as a number that follows the Deployment.
            budget =
                json!({"maxUnavailable": replicas - kept, "selector": {"matchLabels": labels}});
            let limits = json!({"maxSurge": 1, "maxUnavailable": replicas - floor});
            spec["strategy"] = json!({"rollingUpdate": limits});
        }
        let annotations = json!({"decree.dev/surge-on-eviction": surge});
        for (version, kind, spec) in [
            ("policy/v1", "PodDisruptionBudget", budget),
            ("apps/v1", kind, spec),
        ] {
            let resource = format!("{}s", kind.to_lowercase());
            let path = self
                .namespace
                .path(&format!("/apis/{version}"), &resource, "");
            let metadata = json!({"name": "web", "annotations": annotations});
            let object =
                json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
            self.namespace.make(&path, &object).await;
        }
        let are_ready = |pods: &[Value]| pods.len() == replicas && pods.iter().all(is_ready);
        self.become_so("ready", are_ready).await;
        lock(&self.seen).floor = floor;
    }

    /// Changes the specification of the Deployment.
    pub async fn change_deployment(&self, spec: &Value) {
        let path = self.namespace.path("/apis/apps/v1", "deployments", "web");
        let api = self.namespace.api();
        api.change(&path, &json!({"spec": spec})).await;
    }

    /// Lowers the number of pods that have to be ready to at most `desired`.
    pub fn lower_floor(&self, desired: usize) {
        let seen = &mut lock(&self.seen);
        seen.floor = seen.floor.min(desired);
    }

    /// Waits until the active pods are so.
    pub async fn become_so(&self, what: &str, are_so: impl Fn(&[Value]) -> bool) {
        found(async || {
            let pods = self.active();
            let failure = || format!("{}: not {what}: {}", self.namespace.name(), told(&pods));
            are_so(&pods).then_some(()).ok_or_else(failure)
        })
        .await;
    }

    /// Returns the active pods.
    pub fn active(&self) -> Vec<Value> {
        lock(&self.seen).active().cloned().collect()
    }

    /// Changes the specification of a node.
    pub async fn change(&self, node: &str, spec: &Value) {
        let path = format!("/api/v1/nodes/{node}");
        let api = self.namespace.api();
        api.change(&path, &json!({"spec": spec})).await;
    }

    /// Stops the kubelet of a node. Upstream's controllers do the rest.
    pub async fn lose(&self, node: &str) {
        lock(&self.seen).lost.insert(node.to_owned());
        let unknown = json!([{"type": "Ready", "status": "Unknown"}]);
        let path = format!("/api/v1/nodes/{node}/status");
        let api = self.namespace.api();
        api.change(&path, &json!({"status": {"conditions": unknown}}))
            .await;
    }

    /// Starts `kubectl drain` of a node, which gives up after a timeout such as `60s`.
    pub fn drain(&self, node: &str, timeout: &str) -> JoinHandle<Output> {
        let mut kubectl = self.kubectl_drain(node, timeout);
        task::spawn_blocking(move || kubectl.output().expect("it is built"))
    }

    /// Starts `kubectl drain` of a node, and kills it once a budget has refused it twice. The output has only errors.
    pub fn drain_until_refused(&self, node: &str) -> JoinHandle<Output> {
        let mut kubectl = self.kubectl_drain(node, "10m");
        task::spawn_blocking(move || {
            let child = kubectl.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
            let mut child = child.expect("it is built");
            let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
            let (mut said, mut refused) = (String::new(), 0);
            for line in lines.map_while(Result::ok) {
                refused += usize::from(line.contains(REFUSED));
                said.extend([&line, "\n"]);
                if refused == 2 {
                    let _ = child.kill();
                }
            }
            Output {
                status: child.wait().expect("it is ours"),
                stdout: Vec::new(),
                stderr: said.into_bytes(),
            }
        })
    }

    fn kubectl_drain(&self, node: &str, timeout: &str) -> Command {
        let kubeconfig = self.namespace.kubeconfig();
        let cache = kubeconfig.with_file_name("kubectl");
        let mut kubectl = Command::new(self.kubectl);
        kubectl.args(["drain", node, "--timeout", timeout]);
        kubectl.arg("--kubeconfig").arg(kubeconfig);
        kubectl.arg("--cache-dir").arg(cache);
        kubectl
    }

    /// Returns the findings so far.
    pub fn judged(&self) -> Judged {
        let seen = lock(&self.seen);
        let mut judged = seen.judged.clone();
        judged.short += seen.short_since.map_or(Duration::ZERO, |it| it.elapsed());
        judged
    }
}

impl Seen {
    /// Notes a state of a pod. Returns whether its kubelet begins to start or to end it.
    fn see(&mut self, pod: &Value, is_removed: bool) -> bool {
        let metadata = &pod["metadata"];
        let uid = metadata["uid"].as_str().expect("a stored pod has one");
        if is_removed {
            self.pods.remove(uid);
        } else {
            self.pods.insert(uid.to_owned(), pod.clone());
        }
        self.judge();
        let begins = (uid.to_owned(), metadata["deletionTimestamp"].is_null());
        !is_removed && !node_of(pod).is_empty() && self.begun.insert(begins)
    }

    fn judge(&mut self) {
        let active: Vec<_> = self.active().collect();
        let ready = active.iter().filter(|pod| is_ready(pod)).count();
        self.judged.most = active.len().max(self.judged.most);
        match self.short_since {
            None if ready < self.floor => {
                self.judged.dips.push(told(self.pods.values()));
                self.short_since = Some(Instant::now());
            }
            Some(since) if ready >= self.floor => {
                self.judged.short += since.elapsed();
                self.short_since = None;
            }
            _ => {}
        }
    }

    fn judge_status(&mut self, set: &Value) {
        if has_status_beyond_desired(set) {
            let (desired, status) = (&set["spec"]["replicas"], &set["status"]);
            let dip = format!("{status} with {desired} desired");
            self.judged.dips.push(dip);
        }
    }

    fn active(&self) -> impl Iterator<Item = &Value> {
        self.pods.values().filter(|pod| is_active(pod))
    }
}

/// Does what a kubelet does with a new pod, or with a pod that is being deleted, until it succeeds, or the node is lost, or the pod gone.
async fn act(namespace: Namespace, seen: Arc<Mutex<Seen>>, pod: Value, after: Duration) {
    time::sleep(after).await;
    let (api, path) = (namespace.api(), namespace.pod(name_of(&pod)));
    let uid = &pod["metadata"]["uid"];
    let is_there = || {
        let seen = lock(&seen);
        let uid = uid.as_str().expect("a stored pod has one");
        seen.pods.contains_key(uid) && !seen.lost.contains(node_of(&pod))
    };
    while is_there() {
        let uid = json!({"uid": uid});
        let done = if pod["metadata"]["deletionTimestamp"].is_null() {
            let since = Timestamp::now().strftime("%FT%TZ").to_string();
            let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
            let status = json!({"phase": "Running", "conditions": [ready]});
            let patch = json!({"metadata": uid, "status": status});
            let path = format!("{path}/status");
            api.patch(&path, Patch::Strategic, &patch).await
        } else {
            let at_once = json!({"gracePeriodSeconds": 0, "preconditions": uid});
            api.delete(&path, &at_once).await
        };
        if done.is_ok() {
            return;
        }
        time::sleep(LOOK_EVERY).await;
    }
}

fn name_of(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns the name of the node of a pod, empty without one.
pub fn node_of(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

fn told<'a>(pods: impl IntoIterator<Item = &'a Value>) -> String {
    let states = pods.into_iter().map(|pod| {
        let (name, node, is_so) = (name_of(pod), node_of(pod), (is_active(pod), is_ready(pod)));
        format!("{name} on {node:?}: (active, ready) = {is_so:?}")
    });
    states.collect::<Vec<_>>().join("; ")
}
