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
use serde::Deserialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use crate::{
    evictions::{PRIORITY, RESPONDER},
    protobuf,
};

use super::{
    metadata::{ObjectMeta, OwnerReference},
    patch::owner_references,
    projected::{Unreadable, fault},
};

/// The fields that are read of a template.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, expecting = "an object")]
struct Head {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

/// A pod, or the template of one, in which the parts that a pod copies from its template are entries of maps and texts, verbatim.
#[derive(Clone, PartialEq, Message)]
struct PodMessage {
    #[prost(message, optional, tag = "1")]
    metadata: Option<PodMeta>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    spec: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "crate::lossy")]
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

/// The fields of a pod's spec that decide whether the pod gets a responder. A pod of a group must have none.
#[derive(Clone, PartialEq, Message)]
struct EvictionMessage {
    #[prost(bytes = "bytes", optional, tag = "43")]
    scheduling_group: Option<Bytes>,
    #[prost(message, repeated, tag = "44")]
    eviction_responders: Vec<Responder>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "crate::lossy")]
struct Responder {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "2")]
    priority: i32,
}

/// The fields of an object in JSON, verbatim.
type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// The labels of a template, or the field that is wrong and its error.
pub(super) fn labels(template: &[u8]) -> Result<HashMap<String, String>, (String, String)> {
    let head: Result<Head, _> = if is_json(template) {
        serde_json::from_slice(template).map_err(|error| match serde_json::from_slice(template) {
            Ok(object) => fault::<Head>(&object),
            Err(_) => (String::new(), error.to_string()),
        })
    } else {
        Head::decode(template).map_err(|error| (String::new(), error.to_string()))
    };
    let head = head.map_err(|(field, detail)| {
        let field = format!("spec.template.{field}");
        (field.trim_end_matches('.').to_owned(), detail)
    })?;
    Ok(head.metadata.unwrap_or_default().labels)
}

/// Writes a pod in the encoding of its template.
pub(crate) fn encode(create: &CreatePod) -> Result<Vec<u8>, Unreadable> {
    Ok(if is_json(create.template.as_ref()) {
        encode_json(create)?
    } else {
        protobuf::pod_document(encode_protobuf(create)?)
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
    let template = Bytes::from_owner(create.template.clone());
    let PodMessage { metadata, mut spec } = PodMessage::decode(template)?;
    if let Some(spec) = spec.as_mut().filter(|_| create.responds) {
        let found = EvictionMessage::decode(spec.clone())?;
        if found == EvictionMessage::default() {
            // A message is extended by the bytes of further fields.
            let own = EvictionMessage {
                eviction_responders: vec![Responder {
                    name: RESPONDER.to_owned(),
                    priority: PRIORITY,
                }],
                ..found
            };
            *spec = [spec.as_ref(), &own.encode_to_vec()].concat().into();
        }
    }
    let metadata = PodMeta {
        name: create.name.clone(),
        generate_name: create.generate_name.clone(),
        namespace: create.namespace.clone(),
        owner_references: vec![(&create.controller).into()],
        ..metadata.unwrap_or_default()
    };
    let metadata = Some(metadata);
    Ok(PodMessage { metadata, spec }.encode_to_vec())
}

/// All fields of the template are copied, except the fields that every object has.
fn encode_json(create: &CreatePod) -> Result<Vec<u8>, serde_json::Error> {
    let mut pod: Fields<'_> = serde_json::from_slice(create.template.as_ref())?;
    let metadata = pod.remove("metadata");
    let metadata = metadata.map(|it| serde_json::from_str::<Option<Fields<'_>>>(it.get()));
    let mut metadata = metadata.transpose()?.flatten().unwrap_or_default();
    metadata.retain(|field, value| {
        ["labels", "annotations", "finalizers"].contains(&field.as_str()) && value.get() != "null"
    });
    let (name, namespace) = (
        to_raw_value(&create.name)?,
        to_raw_value(&create.namespace)?,
    );
    let owners = to_raw_value(&owner_references(&create.controller))?;
    metadata.insert("name".to_owned(), &name);
    metadata.insert("namespace".to_owned(), &namespace);
    metadata.insert("ownerReferences".to_owned(), &owners);
    let base = to_raw_value(&create.generate_name)?;
    if !create.generate_name.is_empty() {
        metadata.insert("generateName".to_owned(), &base);
    }
    let spec = pod.get("spec").filter(|_| create.responds);
    let spec = spec.map(|it| with_responder(it)).transpose()?.flatten();
    if let Some(spec) = &spec {
        pod.insert("spec".to_owned(), spec);
    }
    let (version, kind) = (to_raw_value("v1")?, to_raw_value("Pod")?);
    let metadata = to_raw_value(&metadata)?;
    pod.insert("apiVersion".to_owned(), &version);
    pod.insert("kind".to_owned(), &kind);
    pod.insert("metadata".to_owned(), &metadata);
    serde_json::to_vec(&pod)
}

/// The spec of a pod with the agent as its responder; `None` if it names others, or must have none.
fn with_responder(spec: &RawValue) -> Result<Option<Box<RawValue>>, serde_json::Error> {
    let mut spec: Fields<'_> = serde_json::from_str(spec.get())?;
    let is_set = |field| {
        spec.get(field)
            .is_some_and(|it| !["null", "[]"].contains(&it.get()))
    };
    if ["evictionResponders", "schedulingGroup"]
        .into_iter()
        .any(is_set)
    {
        return Ok(None);
    }
    let own = to_raw_value(&json!([{"name": RESPONDER, "priority": PRIORITY}]))?;
    spec.insert("evictionResponders".to_owned(), &own);
    to_raw_value(&spec).map(Some)
}

fn is_json(template: &[u8]) -> bool {
    template.first() == Some(&b'{')
}
