//! The choice between protobuf and JSON. API servers answer in JSON for custom resources, and proxies always may. A document itself tells
//! its encoding.

use agent_core::{
    api::{ApiError, CreatePod, InvalidObject, Kind, Object, Reply},
    watch::{Items, List, Part, WatchEvent},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    objects::{
        Made, NewPod, PodMessage, Projected, ReplicaSetMessage, Unreadable, added, encode_pod,
        from_json,
    },
    protobuf,
};

pub(crate) const JSON: &str = "application/json";
/// The `Accept` header for lists of which only the metadata is read.
pub(crate) const METADATA: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// The `Accept` header for pods and ReplicaSets, and for their lists.
pub(crate) const OBJECTS: &str = "application/vnd.kubernetes.protobuf,application/json";
/// The `Accept` header for watches of these kinds.
pub(crate) const EVENTS: &str =
    "application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch";
/// The kind of an API server's answer without an object.
const STATUS: &str = "Status";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) list: List,
    /// The token of the next page; `None` on the last page.
    pub(crate) next: Option<String>,
}

/// The readable objects of a page, and the errors of the others.
struct Sorted<T> {
    items: Vec<T>,
    invalid: Vec<InvalidObject>,
}

/// A page in JSON whose objects are read one by one, so that an invalid object harms no other.
#[derive(Deserialize)]
struct ListJson<'a> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: ListMetaJson,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMetaJson {
    resource_version: String,
    r#continue: String,
}

/// The kind of any object.
#[derive(Deserialize)]
struct KindJson {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct EventJson<'a> {
    r#type: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The fields that are read of a `Status` object.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    status: Option<String>,
    code: Option<u16>,
    message: Option<String>,
    reason: Option<String>,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    causes: Option<Vec<Cause>>,
    retry_after_seconds: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: Option<String>,
}

pub(crate) fn encode(object: &Value) -> Vec<u8> {
    object.to_string().into_bytes()
}

/// Writes a pod in the encoding of its template, and returns the content type.
pub(crate) fn new_pod(create: &CreatePod) -> Result<(&'static str, Vec<u8>), Unreadable> {
    Ok(match encode_pod(create)? {
        NewPod::Json(text) => (JSON, text),
        NewPod::Protobuf(message) => (PROTOBUF, protobuf::pod_document(message)),
    })
}

/// Reads an object of this kind only.
pub(crate) fn object(kind: Kind, bytes: &Bytes) -> Result<Object, Unreadable> {
    demand(name_of(kind), kind_of(bytes)?)?;
    match kind {
        Kind::Pod => projected::<PodMessage>(bytes).map(Object::from),
        Kind::ReplicaSet => projected::<ReplicaSetMessage>(bytes).map(Object::from),
    }
}

/// Reads any object from JSON, with all fields.
pub(crate) fn whole(bytes: &[u8]) -> Result<Value, Unreadable> {
    Ok(serde_json::from_slice(bytes)?)
}

/// Reads a page of a list; `begins` marks the first page. An answer of another kind, or without a version, tells nothing about the objects.
/// In JSON, an answer without items tells nothing either, as an empty list has them.
pub(crate) fn page(kind: Kind, begins: bool, bytes: &Bytes) -> Result<Page, Unreadable> {
    let list_kind = format!("{}List", name_of(kind));
    let (items, invalid, resource_version, next) = match kind {
        Kind::Pod => {
            let (sorted, version, next) = sorted::<PodMessage>(&list_kind, bytes)?;
            (
                Items::Pods(sorted.items.into_iter().collect()),
                sorted.invalid,
                version,
                next,
            )
        }
        Kind::ReplicaSet => {
            let (sorted, version, next) = sorted::<ReplicaSetMessage>(&list_kind, bytes)?;
            let items = Items::ReplicaSets(sorted.items);
            (items, sorted.invalid, version, next)
        }
    };
    if resource_version.is_empty() {
        return Err(Unreadable::List("a version"));
    }
    let next = Some(next).filter(|token| !token.is_empty());
    let list = List {
        part: Part::new(begins, next.is_none()),
        items,
        invalid,
        resource_version,
    };
    Ok(Page { list, next })
}

pub(crate) fn frame(kind: Kind, bytes: Bytes) -> WatchEvent {
    let event = protobuf::event(bytes);
    event.map_or_else(
        |error| unreadable_event(&error),
        |(verb, document)| event_of(kind, &verb, &document),
    )
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
    if found == STATUS && is_success(bytes)? {
        return Ok(Reply::Gone(String::new()));
    }
    demand(name_of(Kind::Pod), found)?;
    let pod: PodMessage = if protobuf::is_protobuf(bytes) {
        protobuf::message(bytes)?
    } else {
        serde_json::from_slice(bytes)?
    };
    if pod.is_gone() {
        return Ok(Reply::Gone(pod.resource_version().to_owned()));
    }
    Ok(Reply::Pod(Box::new(pod.project()?)))
}

/// Reads a `Status` that came with a success code in place of an object or list; `None` for another answer.
pub(crate) fn status(bytes: &Bytes) -> Option<ApiError> {
    let is_status = kind_of(bytes).is_ok_and(|kind| kind == STATUS);
    is_status.then(|| {
        let error = read_refusal(None, bytes);
        ApiError {
            message: format!("a Status instead of what was asked for: {}", error.message),
            ..error
        }
    })
}

/// Reads a refusal. A proxy may answer with another body; then only the code is known.
pub(crate) fn refusal(code: u16, retry_after_seconds: Option<u32>, bytes: &Bytes) -> ApiError {
    let error = read_refusal(Some(code), bytes);
    ApiError {
        retry_after_seconds: error.retry_after_seconds.or(retry_after_seconds),
        ..error
    }
}

