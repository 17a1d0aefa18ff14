//! Calls of the port as calls of the model, and the model's answers as answers of the port. The simulation uses these too, with delays and
//! faults.

use agent_core::{
    api::{ApiError, InvalidObject, Kind, Object, Reply, Request},
    nodes::{NodeEvent, NodeFields},
    watch::{Items, List, Part, WatchEvent},
};
use agent_fake::{Cluster, DeleteOptions, Deletion, EventKind};
use agent_kube::objects;
use serde_json::Value;

const POD: agent_fake::Kind = agent_fake::Kind::Pod;

/// Makes a call.
///
/// # Errors
/// The error of the model.
pub fn call(model: &mut Cluster, request: Request) -> Result<Reply, ApiError> {
    let object = match request {
        Request::CreatePod(create) => model.create_within(new_pod(&create)?, create.timeout),
        Request::DeletePod {
            pod,
            resource_version,
        } => {
            let options = DeleteOptions {
                uid: Some(pod.uid),
                resource_version,
                ..DeleteOptions::default()
            };
            let deletion = model.delete(POD, &pod.namespace, &pod.name, &options);
            return deleted(&deletion.map_err(refused)?);
        }
        Request::AdoptPod { pod, controller } => {
            let patch = objects::adoption(&pod, &controller);
            model.patch(POD, &pod.namespace, &pod.name, &patch)
        }
        Request::ReleasePod { pod, owner_uid } => {
            let patch = objects::release(&pod, &owner_uid);
            model.patch(POD, &pod.namespace, &pod.name, &patch)
        }
        Request::AdvisePod {
            pod,
            resource_version,
            cost,
        } => {
            let patch = objects::advice(&pod, &resource_version, cost);
            model.patch(POD, &pod.namespace, &pod.name, &patch)
        }
        Request::WriteStatus(write) => model.update_status(&objects::status_update(&write)),
        Request::ReadPod { namespace, name } => model.get(POD, &namespace, &name),
        Request::ReadReplicaSet { namespace, name } => {
            model.get(agent_fake::Kind::ReplicaSet, &namespace, &name)
        }
    };
    let object = object.map_err(refused)?;
    reply(&object)
}

/// Returns a pod to create, as an object of the model.
///
/// # Errors
/// If its template is not JSON.
pub fn new_pod(create: &agent_core::api::CreatePod) -> Result<Value, ApiError> {
    objects::pod_to_json(create).map_err(|error| ApiError::no_answer(error.to_string()))
}

/// Reads the object of an answer.
///
/// # Errors
/// If it cannot be read: the effect of the call is unknown.
pub fn reply(object: &Value) -> Result<Reply, ApiError> {
    let object = read(object).map_err(|error| ApiError::no_answer(error.to_string()))?;
    Ok(Reply::from(object))
}

/// Reads the answer to the deletion of a pod.
///
/// # Errors
/// If it cannot be read: the effect of the deletion is unknown.
pub fn deleted(deletion: &Deletion) -> Result<Reply, ApiError> {
    if deletion.gone {
        Ok(Reply::Gone(version(&deletion.object)))
    } else {
        reply(&deletion.object)
    }
}

/// Lists all nodes, as the news of a stream of nodes.
///
/// # Errors
/// The error of the model.
pub fn nodes(model: &mut Cluster, fields: &NodeFields) -> Result<Vec<NodeEvent>, ApiError> {
    let nodes = model.list(agent_fake::Kind::Node).map_err(refused)?;
    let nodes = nodes.items.iter().map(|it| objects::node(it, fields));
    let nodes = nodes.collect::<Result<_, _>>();
    let nodes = nodes.map_err(|error| ApiError::no_answer(error.to_string()))?;
    Ok(vec![NodeEvent::Listed(nodes)])
}

/// Lists all objects of a kind.
///
/// # Errors
/// The error of the model.
pub fn list(model: &mut Cluster, kind: Kind) -> Result<List, ApiError> {
    let agent_fake::List { items, version } = model.list(kind_of(kind)).map_err(refused)?;
    let (items, invalid) = match kind {
        Kind::Pod => {
            let (pods, invalid) = sort(items.iter().map(|it| objects::pod(it)));
            (Items::Pods(pods.into_iter().collect()), invalid)
        }
        Kind::ReplicaSet => {
            let (sets, invalid) = sort(items.iter().map(|it| objects::replica_set(it)));
            (Items::ReplicaSets(sets), invalid)
        }
    };
    Ok(List {
        part: Part::WHOLE,
        items,
        invalid,
        resource_version: version.to_string(),
    })
}

/// Reads an event of a watch.
pub fn event(event: &agent_fake::WatchEvent) -> WatchEvent {
    let agent_fake::WatchEvent { kind, object } = event;
    let make: fn(Object) -> WatchEvent = match kind {
        EventKind::Added | EventKind::Modified => WatchEvent::Applied,
        EventKind::Deleted => WatchEvent::Deleted,
        EventKind::Bookmark => return WatchEvent::Bookmark(version(object)),
    };
    let is_new_pod = *kind == EventKind::Added && object["kind"] == "Pod";
    let read = if is_new_pod {
        objects::new_pod(object)
    } else {
        read(object).map(make)
    };
    read.unwrap_or_else(|error| WatchEvent::Invalid {
        error,
        resource_version: version(object),
        left_out: None,
    })
}

/// Returns the model's value for a kind.
pub const fn kind_of(kind: Kind) -> agent_fake::Kind {
    match kind {
        Kind::Pod => POD,
        Kind::ReplicaSet => agent_fake::Kind::ReplicaSet,
    }
}

/// Returns an error of the model as an error of the port.
pub fn refused(error: agent_fake::ApiError) -> ApiError {
    let agent_fake::ApiError {
        code,
        reason,
        message,
        causes,
        retry_after_seconds,
    } = error;
    ApiError {
        code: Some(code),
        reason,
        message,
        causes,
        retry_after_seconds,
    }
}

fn read(object: &Value) -> Result<Object, InvalidObject> {
    match object.get("kind").and_then(Value::as_str) {
        Some("ReplicaSet") => objects::replica_set(object).map(Object::from),
        Some(_) | None => objects::pod(object).map(Object::from),
    }
}

fn sort<T>(
    objects: impl Iterator<Item = Result<T, InvalidObject>>,
) -> (Vec<T>, Vec<InvalidObject>) {
    let mut invalid = Vec::new();
    let keep = |object: Result<T, InvalidObject>| object.map_err(|it| invalid.push(it)).ok();
    (objects.filter_map(keep).collect(), invalid)
}

fn version(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_default().to_owned()
}
