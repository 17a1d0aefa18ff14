//! Drains with upstream's programs: kube-scheduler, the Deployment, disruption, quota, taint and autoscaling controllers, and
//! `kubectl drain`.
//!
//! Each row of [`ROWS`] is a workload on three nodes of its own. [`Nodes`] judges each event of its pods.

use std::{process::Output, thread, time::Duration};

use agent_fake::is_ready;
use serde_json::{Value, json};
use tests::{
    binaries, depth,
    real::{
        Agent, DecisionServer, NodeCluster, Nodes, Patch, REFUSED, ReplicaSetController, User,
        node_of,
    },
};
use tokio::{runtime::Builder, task::JoinHandle};

use crate::{acts, evictions, lasting::is_explained};

/// The name of a workload and its controller; its kind, and its desired, always ready and at most active pods; its surge; and the acts.
///
/// A budget keeps the desired pods, and a Deployment the ready ones. In a roll-out, two ReplicaSets have a surge. An act with a number waits
/// until this number of active pods is so: `ready`, on the chosen `node`, the chosen `pod`, of the `old` release.
const ROWS: &str = "\
single       decree   | Deployment 1 1 2 | true | drain, drained
bare         decree   | ReplicaSet 1 1 2 | true | drain, drained
half         decree   | ReplicaSet 4 4 6 | 50%  | drain, drained
two-drains   decree   | Deployment 2 2 3 | 1    | drain, drain, drained
rollout      decree   | Deployment 2 2 5 | 1    | drain, roll-out, drained, old 0
lean         decree   | Deployment 3 2 6 | 1    | drain, roll-out, drained, old 0
scaled-up    decree   | Deployment 1 1 4 | true | drain, active 2, scale 3, drained
scaled-down  decree   | Deployment 1 1 2 | true | cordon, ready 2, scale 0, active 0, scale 1
hpa          decree   | Deployment 1 1 4 | true | cordon, ready 2, autoscale 3 4, ready 4, autoscale 1 2, active 3, drain-again, autoscale 3 3, drained
uncordoned   decree   | Deployment 1 1 2 | true | cordon, ready 2, pod 1, uncordon, active 1
lost         decree   | Deployment 1 1 2 | true | cordon, ready 2, lose, ready 2, drain-again, drained
quota        decree   | Deployment 1 1 2 | true | quota 1, drain-in-vain, says exceeded quota, hangs, quota 2, drain-again, drained
karpenter    decree   | Deployment 1 1 2 | true | taint karpenter.sh/disrupted, node 0
autoscaler   decree   | Deployment 1 1 2 | true | taint ToBeDeletedByClusterAutoscaler, node 0
leaving      decree   | Deployment 1 1 2 | true | leave, pod 0
agent-dies   decree   | Deployment 1 1 2 | true | kill agent, drain, kill agent, active 2, kill agent, ready 2, kill agent, drained, kill agent
server-dies  decree   | Deployment 1 1 2 | true | kill server, drain, kill server, active 2, kill server, ready 2, kill server, drained, kill server
no-nodes     no-nodes | Deployment 1 1 1 | true | drain-in-vain, says surge-on-eviction: needs nodes; start the agent with --nodes, hangs
upstream     upstream | Deployment 1 1 1 | true | drain-in-vain, hangs
";
/// The acts on a pod that no act has chosen before, or on its node.
const CHOOSING: [&str; 7] = [
    "cordon",
    "taint",
    "drain",
    "drain-in-vain",
    "leave",
    "lose",
    "request",
];
/// The longest time until a pod is ready.
const READY_WITHIN: Duration = Duration::from_secs(4);

/// A workload with its controller: Decree, or upstream's.
struct Stage<'a> {
    agent: Option<Agent>,
    server: Option<DecisionServer>,
    _upstream: Option<ReplicaSetController>,
    /// Whether the agent reads nodes.
    reads_nodes: bool,
    cluster: &'a NodeCluster,
    nodes: Nodes,
    desired: usize,
    /// The pods that acts have chosen, the latest last.
    chosen: Vec<Value>,
    drains: Vec<JoinHandle<Output>>,
}

/// Runs a part of the test on this thread.
pub(crate) fn run<T>(part: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(part)
}

