//! Pods, ReplicaSets, Leases and events in Kubernetes' encodings: the fields that are read, and the fields that are written.
//!
//! A message is read from protobuf and from JSON alike: prost uses the numbers of its fields, serde their names, and both skip unnamed
//! fields. The numbers are those of Kubernetes' published `generated.proto` files, which never reuse a number. A message is projected to
//! the fields of the contract at once, so that nothing else is held.
//!
//! **Invariant:** a field of the contract that is not projected does not compile.

mod event;
mod lease;
mod made;
mod managers;
mod metadata;
mod node;
mod patch;
mod pod;
mod projected;
mod replica_set;
mod template;

use agent_core::{
    api::{InvalidObject, ReplicaSet},
    nodes::NodeFields,
};
use decree_api::v1;
use serde::Deserialize as _;
use serde_json::Value;

pub(crate) use self::{
    event::{event_patch, event_to_json, seconds},
    lease::{lease, lease_to_json, leases},
    made::{FIELD_MANAGER, added},
    metadata::or_default,
    node::Node as NodeMessage,
    patch::status_patch,
    pod::{LEAVING, Pod as PodMessage},
    projected::{Projected, Unreadable, from_json, from_protobuf},
    replica_set::ReplicaSet as ReplicaSetMessage,
    template::encode as encode_pod,
};
pub use self::{
    made::new_pod,
    patch::{adoption, advice, release, status_to_json, status_update},
    template::pod_to_json,
};

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
/// As for [`pod()`].
pub fn replica_set(object: &Value) -> Result<ReplicaSet, InvalidObject> {
    projected::from_value::<ReplicaSetMessage>(object)
}

/// Reads a node from JSON.
///
/// # Errors
/// As for [`pod()`].
pub fn node(object: &Value, fields: &NodeFields) -> Result<v1::Node, InvalidObject> {
    let node = NodeMessage::deserialize(object).map(|it| it.with(fields));
    node.map_err(|_| {
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let (field, detail) = projected::fault::<NodeMessage>(object);
        projected::invalid("node", ["", name.unwrap_or_default()], field, detail)
    })
}

#[cfg(test)]
mod tests;