fn read_refusal(code: Option<u16>, bytes: &Bytes) -> ApiError {
    if protobuf::is_protobuf(bytes)
        && let Ok(error) = protobuf::refusal(code, bytes)
    {
        return error;
    }
    let status: Status = serde_json::from_slice(bytes).unwrap_or_default();
    let code = code.or(status.code);
    let details = status.details.unwrap_or_default();
    let message = status.message.filter(|text| !text.is_empty());
    let causes = details.causes.unwrap_or_default();
    ApiError {
        code,
        reason: status.reason.unwrap_or_default(),
        message: message
            .unwrap_or_else(|| format!("the cluster answers {}", code.unwrap_or_default())),
        causes: causes.into_iter().filter_map(|it| it.reason).collect(),
        retry_after_seconds: details.retry_after_seconds,
    }
}

fn projected<P: Projected>(bytes: &Bytes) -> Result<P::Into, Unreadable> {
    if protobuf::is_protobuf(bytes) {
        Ok(protobuf::message::<P>(bytes)?.project()?)
    } else {
        from_json::<P>(bytes)
    }
}

fn sorted<P: Projected>(
    list_kind: &str,
    bytes: &Bytes,
) -> Result<(Sorted<P::Into>, String, String), Unreadable> {
    if protobuf::is_protobuf(bytes) {
        demand(list_kind, protobuf::kind(bytes)?)?;
        let page = protobuf::page::<P>(bytes)?;
        let items = page
            .items
            .into_iter()
            .map(|item| item.project().map_err(Unreadable::from));
        return Ok((Sorted::of(items)?, page.resource_version, page.next));
    }
    let ListJson {
        kind,
        metadata,
        items,
    } = serde_json::from_slice(bytes)?;
    demand(list_kind, kind)?;
    let items = items.ok_or(Unreadable::List("items"))?.into_iter();
    let items = items.map(|item| from_json::<P>(item.get().as_bytes()));
    let sorted = Sorted::of(items)?;
    Ok((sorted, metadata.resource_version, metadata.r#continue))
}

fn event_of(kind: Kind, verb: &str, document: &Bytes) -> WatchEvent {
    let make: fn(Object) -> WatchEvent = match verb {
        "ADDED" | "MODIFIED" => WatchEvent::Applied,
        "DELETED" => WatchEvent::Deleted,
        "BOOKMARK" => return bookmark(kind, document),
        "ERROR" => return WatchEvent::Error(read_refusal(None, document)),
        _ => return unreadable_event(&format!("events of type {verb:?} are unknown")),
    };
    match object(kind, document) {
        Ok(Object::Pod(pod)) if verb == "ADDED" => added(pod, || made(document)),
        Ok(object) => make(object),
        Err(Unreadable::Object(error)) => WatchEvent::Invalid {
            error,
            resource_version: version(document).unwrap_or_default(),
        },
        Err(error) => unreadable_event(&error),
    }
}

/// Reads the creator of an object, if it can be read.
fn made(document: &Bytes) -> Option<Made> {
    if protobuf::is_protobuf(document) {
        protobuf::message(document).ok()
    } else {
        serde_json::from_slice(document).ok()
    }
}

fn bookmark(kind: Kind, document: &Bytes) -> WatchEvent {
    let found = kind_of(document).and_then(|found| demand(name_of(kind), found));
    match found.and_then(|()| version(document)) {
        Ok(version) => WatchEvent::Bookmark(version),
        Err(error) => unreadable_event(&error),
    }
}

/// The API's name of a kind.
const fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "Pod",
        Kind::ReplicaSet => "ReplicaSet",
    }
}

fn kind_of(document: &[u8]) -> Result<String, Unreadable> {
    if protobuf::is_protobuf(document) {
        return Ok(protobuf::kind(document)?);
    }
    let object: KindJson = serde_json::from_slice(document)?;
    Ok(object.kind)
}

fn demand(expected: &str, found: String) -> Result<(), Unreadable> {
    if found == expected {
        Ok(())
    } else {
        Err(Unreadable::Kind {
            found,
            expected: expected.to_owned(),
        })
    }
}

/// True if a `Status` reports success.
fn is_success(document: &Bytes) -> Result<bool, Unreadable> {
    if protobuf::is_protobuf(document) {
        return Ok(protobuf::is_success(document)?);
    }
    let status: Status = serde_json::from_slice(document)?;
    Ok(status.status.as_deref() == Some(protobuf::SUCCESS))
}

/// Reads the version of an object of any kind, even if the rest is invalid.
fn version(document: &Bytes) -> Result<String, Unreadable> {
    if protobuf::is_protobuf(document) {
        return Ok(protobuf::version(document)?);
    }
    let object = whole(document)?;
    let version = object.pointer("/metadata/resourceVersion");
    let version = version.and_then(Value::as_str);
    Ok(version.unwrap_or_default().to_owned())
}

/// An event that cannot be read may hide a change. It has the effect of a version that is gone, so that the kind is listed again.
pub(crate) fn unreadable_event(error: &dyn std::fmt::Display) -> WatchEvent {
    WatchEvent::Error(ApiError::unreadable(format!("unreadable event: {error}")))
}

// === impl Sorted ===

impl<T> Sorted<T> {
    fn of(objects: impl Iterator<Item = Result<T, Unreadable>>) -> Result<Self, Unreadable> {
        let mut items = Vec::with_capacity(objects.size_hint().0);
        let mut invalid = Vec::new();
        for object in objects {
            match object {
                Ok(object) => items.push(object),
                Err(Unreadable::Object(error)) => invalid.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(Self { items, invalid })
    }
}
