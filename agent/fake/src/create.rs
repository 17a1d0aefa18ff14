//! Creating: namespace, system fields, defaults, validation, quota, storage, in the order of the API server.

use serde_json::{Value, json};

use crate::{
    commit, defaults,
    error::ApiError,
    kind::Kind,
    names,
    object::{self, Object},
    quota,
    state::State,
    store::ObjectKey,
    validate,
};

const DEFAULT_NAMESPACE: &str = "default";

pub(crate) fn read_kind(object: &Value) -> Result<Kind, ApiError> {
    let name = object["kind"].as_str().unwrap_or_default();
    let Some(kind) = Kind::parse(name) else {
        let message = format!("no kind \"{name}\" is registered in this cluster");
        return Err(ApiError::bad_request(message));
    };
    match object["apiVersion"].as_str() {
        Some(version) if version != kind.api_version() => {
            let wanted = kind.api_version();
            Err(ApiError::bad_request(format!(
                "the API version in the data ({version}) does not match the expected API version ({wanted})"
            )))
        }
        Some(_) | None => Ok(kind),
    }
}

/// Sets the namespace of a new object, after checking the types of its parts.
pub(crate) fn with_namespace(kind: Kind, mut object: Value) -> Result<Value, ApiError> {
    validate::shape(kind, &object)?;
    let absent = object::namespace(&object).is_empty();
    let metadata = object::metadata(&mut object);
    if !kind.is_namespaced() {
        metadata.shift_remove("namespace");
    } else if absent {
        metadata.insert("namespace".to_owned(), DEFAULT_NAMESPACE.into());
    }
    Ok(object)
}

pub(crate) fn create(state: &mut State, kind: Kind, mut object: Value) -> Result<Object, ApiError> {
    if !object::text(&object, "resourceVersion").is_empty() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(ApiError::new(500, "InternalError", message));
    }
    check_namespace(state, kind, &object)?;
    fill_system_fields(state, kind, &mut object);
    validate::object(kind, &object, None)?;
    quota::check(&state.store, kind, &object)?;
    check_name(state, kind, &object)?;
    Ok(commit::add(state, kind, object))
}

/// Creates an object as written; see [`Cluster::restore`](crate::Cluster::restore).
pub(crate) fn restore(state: &mut State, object: Value) -> Result<Object, ApiError> {
    let kind = read_kind(&object)?;
    let mut object = with_namespace(kind, object)?;
    let (written, status) = (object["metadata"].clone(), object["status"].clone());
    check_namespace(state, kind, &object)?;
    fill_system_fields(state, kind, &mut object);
    let metadata = object::metadata(&mut object);
    for field in [
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if let Some(value) = written.get(field).filter(|value| !value.is_null()) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    if status.is_object() {
        object["status"] = status;
    }
    validate::object(kind, &object, None)?;
    if state.store.by_uid(object::uid(&object)).is_some() {
        return Err(ApiError::already_exists(kind, object::name(&object)));
    }
    check_name(state, kind, &object)?;
    let node = object::node(&object).to_owned();
    if kind == Kind::Pod && !node.is_empty() && !state.nodes.contains_key(&node) {
        let new = json!({"kind": "Node", "metadata": {"name": node}});
        create(state, Kind::Node, new)?;
    }
    Ok(commit::add(state, kind, object))
}

fn check_namespace(state: &State, kind: Kind, object: &Value) -> Result<(), ApiError> {
    if !kind.is_namespaced() {
        return Ok(());
    }
    let namespace = object::namespace(object);
    let key = ObjectKey::new("", namespace);
    match state.store.find(Kind::Namespace, &key) {
        None => Err(ApiError::not_found(Kind::Namespace, namespace)),
        Some(it) if object::is_deleting(it) => {
            let name = object::name(object);
            Err(ApiError::namespace_terminating(kind, name, namespace))
        }
        Some(_) => Ok(()),
    }
}

fn fill_system_fields(state: &mut State, kind: Kind, object: &mut Value) {
    let uid = names::uid(&mut state.identity);
    let now = object::time(state.now());
    let metadata = object::metadata(object);
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "generation",
    ] {
        metadata.shift_remove(field);
    }
    metadata.insert("uid".to_owned(), uid.into());
    metadata.insert("creationTimestamp".to_owned(), now);
    if matches!(kind, Kind::Pod | Kind::ReplicaSet) {
        metadata.insert("generation".to_owned(), json!(1));
    }
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
    }
    defaults::apply(kind, object);
    object["status"] = defaults::first_status(kind);
}

/// Makes sure that the name is free.
fn check_name(state: &State, kind: Kind, object: &Value) -> Result<(), ApiError> {
    match state.store.find(kind, &ObjectKey::of(object)) {
        None => Ok(()),
        Some(taken) => Err(ApiError::already_exists(kind, object::name(taken))),
    }
}
