//! A server, and an agent with an embedded cluster, in this process, and the changes that a story can request.

use std::{fs, net::SocketAddr, time::Duration};

use agent_core::{
    asking::CostKind,
    budget::{self, resume::RESUME_ANNOTATION},
};
use agent_fake::{ApiError, Fault, Kind, NodeLoss, Verb};
use decree_agent::FakeCluster;
use decree_api::v1;
use decree_server::{AccessArgs, Config, Server};
use serde_json::{Value, json};
use service::ListenAddr;
use service::transport::Connector;
use tempfile::TempDir;
use tests::{
    builders::{brisk_cluster, pod, replica_set},
    issuer::{ISSUER, Issuer},
    running::free_port,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::pages;

const NAMESPACE: &str = "default";
const QUOTA: &str = "pods";
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The file with the token of the agent.
const TOKEN: &str = "token";
const POLICY: &str = r#"
[[grant]]
identities = ["sub:agent"]
role = "agent"
names = ["shop"]

[[grant]]
identities = ["sub:viewer"]
role = "viewer"
names = ["shop"]
"#;
/// The grant of an agent without a credential.
const AGENT: &str = r#"
[[grant]]
identities = ["anonymous"]
role = "agent"
clusters = ["*"]
"#;

/// The retry delay of a throttled cluster in seconds. It exceeds the server's maximum delay, so the server retries earlier and is throttled again.
const THROTTLED_SECONDS: u32 = 900;
/// An agent in enforce mode, without a budget.
const ENFORCE: (v1::Mode, budget::Limit) = (v1::Mode::Enforce, budget::Limit::OFF);
/// The maximum number of deletes per ReplicaSet and minute.
const DELETES: u32 = 2;

/// The running parts. A story can stop and restart them.
pub(crate) struct Stage {
    cluster: FakeCluster,
    config: Config,
    mode: v1::Mode,
    deletes: budget::Limit,
    server: Option<Part>,
    agent: Option<Part>,
    admin: SocketAddr,
    grpc: SocketAddr,
    issuer: Option<(Issuer, TempDir)>,
    /// Two origins of pages; the server names the first.
    origins: [String; 2],
}

struct Part(JoinHandle<()>, CancellationToken);

impl Stage {
    /// Opens a stage with three ReplicaSets that have converged or are about to.
    pub(crate) async fn open(config: Config) -> Self {
        Self::open_in(ENFORCE, config, None).await
    }

    /// Opens a stage with an agent in shadow mode.
    pub(crate) async fn shadow(config: Config) -> Self {
        Self::open_in((v1::Mode::Shadow, budget::Limit::OFF), config, None).await
    }

    /// Opens a stage with an agent that deletes few pods of a ReplicaSet in a minute.
    pub(crate) async fn held(config: Config) -> Self {
        let deletes = budget::Limit::count(DELETES);
        Self::open_in((v1::Mode::Enforce, deletes), config, None).await
    }

    /// Opens a stage with a server that requires tokens.
    pub(crate) async fn guarded(config: Config) -> Self {
        let folder = TempDir::new().expect("a folder");
        let issuer = Issuer::new(folder.path());
        let policy = folder.path().join("policy.toml");
        fs::write(&policy, POLICY).expect("it can be written");
        fs::write(folder.path().join(TOKEN), issuer.token("agent")).expect("it can be written");
        let access = AccessArgs {
            policy: Some(policy),
            access_interval: Duration::from_millis(50),
            token_keys: Some(issuer.file().display().to_string()),
            token_issuer: Some(ISSUER.to_owned()),
            ..config.access
        };
        let config = Config { access, ..config };
        Self::open_in(ENFORCE, config, Some((issuer, folder))).await
    }

    /// Opens a guarded stage whose server answers the pages of one of two origins.
    pub(crate) async fn asked_by_pages(mut config: Config) -> Self {
        let origins = [pages::origin().await, pages::origin().await];
        let named = origins[0].parse().expect("printable");
        config.access.grpc_web_origins = vec![named];
        Self {
            origins,
            ..Self::guarded(config).await
        }
    }

    /// Opens a stage with a policy that grants pages nothing, and the agent its role without a credential.
    pub(crate) async fn ungranted(config: Config) -> Self {
        let folder = TempDir::new().expect("a folder");
        let issuer = Issuer::new(folder.path());
        let file = folder.path().join("policy.toml");
        fs::write(&file, AGENT).expect("it can be written");
        let access = AccessArgs {
            policy: Some(file),
            ..AccessArgs::default()
        };
        let config = Config { access, ..config };
        Self::open_in(ENFORCE, config, Some((issuer, folder))).await
    }

    async fn open_in(
        (mode, deletes): (v1::Mode, budget::Limit),
        config: Config,
        issuer: Option<(Issuer, TempDir)>,
    ) -> Self {
        let quick = agent_fake::ClusterConfig {
            // The cluster notices the loss of a node soon, and does not evict its pods.
            node_loss: NodeLoss {
                unknown_after: Duration::from_millis(100),
                evict_after: Duration::MAX,
                remove_after: Duration::MAX,
            },
            ..brisk_cluster()
        };
        let cluster = FakeCluster::start(quick, Vec::new()).expect("no objects");
        for (name, replicas) in [("api", 4), ("shop-7d4b9c", 8), ("web-5f6a8b", 3)] {
            let set = replica_set(name).replicas(replicas).build();
            cluster.with(|cluster| cluster.create(set)).expect("valid");
        }
        let mut stage = Self {
            cluster,
            config,
            mode,
            deletes,
            server: None,
            agent: None,
            admin: SocketAddr::from(([127, 0, 0, 1], 0)),
            grpc: SocketAddr::from(([127, 0, 0, 1], free_port())),
            issuer,
            origins: Default::default(),
        };
        stage.start_server().await;
        stage.start_agent();
        stage
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/console/", self.admin)
    }

    pub(crate) const fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// Executes the request of a story, and returns the response.
    pub(crate) async fn obey(&mut self, asked: &Value) -> Value {
        let text = |field: &str| asked[field].as_str().unwrap_or_default().to_owned();
        let number = |field: &str| asked[field].as_i64().unwrap_or_default();
        let name = text("name");
        match &*text("do") {
            "scale" => self.scale(&name, number("replicas")),
            "kill" => self.kill(&name),
            "vary" => self.vary(&name, number("costs")),
            "restart" => self.restart(&name),
            "hold" => self.hold(&name),
            "price" => self.price(&name, &number("cost").to_string()),
            "ask" => self.ask_for_costs(&name),
            "own" => self.give_owner(&name),
            "quota" => self.limit(number("pods")).await,
            "unlimit" => self.unlimit(),
            "throttle" => self.throttle(),
            "unthrottle" => self.cluster.with(|cluster| cluster.faults_mut().clear()),
            "resume" => self.resume(&name),
            "break" => self.break_selector(&name),
            "foreign" => self.create_foreign(&name),
            "stop agent" => stop(&mut self.agent).await,
            "start agent" => self.start_agent(),
            "stop server" => stop(&mut self.server).await,
            "start server" => self.start_server().await,
            "token" => return self.token(&name),
            "pages" => return pages::described(self.grpc, &self.origins),
            other => panic!("a story asks for {other:?}"),
        }
        json!({"done": true})
    }

    pub(crate) async fn close(mut self) {
        stop(&mut self.agent).await;
        stop(&mut self.server).await;
    }

    async fn start_server(&mut self) {
        let config = Config {
            listen: self.grpc.into(),
            admin: ListenAddr::At(self.admin),
            drain_deadline: Duration::from_millis(300),
            ..self.config.clone()
        };
        let server = Server::bind(config).await.expect("free ports");
        self.admin = server.addresses().admin.expect("it is on");
        self.grpc = server.addresses().grpc.tcp().expect("it listens on TCP");
        self.server = Some(Part::start(|stop| async move {
            server.serve(stop).await.expect("it serves");
        }));
    }

    fn start_agent(&mut self) {
        let connector = Connector::local(&self.grpc.into());
        let mut config = decree_agent::ShellConfig::new(connector);
        config.agent.instance = "shop-agent".to_owned();
        config.agent.cluster_name = "shop".to_owned();
        config.agent.mode = self.mode;
        config.agent.preferences.cost_sources = [CostKind::Http].into();
        config.agent.budget = budget::BudgetConfig {
            action: budget::Action::Hold,
            deletes: budget::Limits {
                replica_set: self.deletes,
                ..budget::Limits::default()
            },
            ..budget::BudgetConfig::default()
        };
        let token = |(_, folder): &(Issuer, TempDir)| folder.path().join(TOKEN);
        let issuer = self.issuer.as_ref();
        config.token = issuer
            .filter(|_| self.config.access.token_keys.is_some())
            .map(token);
        let cluster = self.cluster.clone();
        self.agent = Some(Part::start(|stop| async move {
            decree_agent::run(config, cluster, stop)
                .await
                .expect("it runs");
        }));
    }

    fn scale(&self, name: &str, replicas: i64) {
        let replicas = i32::try_from(replicas).expect("few");
        let scaled = self
            .cluster
            .with(|cluster| cluster.scale(NAMESPACE, name, replicas));
        scaled.expect("it is there");
    }

    /// Removes the first pod of a ReplicaSet, as if its node had forgotten it.
    fn kill(&self, name: &str) {
        self.cluster.with(|cluster| {
            let mut pods = cluster.objects(Kind::Pod).cloned();
            let its = pods.find(|pod| pod["metadata"]["labels"]["app"] == name);
            drop(pods);
            let its = its.expect("it has pods");
            let first = its["metadata"]["name"].as_str().expect("a text");
            cluster
                .remove_pod_now(NAMESPACE, first)
                .expect("it is there");
        });
    }

    /// Makes the pods of a ReplicaSet differ: one is not ready, and one or two have lower deletion costs. Pods that differ only in age may
    /// change their order from one moment to the next.
    fn vary(&self, name: &str, costs: i64) {
        self.cluster.with(|cluster| {
            let names = &names_of(cluster, name)[..3];
            let status = json!({"conditions": [{"type": "Ready", "status": "False"}]});
            let varied = cluster.set_pod_status(NAMESPACE, &names[0], &status);
            varied.expect("it is there");
            let costs = if costs == 2 {
                &["-10", "-5"][..]
            } else {
                &["-10"]
            };
            for (name, cost) in names[1..].iter().zip(costs) {
                let cost = json!({"metadata": {"annotations": {COST: cost}}});
                let varied = cluster.patch(Kind::Pod, NAMESPACE, name, &cost);
                varied.expect("it is there");
            }
        });
    }

    /// Makes the order of pods of equal cost independent of their ages, which count on a logarithmic scale: their restarts differ.
    fn restart(&self, name: &str) {
        let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]);
        self.cluster.with(|cluster| {
            for (restarts, pod) in names_of(cluster, name).iter().enumerate() {
                let container = json!([{"name": "web", "restartCount": restarts}]);
                let status = json!({"conditions": ready, "containerStatuses": container});
                let restarted = cluster.set_pod_status(NAMESPACE, pod, &status);
                restarted.expect("it is there");
            }
        });
    }

    /// Makes the pods of a ReplicaSet wait for their image.
    fn hold(&self, name: &str) {
        let waits = json!([{"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]);
        let ready = json!([{"type": "Ready", "status": "False"}]);
        let status = json!({"conditions": ready, "containerStatuses": waits});
        self.cluster.with(|cluster| {
            for pod in names_of(cluster, name) {
                let held = cluster.set_pod_status(NAMESPACE, &pod, &status);
                held.expect("it is there");
            }
        });
    }

    fn price(&self, pod: &str, cost: &str) {
        let cost = json!({"metadata": {"annotations": {COST: cost}}});
        self.patch(Kind::Pod, pod, &cost);
    }

    /// Lets the pods of a ReplicaSet be asked for their costs.
    fn ask_for_costs(&self, name: &str) {
        let asks =
            json!({"metadata": {"annotations": {"decree.dev/scale-in-cost": "http://:8080/busy"}}});
        self.patch(Kind::ReplicaSet, name, &asks);
    }

    /// Makes a ReplicaSet and the ReplicaSet `api` belong to one Deployment.
    fn give_owner(&self, name: &str) {
        let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "front", "uid": "front-uid", "controller": true}]);
        let owned = json!({"metadata": {"ownerReferences": owner}});
        for name in [name, "api"] {
            self.patch(Kind::ReplicaSet, name, &owned);
        }
    }

    /// Sets a quota once the pods match the desired numbers. Otherwise the refused ReplicaSet would
    /// depend on the order in which the server serves them.
    async fn limit(&self, pods: i64) {
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"namespace": NAMESPACE, "name": QUOTA},
            "spec": {"hard": {"pods": pods.to_string()}},
        });
        loop {
            let changed = self.cluster.changed();
            let created = self
                .cluster
                .with(|cluster| is_complete(cluster).then(|| cluster.create(quota.clone())));
            if let Some(created) = created {
                created.expect("there is none yet");
                return;
            }
            changed.await;
        }
    }

    fn unlimit(&self) {
        let options = agent_fake::DeleteOptions::default();
        let kind = Kind::ResourceQuota;
        let deleted = self
            .cluster
            .with(|cluster| cluster.delete(kind, NAMESPACE, QUOTA, &options));
        deleted.expect("there is one");
    }

    /// Makes the cluster refuse creates, like an overloaded API server.
    fn throttle(&self) {
        let busy = Fault::refuse(ApiError::too_many_requests(THROTTLED_SECONDS));
        let fault = busy.on(Verb::Create).of(Kind::Pod);
        self.cluster.with(|cluster| cluster.faults_mut().add(fault));
    }

    /// Resumes deletes that the budget of the agent holds.
    fn resume(&self, name: &str) {
        let annotation = json!({"metadata": {"annotations": {RESUME_ANNOTATION: "now"}}});
        self.patch(Kind::ReplicaSet, name, &annotation);
    }

    fn patch(&self, kind: Kind, name: &str, patch: &Value) {
        let patch = |it: &mut agent_fake::Cluster| it.patch(kind, NAMESPACE, name, patch);
        self.cluster.with(patch).expect("it is there");
    }

    /// Creates a ReplicaSet with more requirements than the server accepts.
    fn break_selector(&self, name: &str) {
        let mut set = replica_set(name).build();
        let requirement = json!({"key": "app", "operator": "Exists"});
        set["spec"]["selector"]["matchExpressions"] = vec![requirement; 1_001].into();
        let created = self.cluster.with(|cluster| cluster.create(set));
        created.expect("an API server takes it");
    }

    /// Creates a pod for another controller.
    fn create_foreign(&self, name: &str) {
        self.cluster.with(|cluster| {
            let set = cluster
                .get(Kind::ReplicaSet, NAMESPACE, "api")
                .expect("it is there");
            let object = pod(name).labelled("app", "api").owned_by(&set);
            cluster.create(object.build()).expect("valid");
        });
    }

    fn token(&self, subject: &str) -> Value {
        let (issuer, _) = self.issuer.as_ref().expect("the stage is guarded");
        json!({"token": issuer.token(subject)})
    }
}

/// Returns the names of the pods of a ReplicaSet.
fn names_of(cluster: &agent_fake::Cluster, set: &str) -> Vec<String> {
    let pods = cluster.objects(Kind::Pod);
    let its = pods.filter(|pod| pod["metadata"]["labels"]["app"] == set);
    let names = its.filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned));
    names.collect()
}

/// Returns whether the number of pods is the sum of the desired numbers.
fn is_complete(cluster: &agent_fake::Cluster) -> bool {
    let sets = cluster.objects(Kind::ReplicaSet);
    let wanted = sets.filter_map(|set| set["spec"]["replicas"].as_u64());
    wanted.sum::<u64>() == cluster.objects(Kind::Pod).count() as u64
}

async fn stop(part: &mut Option<Part>) {
    if let Some(Part(task, stop)) = part.take() {
        stop.cancel();
        task.await.expect("it did not panic");
    }
}

impl Part {
    fn start<F>(run: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        Self(tokio::spawn(run(stop.clone())), stop)
    }
}
