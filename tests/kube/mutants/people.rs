//! The acts of people and kubelets in a namespace: ordinary work, and each kind of it needs a different decision.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tests::real::{Namespace, Patch};
use tokio::{sync::watch, task::JoinHandle, time};

use crate::{acts, another, objects};

/// The number of steps.
pub(super) const STEPS: usize = 3;
/// The ReplicaSets that are scaled down in two steps, by the difference of their pods.
const SCALED: [&str; 6] = ["age", "assigned", "cost", "crowded", "ready", "restarts"];
/// The ReplicaSets that keep their size, while an orphan appears, pods crowd a node, a pod gets another label, and ready pods are not
/// yet available.
const STANDING: [&str; 4] = ["adopting", "crowding", "releasing", "waiting"];
const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];
/// The common owner of `crowded` and `crowding`: pods on the same node are counted together.
const OWNER: &str = "6d1ac19c-9b8b-4d5a-8f43-3b9e1a3c6a11";
/// The quiet time before the next step, after which everything was compared.
const STANDS: Duration = Duration::from_secs(12);
/// The maximum time before the next step, because a faulty controller may never rest.
const STANDS_AT_LAST: Duration = Duration::from_mins(1);

/// People and kubelets of a namespace, which end when this is dropped.
pub(super) struct People {
    namespace: Namespace,
    kubelets: Kubelets,
    step_began: Instant,
}

/// The scheduler and the kubelets of a namespace, which end when this is dropped.
pub(crate) struct Kubelets {
    /// The time of their last act.
    acted: watch::Receiver<Instant>,
    task: JoinHandle<()>,
}

/// Acts as scheduler and kubelets.
struct Acting {
    namespace: Namespace,
    acted: watch::Sender<Instant>,
    /// The number of pods that each ReplicaSet has had.
    had: BTreeMap<String, usize>,
    /// The number of a pod in its ReplicaSet, by its name.
    numbers: BTreeMap<String, usize>,
    began: Timestamp,
}

impl People {
    pub(super) async fn begin(namespace: Namespace) -> Self {
        let people = Self {
            kubelets: Kubelets::start(namespace.clone()),
            namespace,
            step_began: Instant::now(),
        };
        for name in SCALED {
            acts::create_set(&people.namespace, &replica_set(name, 6)).await;
        }
        for name in STANDING {
            let replicas = if name == "crowding" { 6 } else { 2 };
            acts::create_set(&people.namespace, &replica_set(name, replicas)).await;
        }
        people
    }

    pub(super) async fn act(&mut self, step: usize) {
        let replicas = match step {
            0 => 6,
            1 => 4,
            _ => 2,
        };
        for name in SCALED {
            acts::scale(&self.namespace, name, replicas).await;
        }
        if step == 1 {
            self.change_claims().await;
        }
        self.step_began = Instant::now();
    }

    /// Whether the kubelets have been idle for long enough for the next step.
    pub(super) fn stands(&self) -> bool {
        let acted = (*self.kubelets.acted.borrow()).max(self.step_began);
        acted.elapsed() > STANDS || self.step_began.elapsed() > STANDS_AT_LAST
    }

    /// Creates an orphan to adopt and a pod that only looks like one, and changes the label of a pod.
    async fn change_claims(&mut self) {
        for label in ["adopting", "adopting-stranger"] {
            let mut pod = objects::pod(&format!("{label}-by-hand"));
            pod["metadata"]["labels"] = json!({"app": label});
            acts::create_pod(&self.namespace, &pod).await;
        }
        let pods = self.namespace.pods().await.expect("they can be listed");
        let mut own = pods
            .iter()
            .filter(|pod| pod["metadata"]["labels"]["app"] == "releasing");
        if let Some(pod) = own.next() {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let patch = json!({"metadata": {"labels": {"app": "elsewhere"}}});
            let api = self.namespace.api();
            let _gone = api
                .patch(&self.namespace.pod(name), Patch::Merge, &patch)
                .await;
        }
    }
}

impl Kubelets {
    pub(crate) fn start(namespace: Namespace) -> Self {
        let (acts, acted) = watch::channel(Instant::now());
        let acting = Acting {
            namespace,
            acted: acts,
            had: BTreeMap::new(),
            numbers: BTreeMap::new(),
            began: Timestamp::now(),
        };
        let task = tokio::spawn(acting.run());
        Self { acted, task }
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Acting {
    async fn run(mut self) {
        let mut looks = time::interval(Duration::from_millis(200));
        loop {
            looks.tick().await;
            let Ok(pods) = self.namespace.pods().await else {
                continue;
            };
            for pod in pods {
                if self.attend(&pod).await {
                    self.acted.send_replace(Instant::now());
                }
            }
        }
    }

    /// Moves a pod one step forward, and returns whether there was a step. The pod may be gone by then.
    async fn attend(&mut self, pod: &Value) -> bool {
        let metadata = &pod["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let (set, number) = self.number(name, &metadata["generateName"]);
        let (api, path) = (self.namespace.api(), self.namespace.pod(name));
        let is_odd = number % 2 == 1;
        if metadata.get("deletionTimestamp").is_some() {
            let _gone = api.delete(&path, &json!({"gracePeriodSeconds": 0})).await;
        } else if pod["spec"].get("nodeName").is_none() {
            if set == "assigned" && is_odd {
                return false;
            }
            let node = match set {
                "crowding" => NODES[0],
                _ => NODES[number % NODES.len()],
            };
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            });
            let _gone = api.create(&format!("{path}/binding"), &binding).await;
        } else if pod["status"]["phase"] != "Running" {
            if set == "cost" {
                let cost = json!({objects::DELETION_COST: number.to_string()});
                let patch = json!({"metadata": {"annotations": cost}});
                let _gone = api.patch(&path, Patch::Merge, &patch).await;
            }
            let status = json!({"status": self.status(set, number)});
            let path = format!("{path}/status");
            let _gone = api.patch(&path, Patch::Strategic, &status).await;
        } else {
            return false;
        }
        true
    }

    /// The ReplicaSet of a pod, and its number in the ReplicaSet.
    fn number<'a>(&mut self, name: &str, made_by: &'a Value) -> (&'a str, usize) {
        let set = made_by.as_str().unwrap_or_default().trim_end_matches('-');
        let number = *self.numbers.entry(name.to_owned()).or_insert_with(|| {
            let had = self.had.entry(set.to_owned()).or_default();
            *had += 1;
            *had - 1
        });
        (set, number)
    }

    /// The status of a running pod: all are equal except for the difference that the name of their ReplicaSet says.
    fn status(&self, set: &str, number: usize) -> Value {
        let is_odd = number % 2 == 1;
        let since = match set {
            "waiting" => Timestamp::now(),
            "age" if is_odd => Timestamp::now(),
            _ => self.began - SignedDuration::from_hours(1),
        };
        let since = Timestamp::from_second(since.as_second()).expect("it is this century");
        let restarts = if set == "restarts" { number } else { 0 };
        let restarts = u32::try_from(restarts).expect("there are few pods");
        let mut status = objects::ready_since(&since.to_string(), restarts);
        if matches!(set, "ready" | "waiting") && is_odd {
            status["conditions"][0]["status"] = json!("False");
            status["containerStatuses"][0]["ready"] = json!(false);
        }
        status
    }
}

fn replica_set(name: &str, replicas: u32) -> Value {
    let mut set = another::set(name, replicas);
    if name.starts_with("crowd") {
        set["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "crowd", "uid": OWNER, "controller": true,
        }]);
    }
    if name == "waiting" {
        set["spec"]["minReadySeconds"] = json!(20);
    }
    set
}
