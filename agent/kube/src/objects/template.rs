//! Templates, and the pods made from them (spec 6.3).
//!
//! A template is kept as the API server wrote it, in protobuf or JSON, and its pods are written in the same encoding. JSON begins with a
//! brace, and no message does: as a tag, that byte would begin a group, which Kubernetes does not use.
//!
//! **Invariant:** spec, labels, annotations and finalizers reach the pod as written, with all their fields.

use std::collections::{BTreeMap, HashMap};

use agent_core::api::CreatePod;
use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    metadata::{ObjectMeta, OwnerReference},
    patch::owner_references,
    projected::{Unreadable, fault},
};

/// A pod in the encoding of its template.
pub(crate) enum NewPod {
    Json(Vec<u8>),
    /// The message, without its envelope.
    Protobuf(Vec<u8>),
}

/// The fields that are read of a template.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, expecting = "an object")]
struct Head {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

/// A PodTemplateSpec whose parts stay bytes.
#[derive(Clone, PartialEq, Message)]
struct TemplateMessage {
    #[prost(message, optional, tag = "1")]
    metadata: Option<TemplateMeta>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    spec: Option<Bytes>,
}

/// The metadata that a pod copies from its template: entries of maps and texts, verbatim.
#[derive(Clone, PartialEq, Message)]
struct TemplateMeta {
    #[prost(bytes = "bytes", repeated, tag = "11")]
    labels: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "12")]
    annotations: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "14")]
    finalizers: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct PodMessage {
    #[prost(message, optional, tag = "1")]
    metadata: Option<PodMeta>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    spec: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct PodMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    generate_name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(bytes = "bytes", repeated, tag = "11")]
    labels: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "12")]
    annotations: Vec<Bytes>,
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<OwnerReference>,
    #[prost(bytes = "bytes", repeated, tag = "14")]
    finalizers: Vec<Bytes>,
}

/// The same pod in JSON. All fields of the template are copied, except the fields that every object has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodJson<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: BTreeMap<&'a str, Part<'a>>,
    #[serde(flatten)]
    rest: BTreeMap<String, &'a RawValue>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Text(&'a str),
    Verbatim(&'a RawValue),
    Json(Value),
}

/// The labels of a template, or the field that is wrong and its error.
pub(super) fn labels(template: &[u8]) -> Result<HashMap<String, String>, (String, String)> {
    let at = |field: String| {
        format!("spec.template.{field}")
            .trim_end_matches('.')
            .to_owned()
    };
    let head: Head = if template.is_empty() {
        Head::default()
    } else if is_json(template) {
        serde_json::from_slice(template).map_err(|error| {
            match serde_json::from_slice(template) {
                Ok(object) => {
                    let (field, detail) = fault::<Head>(&object);
                    (at(field), detail)
                }
                Err(_) => (at(String::new()), error.to_string()),
            }
        })?
    } else {
        Head::decode(template).map_err(|error| (at(String::new()), error.to_string()))?
    };
    Ok(head.metadata.unwrap_or_default().labels)
}

pub(crate) fn encode(create: &CreatePod) -> Result<NewPod, Unreadable> {
    Ok(if is_json(create.template.as_bytes()) {
        NewPod::Json(encode_json(create)?)
    } else {
        NewPod::Protobuf(encode_protobuf(create)?)
    })
}

/// Writes a pod in JSON.
///
/// # Errors
/// If its template is not JSON.
pub fn pod_to_json(create: &CreatePod) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(&encode_json(create)?)
}

fn encode_protobuf(create: &CreatePod) -> Result<Vec<u8>, prost::DecodeError> {
    let CreatePod {
        namespace,
        name,
        generate_name,
        controller,
        template,
        timeout: _,
    } = create;
    let template = TemplateMessage::decode(Bytes::from_owner(template.clone()))?;
    let TemplateMessage { metadata, spec } = template;
    let TemplateMeta {
        labels,
        annotations,
        finalizers,
    } = metadata.unwrap_or_default();
    let metadata = PodMeta {
        name: name.clone(),
        generate_name: generate_name.clone(),
        namespace: namespace.clone(),
        labels,
        annotations,
        owner_references: vec![controller.into()],
        finalizers,
    };
    let pod = PodMessage {
        metadata: Some(metadata),
        spec,
    };
    Ok(pod.encode_to_vec())
}

fn encode_json(create: &CreatePod) -> Result<Vec<u8>, serde_json::Error> {
    let CreatePod {
        namespace,
        name,
        generate_name,
        controller,
        template,
        timeout: _,
    } = create;
    let mut rest: BTreeMap<String, &RawValue> = serde_json::from_slice(template.as_bytes())?;
    let source = rest.remove("metadata").map_or("null", RawValue::get);
    let source: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(source)?;
    let source = source.unwrap_or_default();
    rest.retain(|field, _| !["apiVersion", "kind"].contains(&field.as_str()));
    let mut metadata = BTreeMap::from([
        ("name", Part::Text(name)),
        ("namespace", Part::Text(namespace)),
        ("ownerReferences", Part::Json(owner_references(controller))),
    ]);
    if !generate_name.is_empty() {
        metadata.insert("generateName", Part::Text(generate_name));
    }
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = source.get(field).filter(|value| value.get() != "null") {
            metadata.insert(field, Part::Verbatim(value));
        }
    }
    serde_json::to_vec(&PodJson {
        api_version: "v1",
        kind: "Pod",
        metadata,
        rest,
    })
}

fn is_json(template: &[u8]) -> bool {
    template.first() == Some(&b'{')
}
