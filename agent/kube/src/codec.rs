//! The one place that knows how objects look on the wire: protobuf, and JSON where the API server or a proxy answers in it, as it
//! does for custom resources. A document tells itself which of the two it is.

use agent_core::{
    api::{ApiError, Kind, Object, Reply},
    watch::{WatchEvent, WatchVerb},
};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use super::{
    mask::{self, Mask},
    protobuf,
};

/// JSON, as `Accept` and `Content-Type` name it.
pub(super) const JSON: &str = "application/json";
/// What is wanted of objects and lists of the kinds that are decided on.
pub(super) const OBJECTS: &str = "application/vnd.kubernetes.protobuf,application/json";
/// What is wanted of watches of these kinds.
pub(super) const EVENTS: &str =
    "application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// An answer that cannot be read.
#[derive(Debug, Error)]
pub(super) enum Unreadable {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Protobuf(#[from] prost::DecodeError),
}

const POD_LIST: Mask = Mask::Only(&[("metadata", Mask::All), ("items", mask::POD)]);
const REPLICA_SET_LIST: Mask = Mask::Only(&[("metadata", Mask::All), ("items", mask::REPLICA_SET)]);
const POD_EVENT: Mask = Mask::Only(&[("type", Mask::All), ("object", mask::POD)]);
const REPLICA_SET_EVENT: Mask = Mask::Only(&[("type", Mask::All), ("object", mask::REPLICA_SET)]);

/// A page of a list.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) items: Vec<Object>,
    pub(super) resource_version: String,
    /// The token that asks for the next page; `None` on the last.
    pub(super) next: Option<String>,
}

/// The `Status` object, as far as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
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

/// Writes an object.
pub(super) fn encode(object: &Value) -> Vec<u8> {
    object.to_string().into_bytes()
}

/// Writes a pod in the form that its spec is in, and says which it is.
pub(super) fn encode_pod(pod: &Value) -> (&'static str, Vec<u8>) {
    match protobuf::encode_pod(pod) {
        Some(document) => (PROTOBUF, document),
        None => (JSON, encode(pod)),
    }
}

/// Reads an object of a kind.
pub(super) fn object(kind: Kind, bytes: &[u8]) -> Result<Object, Unreadable> {
    if protobuf::is_protobuf(bytes) {
        return Ok(protobuf::object(kind, bytes)?);
    }
    let mask = match kind {
        Kind::Pod => mask::POD,
        Kind::ReplicaSet => mask::REPLICA_SET,
    };
    Ok(mask::decode(mask, bytes)?.into())
}

/// Reads any object whole, from JSON.
pub(super) fn whole(bytes: &[u8]) -> Result<Value, Unreadable> {
    Ok(mask::decode(Mask::All, bytes)?)
}

/// Reads a page of a list.
pub(super) fn page(kind: Kind, bytes: &[u8]) -> Result<Page, Unreadable> {
    if protobuf::is_protobuf(bytes) {
        let (items, resource_version, next) = protobuf::page(kind, bytes)?;
        let next = Some(next).filter(|token| !token.is_empty());
        return Ok(Page {
            items,
            resource_version,
            next,
        });
    }
    let mask = match kind {
        Kind::Pod => POD_LIST,
        Kind::ReplicaSet => REPLICA_SET_LIST,
    };
    let mut list = mask::decode(mask, bytes)?;
    let text = |name: &str| {
        let value = list.pointer(name).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let resource_version = text("/metadata/resourceVersion");
    let next = Some(text("/metadata/continue")).filter(|token| !token.is_empty());
    let items = match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items.into_iter().map(Object::from).collect(),
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_),
        )
        | None => Vec::new(),
    };
    Ok(Page {
        items,
        resource_version,
        next,
    })
}

/// Reads an event of a watch in protobuf.
pub(super) fn frame(kind: Kind, bytes: &[u8]) -> WatchEvent {
    protobuf::event(kind, bytes).unwrap_or_else(unreadable_event)
}

/// Reads an event of a watch in JSON.
pub(super) fn line(kind: Kind, bytes: &[u8]) -> WatchEvent {
    let mask = match kind {
        Kind::Pod => POD_EVENT,
        Kind::ReplicaSet => REPLICA_SET_EVENT,
    };
    let readable = mask::decode(mask, bytes).ok().and_then(|mut event| {
        let verb = protobuf::verb(event.get("type")?.as_str()?)?;
        let object = event.get_mut("object")?.take().into();
        Some(WatchEvent { verb, object })
    });
    readable.unwrap_or_else(unreadable_event)
}

/// What cannot be read may hide a change: it counts as a version that is gone, so that everything is listed anew.
fn unreadable_event() -> WatchEvent {
    WatchEvent {
        verb: WatchVerb::Error,
        object: json!({"kind": "Status", "code": 410, "message": "unreadable event"}).into(),
    }
}

/// Reads the answer to the deletion of a pod, as [`protobuf::deletion`] does.
pub(super) fn deletion(bytes: &[u8]) -> Result<Reply, Unreadable> {
    if protobuf::is_protobuf(bytes) {
        return Ok(protobuf::deletion(bytes)?);
    }
    let answer = mask::decode(mask::POD, bytes)?;
    let number = |path: &str| answer.pointer(path).and_then(Value::as_u64);
    let is_status = answer.get("kind").and_then(Value::as_str) == Some("Status");
    let ended = number("/metadata/deletionGracePeriodSeconds") == Some(0);
    let held = answer
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .is_some_and(|finalizers| !finalizers.is_empty());
    let answer = Object::from(answer);
    Ok(match is_status || (ended && !held) {
        true => Reply::Gone(answer),
        false => Reply::Object(answer),
    })
}

/// Reads a refusal. A proxy on the way may answer in words of its own: then its code is all that is known.
pub(super) fn refusal(code: u16, retry_after_seconds: Option<u32>, bytes: &[u8]) -> ApiError {
    if let Some(error) = protobuf::refusal(code, bytes).filter(|_| protobuf::is_protobuf(bytes)) {
        return ApiError {
            retry_after_seconds: error.retry_after_seconds.or(retry_after_seconds),
            ..error
        };
    }
    let status: Status = serde_json::from_slice(bytes).unwrap_or_default();
    let details = status.details.unwrap_or_default();
    let message = status.message.filter(|text| !text.is_empty());
    let causes = details.causes.unwrap_or_default();
    ApiError {
        code: Some(code),
        reason: status.reason.unwrap_or_default(),
        message: message.unwrap_or_else(|| format!("the cluster answers {code}")),
        causes: causes.into_iter().filter_map(|it| it.reason).collect(),
        retry_after_seconds: details.retry_after_seconds.or(retry_after_seconds),
    }
}
