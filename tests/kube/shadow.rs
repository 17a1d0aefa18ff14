//! Shadow mode beside kube-controller-manager, while Deployments roll, ReplicaSets scale, people delete and evict pods, nodes are
//! lost, a quota refuses pods and a namespace ends: every difference is explained.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tests::{
    depth,
    real::{Agent, ApiServer, ControllerManager, DecisionServer, Namespace, Patch},
    rng::Rng,
};
use tokio::{task::JoinSet, time};

use crate::{
    acts, another,
    kubelets::{self, NODES},
    modes::{compared, differences, may_only_read, unexplained},
};

/// The number of comparisons without an unexplained difference, unless `DECREE_SHADOW_COMPARISONS` sets another.
const COMPARISONS: u64 = 150;
/// The least number of namespaces with people, and the comparisons for each one, so that many take minutes.
const NAMESPACES: u64 = 4;
const OF_NAMESPACE: u64 = 400;
const CONTROLLERS: &str = "--controllers=replicaset-controller,deployment-controller,namespace-controller,garbage-collector-controller,resourcequota-controller";
/// The rate limits of the other controllers. The defaults are so low that the controllers would lag longer than the shadow-mode
/// agent waits.
const LIMITS: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=1000"];
const DEPLOYMENTS: [&str; 3] = ["shop", "cart", "mail"];
const SETS: [&str; 2] = ["web", "api"];
/// The time after which missing actions are reported, and a reserve.
const TOLD: Duration = Duration::from_secs(45);

/// The acts of people in a namespace.
struct People {
    namespace: Namespace,
    rng: Rng,
    log: Vec<String>,
}

impl People {
    async fn begin(namespace: Namespace, seed: u64) -> Self {
        let people = Self {
            namespace,
            rng: Rng::new(seed),
            log: Vec::new(),
        };
        for name in DEPLOYMENTS {
            people
                .create("deployments", &workload("Deployment", name))
                .await;
        }
        for name in SETS {
            people
                .create("replicasets", &workload("ReplicaSet", name))
                .await;
        }
        people
    }

    async fn create(&self, resource: &str, object: &Value) {
        let path = self.namespace.path("/apis/apps/v1", resource, "");
        self.namespace.make(&path, object).await;
    }

    /// Acts repeatedly until all comparisons are done.
    async fn work(mut self, is_done: Arc<AtomicBool>) -> Self {
        while !is_done.load(Ordering::Relaxed) {
            self.act().await;
        }
        self
    }

    /// Acts once, and ignores objects that are gone meanwhile.
    async fn act(&mut self) {
        let deployment = *self.rng.pick(&DEPLOYMENTS);
        let replicas = self.rng.between(0, 8);
        let scale = json!({"spec": {"replicas": replicas}});
        let done = match self.rng.between(0, 19) {
            0..=5 => {
                let revision = self.rng.next_u64().to_string();
                let template = json!({"metadata": {"annotations": {"revision": revision}}});
                let patch = json!({"spec": {"replicas": replicas.max(2), "template": template}});
                self.patch("deployments", deployment, &patch).await;
                format!("roll {deployment} to {replicas}")
            }
            6..=9 => {
                self.patch("deployments", deployment, &scale).await;
                format!("scale {deployment} to {replicas}")
            }
            10..=13 => {
                let set = *self.rng.pick(&SETS);
                self.patch("replicasets", set, &scale).await;
                format!("scale {set} to {replicas}")
            }
            14 => self.delete(false).await,
            15 | 16 => self.delete(true).await,
            17 => self.lose_node().await,
            _ => self.quota().await,
        };
        self.log.push(done);
        let wait = self.rng.between(500, 6_000);
        time::sleep(Duration::from_millis(wait)).await;
    }

    async fn patch(&self, resource: &str, name: &str, patch: &Value) {
        let path = self.namespace.path("/apis/apps/v1", resource, name);
        self.namespace.change(&path, patch).await;
    }

    /// Deletes a pod, or evicts it.
    async fn delete(&mut self, is_evicted: bool) -> String {
        let pods = self.namespace.pods().await.expect("they can be listed");
        if pods.is_empty() {
            return "delete nothing".to_owned();
        }
        let name = self.rng.pick(&pods)["metadata"]["name"].clone();
        let name = name.as_str().unwrap_or_default();
        self.delete_pod(name, is_evicted).await;
        format!("delete {name}, evicted: {is_evicted}")
    }