#[test]
fn drains_end_and_no_pod_is_missed_whatever_happens_meanwhile() {
    let cluster = &tests::or_skip!(run(NodeCluster::start("")));
    for seed in 1..=if depth::is_full() { 5 } else { 1 } {
        thread::scope(|rows| {
            for row in ROWS.lines() {
                rows.spawn(move || run(play(cluster, row, seed)));
            }
        });
    }
}

/// Plays a row to its end.
pub(crate) async fn play(cluster: &NodeCluster, row: &str, seed: u64) {
    let cells: Vec<_> = row.split('|').map(str::trim).collect();
    let words: Vec<_> = cells.iter().flat_map(|it| it.split_whitespace()).collect();
    let [name, controller, kind, desired, floor, most, surge, ..] = words[..] else {
        panic!("{row}");
    };
    let [desired, floor, most] = [desired, floor, most].map(|it| it.parse().expect("a number"));
    let name = format!("{name}-{seed}");
    let nodes = cluster.nodes(&name, seed, READY_WITHIN).await;
    let mut stage = Stage {
        agent: None,
        server: None,
        _upstream: None,
        reads_nodes: controller == "decree",
        cluster,
        nodes,
        desired,
        chosen: Vec::new(),
        drains: Vec::new(),
    };
    if controller == "upstream" {
        let (server, namespace) = (cluster.server(), stage.nodes.namespace());
        stage._upstream = ReplicaSetController::start(server, namespace, &[]).await;
    } else {
        stage.server = Some(DecisionServer::start());
        stage.start_agent();
    }
    stage
        .nodes
        .run(kind, (desired, desired, floor), surge)
        .await;
    for act in cells[3].split(", ") {
        stage.act(act).await;
    }
    let rests = |pods: &[Value]| pods.len() == stage.desired && pods.iter().all(is_ready);
    stage.nodes.become_so("at rest", rests).await;
    let judged = stage.nodes.judged();
    let is_kept = judged.dips.is_empty() && judged.most <= most;
    assert!(is_kept, "{row}: {judged:#?}");
}

