//! The events of the recorded run. Each step ends when the status reports its result, so that the next step starts from it.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::real::{Agent, ApiServer, DecisionServer, Namespace, User};

use super::sets;
use crate::{acts, objects};

/// A namespace, a recording server, and an agent.
pub(super) struct Run {
    cluster: &'static ApiServer,
    namespace: Namespace,
    folder: TempDir,
    server: DecisionServer,
    agent: Agent,
}

impl Run {
    /// Starts everything. `None` without programs to run a cluster.
    pub(super) async fn begin(name: &str) -> Option<Self> {
        let cluster = ApiServer::shared().await?;
        let namespace = Namespace::create(cluster.admin().await, name).await;
        let folder = TempDir::new().expect("there is room");
        let server = DecisionServer::recording(folder.path());
        let agent = start_agent(cluster, &namespace, &server).await;
        Some(Self {
            cluster,
            namespace,
            folder,
            server,
            agent,
        })
    }

    /// Three ReplicaSets get their pods, which become ready; two are siblings, and one waits until its pods are available.
    pub(super) async fn sets_grow(&self) {
        for (name, replicas, owner) in [("web", 4, Some("shop")), ("api", 3, Some("shop"))] {
            acts::create_set(&self.namespace, &sets::replica_set(name, replicas, owner)).await;
            self.status_becomes(name, &json!({"replicas": replicas}))
                .await;
        }
        let mut worker = sets::replica_set("worker", 4, None);
        worker["spec"]["minReadySeconds"] = 2.into();
        acts::create_set(&self.namespace, &worker).await;
        self.status_becomes("worker", &json!({"replicas": 4})).await;

        let web = self.pods("web").await;
        for (pod, cost) in web.iter().zip(["-5", "10"]) {
            let costs = json!({"metadata": {"annotations": {objects::DELETION_COST: cost}}});
            acts::patch_pod(&self.namespace, pod, &costs).await;
        }
        for (at, (pod, node)) in web.iter().zip(["c", "a", "a", "b"]).enumerate() {
            let minutes = i64::try_from(at).expect("few") * 10 + 1;
            self.starts(pod, node, &ago(minutes * 60), [0, 0]).await;
        }
        for (pod, node) in self.pods("api").await.iter().zip(["a", "b", "c"]) {
            self.starts(pod, node, &ago(60), [0, 0]).await;
        }
        let now = ago(0);
        let of_worker = [("a", [3, 0]), ("b", [0, 2]), ("c", [0, 0]), ("d", [0, 0])];
        for (pod, (node, restarts)) in self.pods("worker").await.iter().zip(of_worker) {
            self.starts(pod, node, &now, restarts).await;
        }
        for (name, count) in [("web", 4), ("api", 3), ("worker", 4)] {
            let all = json!({"readyReplicas": count, "availableReplicas": count});
            self.status_becomes(name, &all).await;
        }
    }

    /// Pods are deleted because they have no node, by their cost, for a crowded node, for restarts of either kind, and for their
    /// age.
    pub(super) async fn each_rule_chooses_a_victim(&self) {
        self.scales("web", 8).await;
        self.scales("web", 3).await;
        self.scales("api", 2).await;
        self.scales("worker", 3).await;
        self.scales("worker", 2).await;
        let since = ago(0);
        for pod in self.pods("worker").await {
            let status = sets::ready_since(&since, 0, 0);
            acts::set_pod_status(&self.namespace, &pod, &status).await;
        }
        self.scales("worker", 3).await;
        let pods = self.pods("worker").await;
        let new = pods.iter().find(|pod| pod["spec"]["nodeName"].is_null());
        self.starts(new.expect("it is new"), "e", &since, [0, 0])
            .await;
        self.status_becomes(
            "worker",
            &json!({"readyReplicas": 3, "availableReplicas": 3}),
        )
        .await;
        self.scales("worker", 2).await;
        self.nodes_stop_pods().await;
        self.status_becomes("web", &json!({"replicas": 3, "terminatingReplicas": 0}))
            .await;
    }

