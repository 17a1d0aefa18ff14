//! A new pod, and its creator.

use agent_core::{
    api::{InvalidObject, Object},
    watch::WatchEvent,
};
use decree_api::v1;
use prost::Message;
use serde::Deserialize;
use serde_json::Value;

use super::{metadata::or_default, pod};

/// The writer in the managed fields of the agent's objects.
pub(crate) const FIELD_MANAGER: &str = "decree-agent";

/// The fields of any object that tell its creator.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, expecting = "an object")]
pub(crate) struct Made {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct ObjectMeta {
    #[prost(message, repeated, tag = "17")]
    #[serde(deserialize_with = "or_default")]
    managed_fields: Vec<Writer>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, expecting = "an object")]
struct Writer {
    #[prost(string, optional, tag = "1")]
    manager: Option<String>,
    #[prost(string, optional, tag = "8")]
    subresource: Option<String>,
}

/// The event of a new pod. `read` returns the creator, and is only called for a pod of a ReplicaSet.
pub(crate) fn added(pod: Box<v1::Pod>, read: impl FnOnce() -> Option<Made>) -> WatchEvent {
    let controller = pod.controller.as_ref();
    let is_of_set = controller.is_some_and(|it| it.kind == "ReplicaSet");
    let writer = is_of_set.then(read).flatten().and_then(Made::maker);
    let object = Object::Pod(pod);
    match writer {
        Some(writer) if writer != FIELD_MANAGER => WatchEvent::MadeByOther { object, writer },
        Some(_) | None => WatchEvent::Applied(object),
    }
}

/// Reads the event of a new pod from JSON.
///
/// # Errors
/// As for [`pod()`].
pub fn new_pod(object: &Value) -> Result<WatchEvent, InvalidObject> {
    let pod = Box::new(pod(object)?);
    Ok(added(pod, || Made::deserialize(object).ok()))
}

impl Made {
    /// The creator: the first writer of the object itself.
    fn maker(self) -> Option<String> {
        let mut writers = self.metadata.unwrap_or_default().managed_fields.into_iter();
        let writer = writers.find(|it| it.subresource.as_deref().is_none_or(str::is_empty))?;
        Some(writer.manager.unwrap_or_default())
    }
}