    async fn delete_pod(&self, name: &str, is_evicted: bool) {
        let (api, path) = (self.namespace.api(), self.namespace.pod(name));
        if is_evicted {
            let condition = json!({"type": "DisruptionTarget", "status": "True"});
            let status = json!({"status": {"conditions": [condition]}});
            let path = format!("{path}/status");
            let _gone_meanwhile = api.patch(&path, Patch::Strategic, &status).await;
        }
        let _gone_meanwhile = api.delete(&path, &json!({})).await;
    }

    /// Evicts all pods of a node.
    async fn lose_node(&mut self) -> String {
        let node = *self.rng.pick(&NODES);
        let pods = self.namespace.pods().await.expect("they can be listed");
        for pod in pods.iter().filter(|pod| pod["spec"]["nodeName"] == node) {
            let name = pod["metadata"]["name"].as_str();
            self.delete_pod(name.unwrap_or_default(), true).await;
        }
        format!("lose {node}")
    }

    /// Makes a quota refuse pods for a while, or removes it.
    async fn quota(&mut self) -> String {
        let (api, path) = (self.namespace.api(), |name| {
            self.namespace.path("/api/v1", "resourcequotas", name)
        });
        if api.delete(&path("pods"), &json!({})).await.is_ok() {
            return "end the quota".to_owned();
        }
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"},
            "spec": {"hard": {"pods": "20"}},
        });
        api.make(&path(""), &quota).await;
        "begin a quota".to_owned()
    }
}

/// A Deployment or a ReplicaSet of a few pods.
fn workload(kind: &str, name: &str) -> Value {
    let mut object = another::set(name, 4);
    object["kind"] = json!(kind);
    object
}

/// Ends a namespace whose pods a finalizer holds, so that its ReplicaSet stays without pods. Returns the namespace, whose
/// finalizer must be removed.
async fn end_a_namespace(cluster: &ApiServer) -> Namespace {
    let ending = Namespace::create(cluster.admin().await, "ending").await;
    let mut set = workload("ReplicaSet", "held");
    set["spec"]["template"]["metadata"]["finalizers"] = json!(["decree.test/held"]);
    let api = ending.api();
    api.make(&ending.replica_set(""), &set).await;
    acts::pods_become(&ending, 4).await;
    api.remove("/api/v1/namespaces/ending", &json!({})).await;
    ending
}

#[tokio::test(flavor = "multi_thread")]
async fn shadow_agrees_with_the_built_in_controllers() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let seed = depth::number("DECREE_SHADOW_SEED").unwrap_or(1_u64);
    let goal = depth::number("DECREE_SHADOW_COMPARISONS").unwrap_or(COMPARISONS);
    let namespaces = NAMESPACES.max(goal / OF_NAMESPACE);
    let _peer = ControllerManager::start(&cluster, &[CONTROLLERS, LIMITS[0], LIMITS[1]]);
    let admin = cluster.admin().await;
    let reading = Namespace::create(admin.clone(), "reading").await;
    let reader = may_only_read(&cluster, &reading).await;
    let server = DecisionServer::start();
    let flags = ["--mode", "shadow", "--leader-elect=false"];
    let agent = Agent::start(&server, &reader, &flags);
    agent.running().wait_for_message("listed", 2);
    let is_done = Arc::new(AtomicBool::new(false));
    let (mut kubelets, mut people) = (JoinSet::new(), JoinSet::new());
    for number in 0..namespaces {
        let namespace = Namespace::create(admin.clone(), &format!("shadow-{number}")).await;
        let seed = seed.wrapping_add(number << 32);
        kubelets.spawn(kubelets::act(namespace.clone()));
        let begun = People::begin(namespace, seed).await;
        people.spawn(begun.work(Arc::clone(&is_done)));
    }
    let _ending = end_a_namespace(&cluster).await;
    let mut looks = time::interval(Duration::from_secs(1));
    while compared(&differences(&server)) < goal {
        looks.tick().await;
        assert!(people.try_join_next().is_none(), "people are at work");
    }
    is_done.store(true, Ordering::Relaxed);
    let people = people.join_all().await;
    // Missing actions are reported late.
    time::sleep(TOLD).await;
    let answer = differences(&server);
    eprintln!("DECREE_SHADOW_SEED={seed}: {answer:#}");
    let log: Vec<_> = people.iter().map(|people| &people.log).collect();
    assert_eq!(unexplained(&answer), 0, "{answer:#}\nafter {log:#?}");
    let found = answer["differences"].as_array().into_iter().flatten();
    let mut of_ending = found.filter(|told| told["replicaSet"]["namespace"] == "ending");
    let told = of_ending
        .next()
        .expect("it is not made anew in a namespace that ends");
    assert_eq!(told["departure"], "DEPARTURE_NAMESPACE_ENDING");
}
