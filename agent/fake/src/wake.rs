//! The controllers that must examine an object after a change: tasks on the timeline, and no stored state.

use std::time::Duration;

use serde_json::Value;

use crate::{
    kind::Kind,
    object::{self, Object},
    state::State,
    store::ObjectKey,
    timeline::{PodRef, Task},
};

/// How long the garbage collector takes to examine an object without its owner.
const COLLECT_AFTER: Duration = Duration::from_millis(100);
/// How long the namespace controller takes to empty a namespace under deletion.
const EMPTY_NAMESPACE_AFTER: Duration = Duration::from_millis(200);

pub(crate) fn schedule_next_step(state: &mut State, pod: &Object) {
    let pace = state.config.kubelet.clone();
    let (delay, task): (_, fn(PodRef) -> Task) = match object::phase(pod) {
        _ if object::is_deleting(pod) => (grace(state, pod), Task::Stop),
        "Pending" if object::node(pod).is_empty() => (pace.schedule_after, Task::Bind),
        "Pending" => (pace.start_after, Task::Start),
        "Running" if !object::is_ready(pod) => (pace.ready_after, Task::Ready),
        _ => return,
    };
    let delay = jittered(state, delay);
    state.timeline.after(delay, task(pod_ref(pod)));
}

/// Lets the scheduler examine the pods without a node again.
pub(crate) fn retry_unscheduled(state: &mut State) {
    for pod in state.store.pods_on("") {
        let waits = pod["status"]["conditions"].is_array();
        if waits && object::phase(&pod) == "Pending" {
            schedule_next_step(state, &pod);
        }
    }
}

fn grace(state: &State, pod: &Value) -> Duration {
    let own = pod["metadata"]["deletionGracePeriodSeconds"].as_u64();
    match state.config.kubelet.grace {
        Duration::MAX => Duration::MAX,
        grace => grace.min(Duration::from_secs(own.unwrap_or(0))),
    }
}

fn jittered(state: &mut State, delay: Duration) -> Duration {
    let jitter = u64::try_from(state.config.kubelet.jitter.as_nanos()).unwrap_or(u64::MAX);
    if jitter == 0 {
        return delay;
    }
    delay.saturating_add(Duration::from_nanos(state.chance.below(jitter)))
}

fn collect_later(state: &mut State, task: Task) {
    state.timeline.after(COLLECT_AFTER, task);
}

fn empty_later(state: &mut State, namespace: &str) {
    let task = Task::Empty(namespace.to_owned());
    state.timeline.after(EMPTY_NAMESPACE_AFTER, task);
}

pub(crate) fn deletion_requested(state: &mut State, kind: Kind, object: &Object) {
    if kind == Kind::Namespace {
        empty_later(state, object::name(object));
    }
    if object::waits_for_dependents(object) {
        collect_later(state, Task::Propagate(kind, ObjectKey::of(object)));
    }
}

/// Schedules the examination of an object with new owners: an owner may be gone, or under deletion.
pub(crate) fn owners_changed(state: &mut State, kind: Kind, object: &Object) {
    let is_gone = |uid: &str, kind: &str| is_modelled(kind) && state.store.by_uid(uid).is_none();
    if object::owners(object).any(|owner| is_gone(owner.uid, owner.kind)) {
        collect_later(state, Task::Collect(kind, ObjectKey::of(object)));
    }
    freed(state, object);
}

/// Schedules the examination of an object's owners, which may wait for the object.
pub(crate) fn freed(state: &mut State, object: &Object) {
    let owners = object::owners(object).filter_map(|owner| state.store.place_of(owner.uid));
    let waits = |(kind, key): &&(Kind, ObjectKey)| {
        let owner = state.store.find(*kind, key);
        owner.is_some_and(|owner| object::waits_for_dependents(owner))
    };
    let waiting: Vec<_> = owners.filter(waits).cloned().collect();
    for (kind, key) in waiting {
        collect_later(state, Task::Propagate(kind, key));
    }
}

/// Schedules the tasks after a removal: for the dependents, and for a namespace that may now be empty.
pub(crate) fn left_behind(state: &mut State, last: &Object) {
    for (kind, key) in state.store.dependents(object::uid(last)) {
        collect_later(state, Task::Collect(kind, key));
    }
    let namespace = object::namespace(last);
    if state.is_terminating(namespace) {
        empty_later(state, namespace);
    }
}

/// True if the model has owners of this kind. Owners of other kinds, such as Deployments, count as existing.
pub(crate) fn is_modelled(kind: &str) -> bool {
    matches!(kind, "Pod" | "ReplicaSet")
}

fn pod_ref(pod: &Value) -> PodRef {
    PodRef {
        key: ObjectKey::of(pod),
        uid: object::uid(pod).to_owned(),
    }
}
