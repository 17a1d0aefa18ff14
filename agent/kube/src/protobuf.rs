//! Kubernetes' protobuf documents around objects.
//!
//! A document is four bytes of magic and an [`Unknown`], which holds the encoded object and its kind. The numbers of the fields are those
//! of Kubernetes' published `generated.proto` files.

use agent_core::api::ApiError;
use bytes::Bytes;
use prost::{DecodeError, Message};

use crate::objects::Projected;

/// The first bytes of a document.
const MAGIC: &[u8; 4] = b"k8s\0";
/// The value of a `Status` that reports success.
pub(crate) const SUCCESS: &str = "Success";

pub(crate) struct Page<P> {
    pub(crate) items: Vec<P>,
    pub(crate) resource_version: String,
    /// The token of the next page; empty on the last page.
    pub(crate) next: String,
}

/// The envelope of every document.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

/// The envelope, without its object.
#[derive(Clone, PartialEq, Message)]
struct Envelope {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

/// The common fields of any object.
#[derive(Clone, PartialEq, Message)]
struct AnyObject {
    #[prost(message, optional, tag = "1")]
    metadata: Option<AnyMeta>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyMeta {
    #[prost(string, tag = "6")]
    resource_version: String,
}

#[derive(Clone, PartialEq, Message)]
struct List {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    items: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct ListMeta {
    #[prost(string, tag = "2")]
    resource_version: String,
    #[prost(string, tag = "3")]
    r#continue: String,
}

#[derive(Clone, PartialEq, Message)]
struct WatchFrame {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(message, optional, tag = "2")]
    object: Option<RawExtension>,
}

#[derive(Clone, PartialEq, Message)]
struct RawExtension {
    #[prost(bytes = "bytes", tag = "1")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    status: String,
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

pub(crate) fn is_protobuf(document: &[u8]) -> bool {
    document.starts_with(MAGIC)
}

/// Wraps the message of a pod in a document.
pub(crate) fn pod_document(message: Vec<u8>) -> Vec<u8> {
    let unknown = Unknown {
        type_meta: Some(TypeMeta {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
        }),
        raw: message.into(),
    };
    let mut document = Vec::with_capacity(MAGIC.len() + unknown.encoded_len());
    document.extend_from_slice(MAGIC);
    document.extend_from_slice(&unknown.encode_to_vec());
    document
}

pub(crate) fn kind(document: &[u8]) -> Result<String, DecodeError> {
    let envelope = Envelope::decode(content(document))?;
    Ok(envelope.type_meta.unwrap_or_default().kind)
}

pub(crate) fn message<M: Message + Default>(document: &Bytes) -> Result<M, DecodeError> {
    M::decode(unwrap(document)?.raw)
}

pub(crate) fn version(document: &Bytes) -> Result<String, DecodeError> {
    Ok(metadata_of(unwrap(document)?.raw)?.resource_version)
}

/// True if a `Status` reports success.
pub(crate) fn is_success(document: &Bytes) -> Result<bool, DecodeError> {
    Ok(Status::decode(unwrap(document)?.raw)?.status == SUCCESS)
}

pub(crate) fn page<P: Projected>(document: &Bytes) -> Result<Page<P>, DecodeError> {
    let List { metadata, items } = List::decode(unwrap(document)?.raw)?;
    let items = items.into_iter().map(P::decode);
    let ListMeta {
        resource_version,
        r#continue,
    } = metadata.unwrap_or_default();
    Ok(Page {
        items: items.collect::<Result<_, _>>()?,
        resource_version,
        next: r#continue,
    })
}

/// Reads an event of a watch, without its length prefix: the type, and the document of its object.
pub(crate) fn event(frame: Bytes) -> Result<(String, Bytes), DecodeError> {
    let WatchFrame { r#type, object } = WatchFrame::decode(frame)?;
    Ok((r#type, object.unwrap_or_default().raw))
}

pub(crate) fn refusal(code: Option<u16>, document: &Bytes) -> Result<ApiError, DecodeError> {
    let Status {
        status: _,
        message,
        reason,
        details,
        code: own_code,
    } = Status::decode(unwrap(document)?.raw)?;
    let StatusDetails {
        causes,
        retry_after_seconds,
    } = details.unwrap_or_default();
    let seconds = u32::try_from(retry_after_seconds).ok();
    Ok(ApiError {
        code: code.or_else(|| u16::try_from(own_code).ok()),
        reason,
        message,
        causes: causes.into_iter().map(|it| it.reason).collect(),
        retry_after_seconds: seconds.filter(|seconds| *seconds > 0),
    })
}

fn metadata_of(object: Bytes) -> Result<AnyMeta, DecodeError> {
    Ok(AnyObject::decode(object)?.metadata.unwrap_or_default())
}

/// Reads the envelope of a document. The object in it shares the document's bytes.
fn unwrap(document: &Bytes) -> Result<Unknown, DecodeError> {
    Unknown::decode(document.slice_ref(content(document)))
}

fn content(document: &[u8]) -> &[u8] {
    document.strip_prefix(MAGIC).unwrap_or_default()
}

#[cfg(test)]
mod tests;
