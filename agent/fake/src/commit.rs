//! The only writes to the store: each change is stored, published to the watches, and followed by its immediate effects.
//!
//! The immediate effect is in this file because it changes the store in turn: a removed node takes its pods along. All other effects are
//! tasks on the timeline (`wake`).

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    kind::Kind,
    object::{self, Object},
    state::{NodeState, State},
    store::ObjectKey,
    wake,
    watch::{EventKind, WatchEvent},
};

/// Stores a new object, and schedules the tasks that follow.
pub(crate) fn add(state: &mut State, kind: Kind, object: Value) -> Object {
    let object = state.store.put(kind, object);
    publish(state, kind, EventKind::Added, &object);
    added(state, kind, &object);
    object
}

/// Stores a change, and schedules the tasks that follow; a change of nothing keeps the version.
pub(crate) fn change(state: &mut State, kind: Kind, old: &Object, new: Value) -> Object {
    if **old == new {
        return old.clone();
    }
    let object = state.store.put(kind, new);
    publish(state, kind, EventKind::Modified, &object);
    changed(state, kind, old, &object);
    object
}

/// Removes an object, and schedules the tasks that follow.
pub(crate) fn remove(state: &mut State, kind: Kind, object: &Object) -> Object {
    let Some(last) = state.store.remove(kind, &ObjectKey::of(object)) else {
        return object.clone();
    };
    publish(state, kind, EventKind::Deleted, &last);
    removed(state, kind, &last);
    last
}

/// Removes an object with the last state `last`.
pub(crate) fn remove_as(state: &mut State, kind: Kind, last: Value) -> Object {
    let last = state.store.put(kind, last);
    remove(state, kind, &last)
}

fn publish(state: &mut State, kind: Kind, event: EventKind, object: &Object) {
    let event = WatchEvent {
        kind: event,
        object: object.clone(),
    };
    state.watches.record(kind, event);
}

/// Ends the grace period of a pod: removes the pod at once, or as soon as its finalizers are gone.
pub(crate) fn end_grace(state: &mut State, pod: &Object) -> Object {
    let mut ended = Value::clone(pod);
    object::mark_deleting(&mut ended, state.now(), Duration::ZERO);
    object::metadata(&mut ended).insert("deletionGracePeriodSeconds".to_owned(), json!(0));
    if object::finalizers(&ended).next().is_none() {
        return remove(state, Kind::Pod, pod);
    }
    change(state, Kind::Pod, pod, ended)
}

fn added(state: &mut State, kind: Kind, object: &Object) {
    match kind {
        Kind::Pod => wake::schedule_next_step(state, object),
        Kind::Node => {
            let name = object::name(object).to_owned();
            state.nodes.insert(name, NodeState::default());
            wake::retry_unscheduled(state);
        }
        Kind::ReplicaSet | Kind::Namespace | Kind::ResourceQuota => {}
    }
    wake::owners_changed(state, kind, object);
    if object::is_deleting(object) {
        wake::deletion_requested(state, kind, object);
    }
}

fn changed(state: &mut State, kind: Kind, old: &Object, new: &Object) {
    let asked = object::is_deleting(new) && !object::is_deleting(old);
    let moved = object::phase(old) != object::phase(new) || object::node(old) != object::node(new);
    if kind == Kind::Pod && (asked || moved) {
        wake::schedule_next_step(state, new);
    }
    if asked {
        wake::deletion_requested(state, kind, new);
    }
    if kind == Kind::Node && old["spec"] != new["spec"] {
        wake::retry_unscheduled(state);
    }
    if old["metadata"]["ownerReferences"] != new["metadata"]["ownerReferences"] {
        wake::owners_changed(state, kind, new);
        wake::freed(state, old);
    }
}

fn removed(state: &mut State, kind: Kind, last: &Object) {
    if kind == Kind::Node {
        // The pods of a removed node are removed, as by the pod garbage collector.
        state.nodes.remove(object::name(last));
        for pod in state.store.pods_on(object::name(last)) {
            end_grace(state, &pod);
        }
    }
    wake::freed(state, last);
    wake::left_behind(state, last);
}
