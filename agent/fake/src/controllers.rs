//! The cluster's own controllers: the step of each task, the garbage collector, and the end of a namespace.

use serde_json::Value;

use crate::{
    commit, delete,
    kind::Kind,
    kubelet, node,
    object::{self, FOREGROUND, ORPHAN, Object},
    state::State,
    store::ObjectKey,
    timeline::Task,
    update,
    wake::is_modelled,
};

pub(crate) fn run(state: &mut State, task: Task) {
    match task {
        Task::Bind(pod) => kubelet::bind(state, &pod),
        Task::Start(pod) => kubelet::start(state, &pod),
        Task::Ready(pod) => kubelet::become_ready(state, &pod),
        Task::Stop(pod) => kubelet::stop(state, &pod),
        Task::Collect(kind, key) => collect(state, kind, &key),
        Task::Propagate(kind, key) => propagate(state, kind, &key),
        Task::Empty(namespace) => empty(state, &namespace),
        Task::LoseNode {
            node,
            outage,
            stage,
        } => node::lose_node(state, &node, outage, stage),
    }
}

/// Deletes an object without any owner left; otherwise removes the lost owners from the object.
fn collect(state: &mut State, kind: Kind, key: &ObjectKey) {
    let Some(object) = state.store.find(kind, key).cloned() else {
        return;
    };
    let is_gone = |uid: &str, kind: &str| is_modelled(kind) && state.store.by_uid(uid).is_none();
    let gone = object::owners(&object).filter(|owner| is_gone(owner.uid, owner.kind));
    let gone: Vec<_> = gone.map(|owner| owner.uid.to_owned()).collect();
    if gone.is_empty() {
        return;
    }
    if gone.len() == object::owners(&object).count() {
        delete::delete_quietly(state, kind, key);
    } else {
        disown(state, kind, &object, &gone);
    }
}

/// Deletes or frees the dependents of an owner that waits for them, and releases an owner without such dependents.
fn propagate(state: &mut State, kind: Kind, key: &ObjectKey) {
    let owner = state.store.find(kind, key);
    let Some(owner) = owner.filter(|it| object::waits_for_dependents(it)).cloned() else {
        return;
    };
    let uid = object::uid(&owner).to_owned();
    let orphans = object::has_finalizer(&owner, ORPHAN);
    for (kind, key) in state.store.dependents(&uid) {
        let Some(dependent) = state.store.find(kind, &key).cloned() else {
            continue;
        };
        if orphans || has_other_owner(state, &dependent, &uid) {
            disown(state, kind, &dependent, std::slice::from_ref(&uid));
        } else if !object::is_deleting(&dependent) {
            delete::delete_quietly(state, kind, &key);
        }
    }
    if orphans || !is_blocked(state, &uid) {
        let finalizer = if orphans { ORPHAN } else { FOREGROUND };
        let mut freed = Value::clone(&owner);
        object::strip(&mut freed, "finalizers", |it| it == finalizer);
        update::store_update(state, kind, &owner, freed);
    }
}

fn disown(state: &mut State, kind: Kind, object: &Object, owners: &[String]) {
    let mut freed = Value::clone(object);
    let is_owner = |entry: &Value| owners.iter().any(|uid| entry["uid"] == **uid);
    object::strip(&mut freed, "ownerReferences", is_owner);
    commit::change(state, kind, object, freed);
}

fn is_blocked(state: &State, owner: &str) -> bool {
    let dependents = state.store.dependents(owner);
    dependents.iter().any(|(kind, key)| {
        let dependent = state.store.find(*kind, key);
        dependent
            .is_some_and(|it| object::owners(it).any(|entry| entry.uid == owner && entry.blocks))
    })
}

fn has_other_owner(state: &State, object: &Value, than: &str) -> bool {
    let mut others = object::owners(object).filter(|owner| owner.uid != than);
    others.any(|owner| match state.store.by_uid(owner.uid) {
        Some(it) => !object::is_deleting(it),
        None => !is_modelled(owner.kind),
    })
}

fn empty(state: &mut State, namespace: &str) {
    if !state.is_terminating(namespace) {
        return;
    }
    let kinds = [Kind::ReplicaSet, Kind::Pod, Kind::ResourceQuota];
    for kind in kinds {
        let contents = state.store.in_namespace(kind, namespace);
        let going = contents.filter(|it| !object::is_deleting(it));
        let going: Vec<_> = going.map(|it| ObjectKey::of(it)).collect();
        for key in going {
            delete::delete_quietly(state, kind, &key);
        }
    }
    let is_left = |kind: &Kind| state.store.in_namespace(*kind, namespace).next().is_some();
    if kinds.iter().any(is_left) {
        return;
    }
    let key = ObjectKey::new("", namespace);
    if let Some(last) = state.store.find(Kind::Namespace, &key).cloned() {
        commit::remove(state, Kind::Namespace, &last);
    }
}
