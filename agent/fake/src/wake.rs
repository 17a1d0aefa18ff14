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

// === the scheduler and the kubelets ===

/// Schedules the next step of a pod, by its state.
pub(crate) fn schedule_next_step(state: &mut State, pod: &Object) {
    let pace = state.config.kubelet.clone();
    let (delay, task): (_, fn(PodRef) -> Task) = match object::phase(pod) {
        _ if object::is_deleting(pod) => (grace(state, pod), Task::Stop),
        "Pending" if object::node(pod).is_empty() => (pace.schedule_after, Task::Bind),
        "Pending" => (pace.start_after, Task::Start),
        "Running" if !is_ready(pod) => (pace.ready_after, Task::Ready),
        _ => return,
    };
    let delay = jittered(state, delay);
    state.timeline.after(delay, task(pod_ref(pod)));
}

/// Lets the scheduler examine the pods without a node again.
pub(crate) fn retry_unscheduled(state: &mut State) {
    for key in state.store.pods_on("") {
        if let Some(pod) = state.store.find(Kind::Pod, &key).cloned() {
            let waits = pod["status"]["conditions"].is_array();
            if waits && object::phase(&pod) == "Pending" {
                schedule_next_step(state, &pod);
            }
        }
    }
}

fn grace(state: &State, pod: &Value) -> Duration {
    let own = pod["metadata"]["deletionGracePeriodSeconds"].as_u64();
    let own = Duration::from_secs(own.unwrap_or(0));
    if state.config.kubelet.grace == Duration::MAX {
        Duration::MAX
    } else {
        own.min(state.config.kubelet.grace)
    }
}

fn jittered(state: &mut State, delay: Duration) -> Duration {
    let jitter = u64::try_from(state.config.kubelet.jitter.as_nanos()).unwrap_or(u64::MAX);
    let extra = if jitter == 0 {
        0
    } else {
        state.chance.below(jitter)
    };
    delay.saturating_add(Duration::from_nanos(extra))
}

// === the garbage collector and the namespace controller ===

pub(crate) fn deletion_requested(state: &mut State, kind: Kind, object: &Object) {
    if kind == Kind::Namespace {
        let name = object::name(object).to_owned();
        state
            .timeline
            .after(state.config.empty_namespace_after, Task::Empty(name));
    }
    if object::waits_for_dependents(object) {
        state.timeline.after(
            state.config.collect_after,
            Task::Propagate(kind, ObjectKey::of(object)),
        );
    }
}

/// Schedules the examination of an object with new owners: an owner may be gone, or under deletion.
pub(crate) fn owners_changed(state: &mut State, kind: Kind, object: &Object) {
    let (mut dangling, mut going) = (false, Vec::new());
    for owner in object::owners(object) {
        match state.store.by_uid(owner.uid) {
            None => dangling |= is_modelled(owner.kind),
            Some(it) if object::waits_for_dependents(it) => going.push(ObjectKey::of(it)),
            Some(_) => {}
        }
    }
    if dangling {
        state.timeline.after(
            state.config.collect_after,
            Task::Collect(kind, ObjectKey::of(object)),
        );
    }
    for key in going {
        state.timeline.after(
            state.config.collect_after,
            Task::Propagate(Kind::ReplicaSet, key),
        );
    }
}

/// Schedules the examination of an object's former owners: they may wait for the object.
pub(crate) fn freed(state: &mut State, object: &Object) {
    let owners = object::owners(object).filter_map(|owner| state.store.by_uid(owner.uid));
    let going = owners.filter(|owner| object::waits_for_dependents(owner));
    let going: Vec<_> = going.map(|owner| ObjectKey::of(owner)).collect();
    for key in going {
        state.timeline.after(
            state.config.collect_after,
            Task::Propagate(Kind::ReplicaSet, key),
        );
    }
}

/// Schedules the tasks after a removal: for the dependents, and for a namespace that may now be empty.
pub(crate) fn left_behind(state: &mut State, last: &Object) {
    for (kind, key) in state.store.dependents(object::uid(last)) {
        state
            .timeline
            .after(state.config.collect_after, Task::Collect(kind, key));
    }
    let namespace = object::namespace(last);
    if state.is_terminating(namespace) {
        state.timeline.after(
            state.config.empty_namespace_after,
            Task::Empty(namespace.to_owned()),
        );
    }
}

/// True if the model has owners of this kind. Owners of other kinds, such as Deployments, count as existing.
pub(crate) fn is_modelled(kind: &str) -> bool {
    matches!(kind, "Pod" | "ReplicaSet")
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

fn pod_ref(pod: &Value) -> PodRef {
    PodRef {
        key: ObjectKey::of(pod),
        uid: object::uid(pod).to_owned(),
    }
}