    /// A pod is removed, one fails, and a node with two others is lost.
    pub(super) async fn pods_and_a_node_are_lost(&self) {
        let web = self.pods("web").await;
        let on_a = on_node(&web, "a");
        acts::remove_pod(&self.namespace, on_a[0]).await;
        self.status_becomes("web", &json!({"replicas": 3, "readyReplicas": 2}))
            .await;
        let api = self.pods("api").await;
        let failed = json!({"phase": "Failed", "conditions": null});
        acts::set_pod_status(&self.namespace, on_node(&api, "c")[0], &failed).await;
        self.status_becomes("api", &json!({"replicas": 2, "readyReplicas": 1}))
            .await;
        for pod in on_node(&web, "b").into_iter().chain(on_node(&api, "b")) {
            let unready = json!({"conditions": [{"type": "Ready", "status": "Unknown"}]});
            acts::set_pod_status(&self.namespace, pod, &unready).await;
            acts::delete_pod(&self.namespace, pod).await;
        }
        for (name, replicas) in [("web", 3), ("api", 2)] {
            let lost = json!({"replicas": replicas, "terminatingReplicas": 1});
            self.status_becomes(name, &lost).await;
        }
        self.nodes_stop_pods().await;
        for name in ["web", "api"] {
            self.status_becomes(name, &json!({"terminatingReplicas": 0}))
                .await;
        }
    }

    /// A pod is labeled away and back, one comes as an orphan, and the template gets a label that its pods lack.
    pub(super) async fn labels_move_pods(&self) {
        let pods = self.pods("web").await;
        for app in ["debug", "web"] {
            self.relabel(&pods[0], app).await;
        }
        // One of four pods was surplus, whichever pod that was.
        let left = self.pods("web").await;
        self.relabel(&left[0], "debug").await;
        acts::create_pod(&self.namespace, &sets::orphan("stray", "api")).await;
        self.all_owned("api", 2).await;
        let labelled = json!({"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}});
        acts::patch_set(&self.namespace, "api", &labelled).await;
        self.status_becomes("api", &json!({"replicas": 2, "fullyLabeledReplicas": 0}))
            .await;
        self.scales("api", 3).await;
        self.status_becomes("api", &json!({"fullyLabeledReplicas": 1}))
            .await;
    }

    /// A quota admits two of four pods, and the rest when it is raised.
    pub(super) async fn a_quota_refuses_pods(&self) {
        self.namespace.allow_pods(2).await;
        acts::scale(&self.namespace, "web", 7).await;
        let path = self.namespace.replica_set("web");
        let failed = |set: &Value| {
            let status = &set["status"];
            (status["replicas"] == 5 && status["conditions"].is_array()).then_some(())
        };
        self.namespace.wait_for("refused", &path, failed).await;
        self.namespace.raise_quota(100).await;
        self.status_becomes("web", &json!({"replicas": 7, "conditions": null}))
            .await;
    }

    /// A ReplicaSet in deletion does not replace a pod, and is gone then.
    pub(super) async fn a_set_is_deleted(&self) {
        let path = self.namespace.replica_set("worker");
        let api = self.namespace.api();
        let orphan = json!({"propagationPolicy": "Orphan"});
        api.delete(&path, &orphan).await.expect("it is there");
        self.status_becomes("worker", &json!({"replicas": 2})).await;
        let pods = self.pods("worker").await;
        acts::remove_pod(&self.namespace, &pods[0]).await;
        self.status_becomes("worker", &json!({"replicas": 1})).await;
        let unheld = json!({"metadata": {"finalizers": null}});
        acts::patch_set(&self.namespace, "worker", &unheld).await;
    }

    /// The agent stops, many changes follow, and another agent takes over.
    pub(super) async fn agent_is_restarted(self) -> Self {
        let ended = self.agent.terminate();
        assert_eq!(ended.code(), Some(0), "it drained");
        acts::scale(&self.namespace, "web", 9).await;
        let web = pods(&self.namespace, "web").await;
        acts::remove_pod(&self.namespace, &web[0]).await;
        for name in ["late", "later"] {
            acts::create_pod(&self.namespace, &sets::orphan(name, "api")).await;
        }
        let agent = start_agent(self.cluster, &self.namespace, &self.server).await;
        let run = Self { agent, ..self };
        run.status_becomes("web", &json!({"replicas": 9})).await;
        run.status_becomes("api", &json!({"replicas": 3})).await;
        run.all_owned("api", 3).await;
        run
    }

    /// The server drains and another replaces it, to which the agent reconnects.
    pub(super) async fn server_is_replaced(self) -> Self {
        let server = self.server.replace();
        let run = Self { server, ..self };
        run.scales("web", 4).await;
        run.scales("api", 5).await;
        run.scales("web", 0).await;
        run
    }

    /// Kills the agent, stops the server, and returns the recordings.
    pub(super) fn end(self) -> TempDir {
        self.agent.kill();
        let ended = self.server.terminate();
        assert_eq!(ended.code(), Some(0));
        self.folder
    }

    /// Assigns a pod to a node, where it becomes ready.
    async fn starts(&self, pod: &Value, node: &str, since: &str, restarts: [u32; 2]) {
        let name = acts::name(pod);
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": format!("node-{node}")},
        });
        let path = format!("{}/binding", self.namespace.pod(name));
        self.namespace.make(&path, &binding).await;
        let [regular, sidecar] = restarts;
        let status = sets::ready_since(since, regular, sidecar);
        acts::set_pod_status(&self.namespace, pod, &status).await;
    }

