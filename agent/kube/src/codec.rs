//! The choice between protobuf and JSON. API servers answer in JSON for custom resources, and proxies always may. A document itself tells
//! its encoding.

use agent_core::{
    api::{ApiError, CreatePod, InvalidObject, Kind, Object, ReplicaSet, Reply},
    watch::{Items, List, Part, WatchEvent},
};
use bytes::Bytes;
use decree_api::v1;
use prost::Message;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    objects::{
        PodMessage, Projected, ReplicaSetMessage, Unreadable, added, encode_pod, from_json,
        from_protobuf, or_default,
    },
    protobuf,
};

pub(crate) const JSON: &str = "application/json";
/// The `Accept` header for lists of which only the metadata is read, as templates may be long. An API server that cannot leave templates
/// out answers with the whole list.
pub(crate) const METADATA: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// The `Accept` header for pods and ReplicaSets, and for their lists.
pub(crate) const OBJECTS: &str = "application/vnd.kubernetes.protobuf,application/json";
/// The `Accept` header for watches of these kinds.
pub(crate) const EVENTS: &str =
    "application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch";
/// The kind of an API server's answer without an object.
const STATUS: &str = "Status";
/// The value of a `Status` that reports success.
const SUCCESS: &str = "Success";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) list: List,
    /// The token of the next page; `None` on the last page.
    pub(crate) next: Option<String>,
}

/// The objects of a page, the errors of the invalid ones, and the metadata of the list.
type Sorted<T> = (Vec<T>, Vec<InvalidObject>, ListMeta);

/// A page in protobuf.
#[derive(Clone, PartialEq, Message)]
struct ListMessage {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    items: Vec<Bytes>,
}

/// A page in JSON. In both encodings, the objects of a page are read one by one, so that an invalid object harms no other.
#[derive(Deserialize)]
struct ListJson<'a> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ListMeta {
    #[prost(string, tag = "2")]
    pub(crate) resource_version: String,
    /// The token of the next page; empty on the last page.
    #[prost(string, tag = "3")]
    pub(crate) r#continue: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct AnyObject {
    #[prost(message, optional, tag = "1")]
    metadata: Option<AnyMeta>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AnyMeta {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "3")]
    namespace: Option<String>,
    #[prost(string, optional, tag = "5")]
    uid: Option<String>,
    #[prost(string, optional, tag = "6")]
    resource_version: Option<String>,
}

#[derive(Deserialize)]
struct KindJson {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
pub(crate) struct EventJson<'a> {
    pub(crate) r#type: String,
    #[serde(borrow)]
    pub(crate) object: &'a RawValue,
}

/// The fields that are read of a `Status` object.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase")]
struct Status {
    #[prost(string, optional, tag = "2")]
    status: Option<String>,
    #[prost(string, optional, tag = "3")]
    message: Option<String>,
    #[prost(string, optional, tag = "4")]
    reason: Option<String>,
    #[prost(message, optional, tag = "5")]
    details: Option<StatusDetails>,
    #[prost(int32, optional, tag = "6")]
    code: Option<i32>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusDetails {
    #[prost(message, repeated, tag = "4")]
    #[serde(deserialize_with = "or_default")]
    causes: Vec<StatusCause>,
    #[prost(int32, optional, tag = "5")]
    retry_after_seconds: Option<i32>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default)]
struct StatusCause {
    #[prost(string, optional, tag = "1")]
    reason: Option<String>,
}

/// Writes a pod in the encoding of its template, and returns the content type.
pub(crate) fn new_pod(create: &CreatePod) -> Result<(&'static str, Vec<u8>), Unreadable> {
    let pod = encode_pod(create)?;
    let is_protobuf = protobuf::is_protobuf(&pod);
    Ok((if is_protobuf { PROTOBUF } else { JSON }, pod))
}

/// Reads an object of this kind only.
pub(crate) fn object(kind: Kind, bytes: &Bytes) -> Result<Object, Unreadable> {
    demand(name_of(kind), kind_of(bytes)?)?;
    match kind {
        Kind::Pod => projected::<PodMessage>(bytes).map(Object::from),
        Kind::ReplicaSet => projected::<ReplicaSetMessage>(bytes).map(Object::from),
    }
}

