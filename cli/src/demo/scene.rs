//! What there is to see in a cluster: pure looks at its objects.

use std::collections::BTreeMap;

use agent_fake::{Cluster, Kind, Verb};
use serde_json::Value;

/// The state of one ReplicaSet and its pods in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) path: String,
    pub(super) wanted: i64,
    /// Its pods that are not ending.
    pub(super) there: i64,
    pub(super) ready: i64,
    /// Its pods that were asked to go and are still there.
    pub(super) going: i64,
    /// Whether the status in the cluster says all this.
    pub(super) told: bool,
    /// The message of the condition ReplicaFailure.
    pub(super) failure: Option<String>,
}

/// A node and the pods that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Empty for the pods that have no node yet.
    pub(super) name: String,
    /// Whether its kubelet answers, as far as the control plane knows.
    pub(super) answers: bool,
    /// By name.
    pub(super) pods: Vec<Pod>,
}

/// A pod as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) state: PodState,
}

/// What a pod is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodState {
    Pending,
    NotReady,
    Ready,
    /// It was asked to go.
    Terminating,
    /// It has failed or succeeded.
    Ended,
    /// Its node does not answer.
    Unknown,
}

/// How many creates of pods the cluster has been asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Creates {
    pub(super) done: u64,
    pub(super) refused: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    there: i64,
    ready: i64,
    going: i64,
}

/// Returns how every ReplicaSet stands, by namespace and name.
pub(super) fn standings(cluster: &Cluster) -> Vec<Standing> {
    let mut counts = BTreeMap::<&str, Count>::new();
    for pod in cluster.objects(Kind::Pod) {
        if let Some(owner) = controller_uid(pod) {
            counts.entry(owner).or_default().add(pod);
        }
    }
    let sets = cluster.objects(Kind::ReplicaSet);
    sets.map(|set| {
        let count = counts
            .get(text(set, "/metadata/uid"))
            .copied()
            .unwrap_or_default();
        standing(set, count)
    })
    .collect()
}

/// Returns the nodes with their pods, by name; pods without a node come last, if there are any.
pub(super) fn nodes(cluster: &Cluster) -> Vec<Node> {
    let mut pods = BTreeMap::<&str, Vec<Pod>>::new();
    for pod in cluster.objects(Kind::Pod) {
        let name = text(pod, "/metadata/name").to_owned();
        let state = pod_state(pod);
        let on = pods.entry(text(pod, "/spec/nodeName")).or_default();
        on.push(Pod { name, state });
    }
    let nodes = cluster.objects(Kind::Node).map(|node| {
        let name = text(node, "/metadata/name");
        Node {
            name: name.to_owned(),
            answers: is_ready(node),
            pods: pods.remove(name).unwrap_or_default(),
        }
    });
    let mut nodes: Vec<_> = nodes.collect();
    let left = pods.into_iter().map(|(name, pods)| Node {
        name: name.to_owned(),
        answers: name.is_empty(),
        pods,
    });
    nodes.extend(left);
    nodes
}

/// Returns whether every ReplicaSet has what it wants, ready, and its status says so.
pub(super) fn all_settled(cluster: &Cluster) -> bool {
    standings(cluster).iter().all(Standing::is_settled)
}

/// Returns whether every ReplicaSet has what it wants, whatever is left of pods that should go.
pub(super) fn all_served(cluster: &Cluster) -> bool {
    standings(cluster).iter().all(Standing::is_served)
}

/// Returns the first ready pod of a ReplicaSet on a node, by name.
pub(super) fn ready_pod_on(cluster: &Cluster, set: &str, node: &str) -> Option<String> {
    let mut pods = cluster.objects(Kind::Pod);
    let found = pods.find(|pod| {
        text(pod, "/metadata/ownerReferences/0/name") == set
            && text(pod, "/spec/nodeName") == node
            && is_active(pod)
            && is_ready(pod)
    });
    found.map(|pod| text(pod, "/metadata/name").to_owned())
}

