//! The scheduler and the kubelets: they move pods from Pending to Running to Ready, and stop them.

use serde_json::{Value, json};

use crate::{
    commit,
    kind::Kind,
    object::{self, Object, set_condition},
    state::State,
    store::ObjectKey,
    timeline::PodRef,
    wake,
};

/// The state of the containers that a kubelet reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Containers {
    Started,
    Ready,
    Succeeded,
}

/// Restarts the steps of a pod after the outage of its node.
pub(crate) fn revive(state: &mut State, pod: &Object) {
    let lost = object::phase(pod) == "Unknown" && !object::is_deleting(pod);
    if !lost {
        wake::schedule_next_step(state, pod);
        return;
    }
    let started = pod["status"]["containerStatuses"].is_array();
    let phase = if started { "Running" } else { "Pending" };
    let mut new = Value::clone(pod);
    let status = object::fields(&mut new, "status");
    status.insert("phase".to_owned(), phase.into());
    status.shift_remove("reason");
    let pod = commit::change(state, Kind::Pod, pod, new);
    wake::schedule_next_step(state, &pod);
}

pub(crate) fn bind(state: &mut State, pod: &PodRef) {
    let Some(pod) = live(state, pod, "Pending").filter(|pod| object::node(pod).is_empty()) else {
        return;
    };
    let mut bound = Value::clone(&pod);
    let (kind, now) = ("PodScheduled", state.now());
    if let Some(node) = choose_node(state) {
        object::fields(&mut bound, "spec").insert("nodeName".to_owned(), node.into());
        set_condition(&mut bound, now, kind, "True", "");
    } else {
        set_condition(&mut bound, now, kind, "False", "Unschedulable");
    }
    commit::change(state, Kind::Pod, &pod, bound);
}

pub(crate) fn start(state: &mut State, pod: &PodRef) {
    if let Some(pod) = live(state, pod, "Pending").filter(|pod| is_up(state, object::node(pod))) {
        let started = observe(state, &pod, Containers::Started);
        commit::change(state, Kind::Pod, &pod, started);
    }
}

pub(crate) fn become_ready(state: &mut State, pod: &PodRef) {
    if let Some(pod) = live(state, pod, "Running").filter(|pod| is_up(state, object::node(pod))) {
        let ready = observe(state, &pod, Containers::Ready);
        commit::change(state, Kind::Pod, &pod, ready);
    }
}

/// Stops a deleted pod as a kubelet does: first its last status, then the end of its grace period.
pub(crate) fn stop(state: &mut State, pod: &PodRef) {
    let Some(pod) = find_pod(state, pod).filter(|pod| object::is_deleting(pod)) else {
        return;
    };
    if !is_up(state, object::node(&pod)) {
        return;
    }
    let mut stopped = pod.clone();
    if !object::has_ended(&pod) {
        let last = observe(state, &pod, Containers::Succeeded);
        stopped = commit::change(state, Kind::Pod, &pod, last);
    }
    commit::end_grace(state, &stopped);
}

fn find_pod(state: &State, pod: &PodRef) -> Option<Object> {
    let found = state.store.find(Kind::Pod, &pod.key);
    found.filter(|found| object::uid(found) == pod.uid).cloned()
}

fn live(state: &State, pod: &PodRef, phase: &str) -> Option<Object> {
    let pod = find_pod(state, pod)?;
    (!object::is_deleting(&pod) && object::phase(&pod) == phase).then_some(pod)
}

/// True if the kubelet of a node responds. A node unknown to the model never does.
fn is_up(state: &State, name: &str) -> bool {
    state.nodes.get(name).is_some_and(|node| !node.down)
}

/// The node with the fewest pods, among the nodes that take pods and respond as far as the control plane knows.
fn choose_node(state: &State) -> Option<String> {
    let nodes = state.nodes.iter();
    let fit = nodes.filter(|(name, node)| !node.noticed && takes_pods(state, name));
    let chosen = fit.min_by_key(|(name, _)| state.store.count_on(name));
    chosen.map(|(name, _)| name.clone())
}

/// Whether nobody has cordoned or tainted the node; pods have no tolerations in this model.
fn takes_pods(state: &State, name: &str) -> bool {
    let node = state.store.find(Kind::Node, &ObjectKey::new("", name));
    let shuns = |taint: &Value| taint["effect"] == "NoSchedule" || taint["effect"] == "NoExecute";
    node.is_none_or(|node| {
        let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
        node["spec"]["unschedulable"] != true && !taints.any(shuns)
    })
}

/// The pod with the status that a kubelet reports: phase, readiness and container statuses.
pub(crate) fn observe(state: &State, pod: &Object, found: Containers) -> Value {
    let mut new = Value::clone(pod);
    let (phase, ready, reason) = match found {
        Containers::Started => ("Running", "False", "ContainersNotReady"),
        Containers::Ready => ("Running", "True", ""),
        Containers::Succeeded => ("Succeeded", "False", "PodCompleted"),
    };
    set_condition(&mut new, state.now(), "Ready", ready, reason);
    let status = object::fields(&mut new, "status");
    status.insert("phase".to_owned(), phase.into());
    status.entry("containerStatuses").or_insert_with(|| {
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        let started = |it: &Value| json!({"name": it["name"], "restartCount": 0});
        containers.map(started).collect()
    });
    new
}