/// Reads a page of a list; `begins` marks the first page. An answer of another kind, or without a version, tells nothing about the objects.
/// In JSON, an answer without items tells nothing either, as an empty list has them.
pub(crate) fn page(kind: Kind, begins: bool, bytes: &Bytes) -> Result<Page, Unreadable> {
    let list_kind = format!("{}List", name_of(kind));
    let (items, invalid, metadata) = match kind {
        Kind::Pod => {
            let (pods, invalid, metadata) = sorted::<PodMessage>(&list_kind, bytes)?;
            (Items::Pods(pods.into_iter().collect()), invalid, metadata)
        }
        Kind::ReplicaSet => {
            let (sets, invalid, metadata) = sorted::<ReplicaSetMessage>(&list_kind, bytes)?;
            (Items::ReplicaSets(sets), invalid, metadata)
        }
    };
    let ListMeta {
        resource_version,
        r#continue,
    } = metadata;
    if resource_version.is_empty() {
        return Err(Unreadable::List("a version"));
    }
    let next = Some(r#continue).filter(|token| !token.is_empty());
    let list = List {
        part: Part {
            begins,
            ends: next.is_none(),
        },
        items,
        invalid,
        resource_version,
    };
    Ok(Page { list, next })
}

pub(crate) fn frame(kind: Kind, bytes: Bytes) -> WatchEvent {
    match protobuf::event(bytes) {
        Ok((verb, document)) => event_of(kind, &verb, &document),
        Err(error) => unreadable_event(&error),
    }
}

pub(crate) fn line(kind: Kind, bytes: &Bytes) -> WatchEvent {
    match serde_json::from_slice::<EventJson<'_>>(bytes) {
        Ok(EventJson { r#type, object }) => {
            let object = bytes.slice_ref(object.get().as_bytes());
            event_of(kind, &r#type, &object)
        }
        Err(error) => unreadable_event(&error),
    }
}

/// Reads the answer to the deletion of a pod: the pod while it stops, or its last state.
///
/// An API server that removes a pod at once answers with a grace period of 0, or with a `Status` instead of the pod.
pub(crate) fn deletion(bytes: &Bytes) -> Result<Reply, Unreadable> {
    let found = kind_of(bytes)?;
    if found == STATUS && message::<Status>(bytes)?.status.as_deref() == Some(SUCCESS) {
        return Ok(Reply::Gone(String::new()));
    }
    demand(name_of(Kind::Pod), found)?;
    let pod: PodMessage = message(bytes)?;
    if let Some(version) = pod.gone_at() {
        return Ok(Reply::Gone(version.to_owned()));
    }
    Ok(Reply::Pod(Box::new(pod.project()?)))
}

/// Reads a `Status` that came with a success code in place of an object or list; `None` for another answer.
pub(crate) fn status(bytes: &Bytes) -> Option<ApiError> {
    let is_status = kind_of(bytes).is_ok_and(|kind| kind == STATUS);
    is_status.then(|| {
        let error = refusal(None, bytes);
        ApiError {
            message: format!("a Status instead of what was asked for: {}", error.message),
            ..error
        }
    })
}

/// Reads a refusal. A proxy may answer with another body; then only the `code` of the answer is known.
pub(crate) fn refusal(code: Option<u16>, bytes: &Bytes) -> ApiError {
    let Status {
        status: _,
        message,
        reason,
        details,
        code: own_code,
    } = message(bytes).unwrap_or_default();
    let code = code.or_else(|| own_code?.try_into().ok());
    let StatusDetails {
        causes,
        retry_after_seconds,
    } = details.unwrap_or_default();
    let text = message.filter(|text| !text.is_empty());
    let seconds = retry_after_seconds.and_then(|seconds| u32::try_from(seconds).ok());
    ApiError {
        code,
        reason: reason.unwrap_or_default(),
        message: text
            .unwrap_or_else(|| format!("the cluster answers {}", code.unwrap_or_default())),
        causes: causes.into_iter().filter_map(|it| it.reason).collect(),
        retry_after_seconds: seconds.filter(|seconds| *seconds > 0),
    }
}

/// Reads a message in the encoding of its document.
fn message<M: Message + Default + DeserializeOwned>(document: &Bytes) -> Result<M, Unreadable> {
    Ok(if protobuf::is_protobuf(document) {
        protobuf::message(document)?
    } else {
        serde_json::from_slice(document)?
    })
}

/// Reads an object like [`message`]. One that is invalid, or cannot be decoded, harms no other: its error names it.
fn projected<P: Projected>(bytes: &Bytes) -> Result<P::Into, Unreadable> {
    Ok(if protobuf::is_protobuf(bytes) {
        from_protobuf::<P>(protobuf::object(bytes)?)?
    } else {
        from_json::<P>(bytes)?
    })
}

fn sorted<P: Projected>(list_kind: &str, bytes: &Bytes) -> Result<Sorted<P::Into>, Unreadable> {
    let (metadata, items): (_, Vec<_>) = if protobuf::is_protobuf(bytes) {
        demand(list_kind, protobuf::kind(bytes)?)?;
        let ListMessage { metadata, items } = protobuf::message(bytes)?;
        let items = items.into_iter().map(from_protobuf::<P>);
        (metadata.unwrap_or_default(), items.collect())
    } else {
        let ListJson {
            kind,
            metadata,
            items,
        } = serde_json::from_slice(bytes)?;
        demand(list_kind, kind)?;
        let items = items.ok_or(Unreadable::List("items"))?.into_iter();
        let items = items.map(|item| from_json::<P>(item.get().as_bytes()));
        (metadata, items.collect())
    };
    let mut objects = Vec::with_capacity(items.len());
    let mut invalid = Vec::new();
    for item in items {
        match item {
            Ok(object) => objects.push(object),
            Err(error) => invalid.push(error),
        }
    }
    Ok((objects, invalid, metadata))
}

fn event_of(kind: Kind, verb: &str, document: &Bytes) -> WatchEvent {
    let make: fn(Object) -> WatchEvent = match verb {
        "ADDED" | "MODIFIED" => WatchEvent::Applied,
        "DELETED" => WatchEvent::Deleted,
        "BOOKMARK" => return bookmark(kind, document),
        "ERROR" => return WatchEvent::Error(refusal(None, document)),
        _ => return unreadable_event(&format!("events of type {verb:?} are unknown")),
    };
    match object(kind, document) {
        Ok(Object::Pod(pod)) if verb == "ADDED" => added(pod, || message(document).ok()),
        Ok(object) => make(object),
        Err(Unreadable::Object(error)) => invalid_event(kind, verb, document, error),
        Err(error) => unreadable_event(&error),
    }
}

/// An event of an invalid object, whose names and version are readable nevertheless.
fn invalid_event(kind: Kind, verb: &str, document: &Bytes, error: InvalidObject) -> WatchEvent {
    let object = message::<AnyObject>(document).unwrap_or_default();
    let metadata = object.metadata.unwrap_or_default();
    let is_left_out = verb == "DELETED" || kind == Kind::ReplicaSet;
    WatchEvent::Invalid {
        error,
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
        left_out: names_alone(kind, metadata).filter(|_| is_left_out),
    }
}

/// The object with its names and version alone; `None` if it lacks one of them.
fn names_alone(kind: Kind, metadata: AnyMeta) -> Option<Object> {
    let (namespace, name, uid) = (metadata.namespace?, metadata.name?, metadata.uid?);
    let resource_version = metadata.resource_version?;
    Some(match kind {
        Kind::Pod => Object::from(v1::Pod {
            namespace,
            name,
            uid,
            resource_version,
            ..v1::Pod::default()
        }),
        Kind::ReplicaSet => Object::from(ReplicaSet {
            projected: v1::ReplicaSet {
                namespace,
                name,
                uid,
                resource_version,
                ..v1::ReplicaSet::default()
            },
            template: None,
        }),
    })
}

fn bookmark(kind: Kind, document: &Bytes) -> WatchEvent {
    let found = kind_of(document).and_then(|found| demand(name_of(kind), found));
    match found.and_then(|()| version(document)) {
        Ok(version) => WatchEvent::Bookmark(version),
        Err(error) => unreadable_event(&error),
    }
}

const fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "Pod",
        Kind::ReplicaSet => "ReplicaSet",
    }
}

fn kind_of(document: &Bytes) -> Result<String, Unreadable> {
    if protobuf::is_protobuf(document) {
        return Ok(protobuf::kind(document)?);
    }
    let object: KindJson = serde_json::from_slice(document)?;
    Ok(object.kind)
}

fn demand(expected: &str, found: String) -> Result<(), Unreadable> {
    if found == expected {
        return Ok(());
    }
    let expected = expected.to_owned();
    Err(Unreadable::Kind { found, expected })
}

/// Reads the version of an object of any kind, even if the rest is invalid.
fn version(document: &Bytes) -> Result<String, Unreadable> {
    let metadata = message::<AnyObject>(document)?.metadata.unwrap_or_default();
    Ok(metadata.resource_version.unwrap_or_default())
}

/// An event that cannot be read may hide a change. It has the effect of a version that is gone, so that the kind is listed again.
pub(crate) fn unreadable_event(error: &dyn std::fmt::Display) -> WatchEvent {
    WatchEvent::Error(ApiError::unreadable(format!("unreadable event: {error}")))
}
