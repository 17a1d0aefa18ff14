//! Pods, ReplicaSets, Leases and events as Kubernetes writes them: what is read of them, and what is written.
//!
//! A message is read from protobuf and from JSON alike: prost goes by the numbers of its fields, serde by their names, and both
//! skip what is not named. The numbers are those of the published `generated.proto` files of Kubernetes; numbers are never used
//! again there. A message is projected at once to what the contract has of it, so that nothing else is held.
//!
//! **Invariant:** a field of the contract that is not projected, and a field of a message that is not used, do not compile.

mod event;
mod lease;
mod metadata;
mod patch;
mod pod;
mod projected;
mod replica_set;
mod template;

use agent_core::{
    api::{InvalidObject, Object, ReplicaSet},
    watch::WatchEvent,
};
use decree::v1;
use serde_json::Value;

pub(crate) use self::{
    event::{event_patch, event_to_json},
    lease::{lease, lease_to_json, leases},
    patch::status_patch,
    pod::Pod as PodMessage,
    projected::{Projected, Unreadable, from_json},
    replica_set::ReplicaSet as ReplicaSetMessage,
    template::{NewPod, encode as encode_pod},
};
pub use self::{
    patch::{adoption, release, status_to_json, status_update},
    template::pod_to_json,
};

/// Who writes, in the managed fields of what is written.
pub(crate) const FIELD_MANAGER: &str = "decree-agent";

/// Returns the event of a pod that is new. `maker` tells who made it, and is asked where it is one of a ReplicaSet.
pub(crate) fn added(pod: Box<v1::Pod>, maker: impl FnOnce() -> Option<String>) -> WatchEvent {
    let controller = pod.controller.as_ref();
    let is_of_set = controller.is_some_and(|it| it.kind == "ReplicaSet");
    let writer = is_of_set.then(maker).flatten();
    let object = Object::Pod(pod);
    match writer {
        Some(writer) if writer != FIELD_MANAGER => WatchEvent::MadeByOther { object, writer },
        Some(_) | None => WatchEvent::Applied(object),
    }
}

/// Reads the event of a pod in JSON that is new.
///
/// # Errors
/// As [`pod`].
pub fn new_pod(object: &Value) -> Result<WatchEvent, InvalidObject> {
    let maker = || {
        let managed = object.pointer("/metadata/managedFields")?.as_array()?;
        let is_of_itself = |entry: &&Value| entry.get("subresource").is_none();
        let writer = managed.iter().find(is_of_itself)?.get("manager")?;
        writer.as_str().map(str::to_owned)
    };
    Ok(added(Box::new(pod(object)?), maker))
}

/// Reads a pod from JSON.
///
/// # Errors
/// Names the first field that has another type than Kubernetes gives it, or that is required and absent.
pub fn pod(object: &Value) -> Result<v1::Pod, InvalidObject> {
    projected::from_value::<PodMessage>(object)
}

/// Reads a ReplicaSet from JSON.
///
/// # Errors
/// As [`pod`].
pub fn replica_set(object: &Value) -> Result<ReplicaSet, InvalidObject> {
    projected::from_value::<ReplicaSetMessage>(object)
}

#[cfg(test)]
mod tests;
