//! Kubernetes' protobuf: messages that name only the fields that are read, so that the rest is skipped and never held.
//!
//! A document is four bytes of magic and an [`Unknown`], which holds the object as bytes and says of what kind it is. The numbers
//! of the fields are those of the published `generated.proto` files of Kubernetes; numbers are never used again there.
//!
//! **Invariant:** the spec of a template stays bytes. It is copied into the pod as it is, whatever fields it has.

mod new_pod;
mod pod;
mod value;

use std::collections::BTreeMap;

use agent_core::{
    api::{ApiError, Kind, Object, Reply},
    watch::{WatchEvent, WatchVerb},
};
use prost::{DecodeError, Message};
use serde_json::{Value, json};

pub(super) use self::new_pod::encode as encode_pod;
use self::pod::Pod;

/// What a document begins with.
const MAGIC: &[u8; 4] = b"k8s\0";

/// The envelope of every document.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    raw: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

#[derive(Clone, PartialEq, Message)]
struct Time {
    #[prost(int64, optional, tag = "1")]
    seconds: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    generate_name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(int64, tag = "7")]
    generation: i64,
    #[prost(message, optional, tag = "9")]
    deletion_timestamp: Option<Time>,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<OwnerReference>,
    #[prost(string, repeated, tag = "14")]
    finalizers: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct OwnerReference {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    uid: String,
    #[prost(string, tag = "5")]
    api_version: String,
    #[prost(bool, optional, tag = "6")]
    controller: Option<bool>,
    #[prost(bool, optional, tag = "7")]
    block_owner_deletion: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct ReplicaSet {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "2")]
    spec: Option<ReplicaSetSpec>,
    #[prost(message, optional, tag = "3")]
    status: Option<ReplicaSetStatus>,
}

#[derive(Clone, PartialEq, Message)]
struct ReplicaSetSpec {
    #[prost(int32, optional, tag = "1")]
    replicas: Option<i32>,
    #[prost(message, optional, tag = "2")]
    selector: Option<LabelSelector>,
    #[prost(message, optional, tag = "3")]
    template: Option<PodTemplateSpec>,
    #[prost(int32, tag = "4")]
    min_ready_seconds: i32,
}