impl Stage<'_> {
    fn start_agent(&mut self) {
        let namespace = self.nodes.namespace().name();
        let mut flags = vec!["--leader-elect=false", "--namespace", namespace];
        flags.extend(self.reads_nodes.then_some("--nodes"));
        let kubeconfig = self.cluster.server().kubeconfig(User::Admin);
        let server = self.server.as_ref().expect("it was started");
        self.agent = Some(Agent::start(server, &kubeconfig, &flags));
    }

    /// Kills a program with SIGKILL, and starts it again.
    fn kill(&mut self, who: &str) {
        if who == "agent" {
            self.agent.take().expect("it acts").kill();
            return self.start_agent();
        }
        let server = self.server.take().expect("it decides");
        let address = server.address().to_owned();
        server.kill();
        self.server = Some(DecisionServer::start_in(binaries::folder(), &address, &[]));
    }

    /// Returns the pod that was chosen last, and its node.
    fn chosen(&self) -> (&Value, &str) {
        let pod = self.chosen.last().expect("an act before chose it");
        (pod, node_of(pod))
    }

    /// Chooses an active pod on a node that no act has chosen.
    async fn choose(&mut self) {
        let is_free = |pod: &Value| {
            let (node, mut chosen) = (node_of(pod), self.chosen.iter());
            !node.is_empty() && chosen.all(|it| node_of(it) != node)
        };
        let free = |pods: &[Value]| pods.iter().any(is_free);
        self.nodes.become_so("on another node", free).await;
        let mut pods = self.nodes.active();
        pods.retain(is_free);
        self.chosen.extend(pods.pop());
    }

    async fn act(&mut self, act: &str) {
        let (verb, word) = act.split_once(' ').unwrap_or((act, ""));
        if CHOOSING.contains(&verb) {
            self.choose().await;
        }
        if evictions::VERBS.contains(&verb) {
            let pod = self.chosen.last();
            return evictions::act(self.nodes.namespace(), pod, verb, word).await;
        }
        match verb {
            "drain" | "drain-again" => self.drains.push(self.nodes.drain(self.chosen().1, "10m")),
            "drain-in-vain" => {
                let drain = self.nodes.drain_until_refused(self.chosen().1);
                self.drains.push(drain);
            }
            "cordon" => self.change_node(&json!({"unschedulable": true})).await,
            "uncordon" => self.change_node(&json!({"unschedulable": null})).await,
            "taint" => {
                let taint = json!({"key": word, "effect": "NoSchedule"});
                self.change_node(&json!({"taints": [taint]})).await;
            }
            "leave" => {
                let leaving = json!({"metadata": {"annotations": {"decree.dev/leaving": ""}}});
                acts::patch_pod(self.nodes.namespace(), self.chosen().0, &leaving).await;
            }
            "lose" => {
                let lost = self.chosen.pop().expect("it was chosen");
                self.nodes.lose(node_of(&lost)).await;
                let is_well = |it: &Value| node_of(it) == node_of(&lost) && is_ready(it);
                let is_known = |pods: &[Value]| !pods.iter().any(is_well);
                self.nodes.become_so("known as lost", is_known).await;
            }
            "roll-out" => {
                let template = json!({"metadata": {"labels": {"release": "2"}}});
                self.nodes
                    .change_deployment(&json!({"template": template}))
                    .await;
            }
            "scale" => {
                self.desired = word.parse().expect("it is a number");
                self.nodes.lower_floor(self.desired);
                let scale = json!({"replicas": self.desired});
                self.nodes.change_deployment(&scale).await;
            }
            "autoscale" => self.autoscale(word).await,
            "quota" => self.allow(word).await,
            "kill" => self.kill(word),
            "says" => {
                let set = &self.chosen().0["metadata"]["ownerReferences"][0]["name"];
                let set = set.as_str().expect("it is owned");
                let set = format!("{}/{set}", self.nodes.namespace().name());
                let server = self.server.as_ref().expect("upstream explains nothing");
                is_explained(server, &set, word).await;
            }
            "drained" | "hangs" => self.end_drains(verb == "drained").await,
            _ => self.becomes(verb, word).await,
        }
    }

    async fn end_drains(&mut self, succeed: bool) {
        for drain in self.drains.drain(..) {
            let output = drain.await.expect("it ends");
            let said = String::from_utf8_lossy(&output.stderr);
            let is_so = output.status.success() == succeed;
            assert!(is_so && (said.contains(REFUSED) || succeed), "{said}");
        }
    }

    /// Waits until a number of active pods is so.
    async fn becomes(&self, what: &str, number: &str) {
        let number: usize = number.parse().expect("it is a number");
        let is_so = |pod: &&Value| match what {
            "active" => true,
            "ready" => is_ready(pod),
            "node" => node_of(pod) == self.chosen().1,
            "pod" => pod["metadata"]["uid"] == self.chosen().0["metadata"]["uid"],
            "old" => pod["metadata"]["labels"]["release"].is_null(),
            _ => panic!("no act is called {what}"),
        };
        let are_so = |pods: &[Value]| pods.iter().filter(is_so).count() == number;
        self.nodes.become_so(what, are_so).await;
    }

    async fn change_node(&self, spec: &Value) {
        self.nodes.change(self.chosen().1, spec).await;
    }

    /// Creates or changes the autoscaler of the Deployment. Without metrics, it keeps the Deployment between the two numbers.
    async fn autoscale(&mut self, bounds: &str) {
        let bounds = bounds.split(' ').map(|it| it.parse().expect("a number"));
        let [least, most]: [usize; 2] = bounds.collect::<Vec<_>>().try_into().expect("two");
        self.desired = self.desired.clamp(least, most);
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let spec = json!({"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most});
        let object = ("autoscaling/v2", "HorizontalPodAutoscaler");
        self.apply(object, &spec).await;
    }

    /// Creates or changes a quota of pods, whose controller is upstream's.
    async fn allow(&self, pods: &str) {
        let spec = json!({"hard": {"pods": pods}});
        self.apply(("v1", "ResourceQuota"), &spec).await;
    }

    async fn apply(&self, (version, kind): (&str, &str), spec: &Value) {
        let namespace = self.nodes.namespace();
        let object =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": "few"}, "spec": spec});
        let group = ["/api", "/apis"][usize::from(version.contains('/'))];
        let resource = format!("{}s", kind.to_lowercase());
        let name = "few?fieldManager=tests";
        let path = namespace.path(&format!("{group}/{version}"), &resource, name);
        let applied = namespace.patch(&path, Patch::Apply, &object).await;
        applied.expect("it is valid");
    }
}
