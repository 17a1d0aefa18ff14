//! The manager of the desired pods, by the `managedFields` of a ReplicaSet. They are not read of other objects.

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Deserializer};

use super::{metadata::Time, replica_set::verbatim};

/// How many bytes are kept of a manager. Kubernetes allows as many.
const MANAGER_BYTES_MAX: usize = 128;

/// An entry of `managedFields`.
#[derive(Clone, PartialEq, Message, Deserialize)]
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
#[derive(Clone, PartialEq, Message)]
struct FieldsV1 {
    #[prost(bytes = "bytes", optional, tag = "1")]
    raw: Option<Bytes>,
}

impl<'de> Deserialize<'de> for FieldsV1 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = verbatim(deserializer)?;
        Ok(Self { raw })
    }
}

/// Returns the manager that last wrote `spec.replicas`, also through the subresource `scale`; empty if there is none.
pub(super) fn of_replicas(entries: Vec<ManagedFields>) -> String {
    let wrote = |it: &ManagedFields| {
        let fields = it.fields_v1.as_ref().and_then(|it| it.raw.as_ref());
        fields.is_some_and(|fields| has_replicas(fields))
    };
    let writers = entries.into_iter().filter(wrote);
    let newest = writers.max_by_key(|it| it.time.as_ref().and_then(|it| it.seconds));
    let mut manager = newest.and_then(|it| it.manager).unwrap_or_default();
    manager.truncate(manager.floor_char_boundary(MANAGER_BYTES_MAX));
    manager
}

/// Whether fields contain `spec.replicas`. Searches the text as far as the end of the spec: a tree for each state of each ReplicaSet would
/// be expensive.
fn has_replicas(fields: &[u8]) -> bool {
    let (mut depth, mut is_in_spec) = (0_u32, false);
    let mut bytes = fields.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'{' => depth = depth.saturating_add(1),
            b'}' if is_in_spec && depth == 2 => return false,
            b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                let mut is_escaped = false;
                let end = bytes.find(|(_, byte)| {
                    let ends = **byte == b'"' && !is_escaped;
                    is_escaped = **byte == b'\\' && !is_escaped;
                    ends
                });
                let Some((end, _)) = end else { return false };
                match (depth, &fields[at + 1..end]) {
                    (1, b"f:spec") => is_in_spec = true,
                    (2, b"f:replicas") if is_in_spec => return true,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    false
}