#[derive(Clone, PartialEq, Message)]
struct LabelSelector {
    #[prost(btree_map = "string, string", tag = "1")]
    match_labels: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "2")]
    match_expressions: Vec<LabelSelectorRequirement>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelSelectorRequirement {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    operator: String,
    #[prost(string, repeated, tag = "3")]
    values: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct PodTemplateSpec {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    /// A PodSpec, verbatim.
    #[prost(bytes = "bytes", optional, tag = "2")]
    spec: Option<bytes::Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct ReplicaSetStatus {
    #[prost(int32, tag = "1")]
    replicas: i32,
    #[prost(int32, tag = "2")]
    fully_labeled_replicas: i32,
    #[prost(int64, tag = "3")]
    observed_generation: i64,
    #[prost(int32, tag = "4")]
    ready_replicas: i32,
    #[prost(int32, tag = "5")]
    available_replicas: i32,
    #[prost(message, repeated, tag = "6")]
    conditions: Vec<ReplicaSetCondition>,
    #[prost(int32, optional, tag = "7")]
    terminating_replicas: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct ReplicaSetCondition {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(message, optional, tag = "3")]
    last_transition_time: Option<Time>,
    #[prost(string, tag = "4")]
    reason: String,
    #[prost(string, tag = "5")]
    message: String,
}

#[derive(Clone, PartialEq, Message)]
struct List {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    items: Vec<bytes::Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct ListMeta {
    #[prost(string, tag = "2")]
    resource_version: String,
    #[prost(string, tag = "3")]
    r#continue: String,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(message, optional, tag = "2")]
    object: Option<RawExtension>,
}

#[derive(Clone, PartialEq, Message)]
struct RawExtension {
    #[prost(bytes = "bytes", tag = "1")]
    raw: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "3")]
    message: String,
    #[prost(string, tag = "4")]
    reason: String,
    #[prost(message, optional, tag = "5")]
    details: Option<StatusDetails>,
    #[prost(int32, tag = "6")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct StatusDetails {
    #[prost(message, repeated, tag = "4")]
    causes: Vec<StatusCause>,
    #[prost(int32, tag = "5")]
    retry_after_seconds: i32,
}

#[derive(Clone, PartialEq, Message)]
struct StatusCause {
    #[prost(string, tag = "1")]
    reason: String,
}

/// Returns whether a document is protobuf, and not JSON.
pub(super) fn is_protobuf(document: &[u8]) -> bool {
    document.starts_with(MAGIC)
}

/// Reads an object of a kind, or the `Status` that stands in its place.
pub(super) fn object(kind: Kind, document: &[u8]) -> Result<Object, DecodeError> {
    let unknown = unwrap(document)?;
    match unknown.is_status() {
        true => status(unknown.raw),
        false => bare(kind, unknown.raw),
    }
}

/// Reads the answer to the deletion of a pod: the pod as it is while it stops, or as it was.
///
/// An API server that removes a pod at once answers with a grace period of 0, or with a `Status` instead of the pod.
pub(super) fn deletion(document: &[u8]) -> Result<Reply, DecodeError> {
    let unknown = unwrap(document)?;
    if unknown.is_status() {
        return status(unknown.raw).map(Reply::Gone);
    }
    let pod = Pod::decode(unknown.raw)?;
    let is_gone = pod.is_gone();
    let pod = Object::from(pod.project());
    Ok(match is_gone {
        true => Reply::Gone(pod),
        false => Reply::Object(pod),
    })
}

/// Reads a page of a list: the objects, its version, and the token of the next page.
pub(super) fn page(
    kind: Kind,
    document: &[u8],
) -> Result<(Vec<Object>, String, String), DecodeError> {
    let List { metadata, items } = List::decode(unwrap(document)?.raw)?;
    let items = items.into_iter().map(|item| bare(kind, item));
    let ListMeta {
        resource_version,
        r#continue,
    } = metadata.unwrap_or_default();
    Ok((
        items.collect::<Result<_, _>>()?,
        resource_version,
        r#continue,
    ))
}

/// Reads an event of a watch, without its length before it.
pub(super) fn event(kind: Kind, frame: &[u8]) -> Option<WatchEvent> {
    let Event {
        r#type,
        object: raw,
    } = Event::decode(frame).ok()?;
    let verb = verb(&r#type)?;
    let object = object(kind, &raw?.raw).ok()?;
    Some(WatchEvent { verb, object })
}

/// Returns what a watch says of an object.
pub(super) fn verb(text: &str) -> Option<WatchVerb> {
    match text {
        "ADDED" => Some(WatchVerb::Added),
        "MODIFIED" => Some(WatchVerb::Modified),
        "DELETED" => Some(WatchVerb::Deleted),
        "BOOKMARK" => Some(WatchVerb::Bookmark),
        "ERROR" => Some(WatchVerb::Error),
        _ => None,
    }
}

/// Reads a refusal; `None` where it is none.
pub(super) fn refusal(code: u16, document: &[u8]) -> Option<ApiError> {
    let status = Status::decode(unwrap(document).ok()?.raw).ok()?;
    let details = status.details.unwrap_or_default();
    let seconds = u32::try_from(details.retry_after_seconds).ok();
    Some(ApiError {
        code: Some(code),
        reason: status.reason,
        message: status.message,
        causes: details.causes.into_iter().map(|it| it.reason).collect(),
        retry_after_seconds: seconds.filter(|seconds| *seconds > 0),
    })
}

fn unwrap(document: &[u8]) -> Result<Unknown, DecodeError> {
    Unknown::decode(document.strip_prefix(MAGIC).unwrap_or_default())
}

fn bare(kind: Kind, raw: bytes::Bytes) -> Result<Object, DecodeError> {
    Ok(match kind {
        Kind::Pod => Pod::decode(raw)?.project().into(),
        Kind::ReplicaSet => value::replica_set(ReplicaSet::decode(raw)?).into(),
    })
}

fn status(raw: bytes::Bytes) -> Result<Object, DecodeError> {
    Status::decode(raw).map(|status| value::status(status).into())
}

impl Unknown {
    fn is_status(&self) -> bool {
        self.type_meta
            .as_ref()
            .is_some_and(|it| it.kind == "Status")
    }
}

/// A template's spec as an opaque value: one field that no spec has, and the bytes as characters U+0000 to U+00FF.
fn sealed(bytes: &[u8]) -> Value {
    let text: String = bytes.iter().copied().map(char::from).collect();
    json!({SEAL: text})
}

/// What marks a sealed spec.
const SEAL: &str = "k8s\0protobuf";

/// Opens what was sealed.
fn unsealed(spec: &Value) -> Option<Vec<u8>> {
    let text = spec.get(SEAL)?.as_str()?;
    text.chars().map(|it| u8::try_from(it).ok()).collect()
}

#[cfg(test)]
mod tests;
