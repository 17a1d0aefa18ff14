//! A pod in the making.

use bytes::Bytes;
use prost::Message;
use serde_json::{Map, Value};

use super::{MAGIC, ObjectMeta, OwnerReference, TypeMeta, Unknown, unsealed};

/// A pod as it is written.
#[derive(Clone, PartialEq, Message)]
struct NewPod {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    /// A PodSpec, verbatim.
    #[prost(bytes = "vec", tag = "2")]
    spec: Vec<u8>,
}

/// Writes a pod whose spec is a sealed one; `None` where it is not, or where the pod has what is not written here.
pub(crate) fn encode(pod: &Value) -> Option<Vec<u8>> {
    let spec = unsealed(pod.get("spec")?)?;
    let is_plain =
        |field: &String| ["apiVersion", "kind", "metadata", "spec"].contains(&field.as_str());
    if !pod.as_object()?.keys().all(is_plain) {
        return None;
    }
    let pod = NewPod {
        metadata: Some(object_meta(pod.get("metadata")?.as_object()?)?),
        spec,
    };
    let unknown = Unknown {
        type_meta: Some(TypeMeta {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
        }),
        raw: Bytes::from(pod.encode_to_vec()),
    };
    let mut document = MAGIC.to_vec();
    document.reserve(unknown.encoded_len());
    unknown.encode(&mut document).ok()?;
    Some(document)
}

fn object_meta(fields: &Map<String, Value>) -> Option<ObjectMeta> {
    let mut metadata = ObjectMeta::default();
    for (name, value) in fields {
        match name.as_str() {
            "name" => metadata.name = text(value)?,
            "generateName" => metadata.generate_name = text(value)?,
            "namespace" => metadata.namespace = text(value)?,
            "labels" => metadata.labels = texts(value)?,
            "annotations" => metadata.annotations = texts(value)?,
            "finalizers" => {
                metadata.finalizers = value.as_array()?.iter().map(text).collect::<Option<_>>()?;
            }
            "ownerReferences" => {
                let references = value.as_array()?.iter();
                metadata.owner_references =
                    references.map(owner_reference).collect::<Option<_>>()?;
            }
            _ => return None,
        }
    }
    Some(metadata)
}

fn owner_reference(value: &Value) -> Option<OwnerReference> {
    Some(OwnerReference {
        kind: text(value.get("kind")?)?,
        name: text(value.get("name")?)?,
        uid: text(value.get("uid")?)?,
        api_version: text(value.get("apiVersion")?)?,
        controller: value.get("controller").and_then(Value::as_bool),
        block_owner_deletion: value.get("blockOwnerDeletion").and_then(Value::as_bool),
    })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts<C: FromIterator<(String, String)>>(value: &Value) -> Option<C> {
    let entries = value.as_object()?.iter();
    entries
        .map(|(key, value)| Some((key.clone(), text(value)?)))
        .collect()
}