    async fn scales(&self, name: &str, replicas: u32) {
        acts::scale(&self.namespace, name, replicas).await;
        self.status_becomes(name, &json!({"replicas": replicas}))
            .await;
    }

    /// Removes the terminating pods, as their nodes do when the pods have stopped.
    async fn nodes_stop_pods(&self) {
        let pods = self.namespace.pods().await.expect("they can be listed");
        for pod in pods.iter().filter(|pod| is_terminating(pod)) {
            acts::remove_pod(&self.namespace, pod).await;
        }
    }

    /// Labels a pod of `web` away or back, and waits until there are three.
    async fn relabel(&self, pod: &Value, app: &str) {
        let labels = json!({"metadata": {"labels": {"app": app}}});
        acts::patch_pod(&self.namespace, pod, &labels).await;
        self.all_owned("web", 3).await;
    }

    /// Waits until there are this many active pods with a label, all of them owned.
    async fn all_owned(&self, app: &str, count: usize) {
        let what = format!("{count} of {app}");
        acts::pods_become_so(&self.namespace, &what, |pods| {
            let active = active(pods, app);
            active.len() == count && active.iter().all(|pod| is_owned(pod))
        })
        .await;
    }

    async fn status_becomes(&self, name: &str, wanted: &Value) {
        acts::status_becomes(&self.namespace, name, wanted).await;
    }

    async fn pods(&self, app: &str) -> Vec<Value> {
        pods(&self.namespace, app).await
    }
}

async fn start_agent(cluster: &ApiServer, namespace: &Namespace, server: &DecisionServer) -> Agent {
    let name = namespace.name();
    let mut flags = vec!["--namespace", name, "--lease-namespace", name];
    // A lost Lease would add a session.
    flags.extend(["--lease-duration", "1m"]);
    let agent = Agent::start(server, &cluster.kubeconfig(User::Admin), &flags);
    agent.becomes_ready().await;
    agent
}

/// The active pods with this label, sorted by name.
async fn pods(namespace: &Namespace, app: &str) -> Vec<Value> {
    let pods = namespace.pods().await.expect("they can be listed");
    active(&pods, app).into_iter().cloned().collect()
}

fn active<'a>(pods: &'a [Value], app: &str) -> Vec<&'a Value> {
    let is_active = |pod: &&Value| {
        let labels = &pod["metadata"]["labels"];
        labels["app"] == app && !is_terminating(pod) && pod["status"]["phase"] != "Failed"
    };
    pods.iter().filter(is_active).collect()
}

fn on_node<'a>(pods: &'a [Value], node: &str) -> Vec<&'a Value> {
    let node = format!("node-{node}");
    let is_there = |pod: &&Value| pod["spec"]["nodeName"] == node.as_str();
    pods.iter().filter(is_there).collect()
}

fn is_terminating(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

fn is_owned(pod: &Value) -> bool {
    pod["metadata"]["ownerReferences"].is_array()
}

/// The time `seconds` ago, to the second.
fn ago(seconds: i64) -> String {
    let time = Timestamp::now() - SignedDuration::from_secs(seconds);
    format!("{time:.0}")
}
