//! The manager of the desired pods, by the `managedFields` of a ReplicaSet. They are not read of other objects.

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, de::IgnoredAny};

use super::{metadata::Time, replica_set::verbatim};

/// How many bytes are kept of a manager. Kubernetes allows as many.
const MANAGER_BYTES_MAX: usize = 128;

/// An entry of `managedFields`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct ManagedFields {
    #[prost(string, optional, tag = "1")]
    manager: Option<String>,
    #[prost(message, optional, tag = "4")]
    time: Option<Time>,
    #[prost(message, optional, tag = "7")]
    fields_v1: Option<FieldsV1>,
}

/// An entry of which nothing is read.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, expecting = "an object")]
pub(crate) struct Unread {}

/// The names of fields as JSON, in both encodings.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(transparent)]
struct FieldsV1 {
    #[prost(bytes = "bytes", optional, tag = "1")]
    #[serde(deserialize_with = "verbatim")]
    raw: Option<Bytes>,
}

/// The names of fields that are read. All others are skipped, without a tree of them.
#[derive(Deserialize)]
struct Names {
    #[serde(rename = "f:spec")]
    spec: Option<SpecNames>,
}

#[derive(Deserialize)]
struct SpecNames {
    #[serde(rename = "f:replicas")]
    replicas: Option<IgnoredAny>,
}

/// Returns the manager that last wrote `spec.replicas`, also through the subresource `scale`; empty if there is none.
pub(super) fn of_replicas(entries: Vec<ManagedFields>) -> String {
    let wrote = |it: &ManagedFields| {
        let fields = it.fields_v1.as_ref().and_then(|it| it.raw.as_ref());
        let names = fields.and_then(|fields| serde_json::from_slice::<Names>(fields).ok());
        names.is_some_and(|it| it.spec.is_some_and(|it| it.replicas.is_some()))
    };
    let writers = entries.into_iter().filter(wrote);
    let newest = writers.max_by_key(|it| it.time.as_ref().and_then(|it| it.seconds));
    let mut manager = newest.and_then(|it| it.manager).unwrap_or_default();
    manager.truncate(manager.floor_char_boundary(MANAGER_BYTES_MAX));
    manager
}