/// Returns how many active pods a node has.
pub(super) fn active_on(cluster: &Cluster, node: &str) -> usize {
    let pods = cluster.objects(Kind::Pod);
    pods.filter(|pod| text(pod, "/spec/nodeName") == node && is_active(pod))
        .count()
}

/// Returns how many pods there are that have not ended.
pub(super) fn pods(cluster: &Cluster) -> usize {
    cluster
        .objects(Kind::Pod)
        .filter(|pod| !has_ended(pod))
        .count()
}

// === impl Standing ===

impl Standing {
    /// Returns whether it has what it wants, the status says so, and no pod is left that should go.
    pub(super) const fn is_settled(&self) -> bool {
        self.is_served() && self.going == 0
    }

    /// Returns whether it has what it wants, and the status says so.
    pub(super) const fn is_served(&self) -> bool {
        self.told && self.wanted == self.there && self.wanted == self.ready
    }

    /// Says what is missing.
    pub(super) fn lacks(&self) -> String {
        let Self {
            path,
            wanted,
            ready,
            going,
            failure,
            ..
        } = self;
        let failure = failure
            .as_ref()
            .map_or_else(String::new, |text| format!(": {text}"));
        format!(
            "{path} has {ready} ready pods of {wanted} wanted, and {going} terminating{failure}"
        )
    }
}

// === impl Creates ===

impl Creates {
    pub(super) fn of(cluster: &Cluster) -> Self {
        const CREATED: u16 = 201;
        let requests = cluster.requests();
        let done = requests.count_answered(Verb::Create, Kind::Pod, CREATED);
        Self {
            done,
            refused: requests.count(Verb::Create, Kind::Pod).saturating_sub(done),
        }
    }

    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            done: self.done.saturating_sub(before.done),
            refused: self.refused.saturating_sub(before.refused),
        }
    }
}

// === impl Count ===

impl Count {
    fn add(&mut self, pod: &Value) {
        if has_ended(pod) {
            return;
        }
        if !is_active(pod) {
            self.going += 1;
            return;
        }
        self.there += 1;
        self.ready += i64::from(is_ready(pod));
    }
}

fn standing(set: &Value, count: Count) -> Standing {
    let Count {
        there,
        ready,
        going,
    } = count;
    let wanted = number(set, "/spec/replicas");
    let told = number(set, "/status/replicas") == there
        && number(set, "/status/readyReplicas") == ready
        && number(set, "/status/terminatingReplicas") == going
        && number(set, "/status/observedGeneration") == number(set, "/metadata/generation");
    Standing {
        path: format!(
            "{}/{}",
            text(set, "/metadata/namespace"),
            text(set, "/metadata/name")
        ),
        wanted,
        there,
        ready,
        going,
        told,
        failure: failure(set),
    }
}

fn failure(set: &Value) -> Option<String> {
    let conditions = set
        .pointer("/status/conditions")
        .and_then(Value::as_array)?;
    let failure = conditions
        .iter()
        .find(|it| text(it, "/type") == "ReplicaFailure")?;
    Some(text(failure, "/message").to_owned())
}

fn controller_uid(pod: &Value) -> Option<&str> {
    let owners = pod
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    owner["uid"].as_str()
}

fn pod_state(pod: &Value) -> PodState {
    match text(pod, "/status/phase") {
        _ if has_ended(pod) => PodState::Ended,
        _ if !is_active(pod) => PodState::Terminating,
        "Unknown" => PodState::Unknown,
        "Pending" => PodState::Pending,
        _ if is_ready(pod) => PodState::Ready,
        _ => PodState::NotReady,
    }
}

fn is_active(pod: &Value) -> bool {
    pod.pointer("/metadata/deletionTimestamp").is_none() && !has_ended(pod)
}

fn has_ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|it| text(it, "/type") == "Ready");
    ready.is_some_and(|condition| text(condition, "/status") == "True")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}
