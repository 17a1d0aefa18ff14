//! Kubernetes' protobuf: what is around its objects.
//!
//! A document is four bytes of magic and an [`Unknown`], which holds the object as bytes and says of what kind it is. The numbers
//! of the fields are those of the published `generated.proto` files of Kubernetes.

use agent_core::api::ApiError;
use bytes::Bytes;
use prost::{DecodeError, Message};

use crate::objects::Projected;

/// What a document begins with.
const MAGIC: &[u8; 4] = b"k8s\0";
/// What a `Status` says where what was asked for was done.
pub(crate) const SUCCESS: &str = "Success";

/// A page of a list.
pub(crate) struct Page<P> {
    pub(crate) items: Vec<P>,
    pub(crate) resource_version: String,
    /// The token that asks for the next page; empty on the last.
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

/// The envelope, without what is in it.
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

/// An object of any kind, as far as all have the same.
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

/// Returns whether a document is protobuf, and not JSON.
pub(crate) fn is_protobuf(document: &[u8]) -> bool {
    document.starts_with(MAGIC)
}

/// Makes a document of the message of a pod.
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

/// Reads of what kind an object or a list is.
pub(crate) fn kind(document: &[u8]) -> Result<String, DecodeError> {
    let envelope = Envelope::decode(content(document))?;
    Ok(envelope.type_meta.unwrap_or_default().kind)
}

/// Reads an object, or a part of it.
pub(crate) fn message<M: Message + Default>(document: &Bytes) -> Result<M, DecodeError> {
    M::decode(unwrap(document)?.raw)
}

/// Reads the version of an object of any kind.
pub(crate) fn version(document: &Bytes) -> Result<String, DecodeError> {
    Ok(metadata_of(unwrap(document)?.raw)?.resource_version)
}

/// Returns whether a `Status` says that what was asked for was done.
pub(crate) fn is_success(document: &Bytes) -> Result<bool, DecodeError> {
    Ok(Status::decode(unwrap(document)?.raw)?.status == SUCCESS)
}

/// Reads a page of a list.
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

/// Reads an event of a watch, without its length before it: its type, and the document of its object.
pub(crate) fn event(frame: Bytes) -> Result<(String, Bytes), DecodeError> {
    let WatchFrame { r#type, object } = WatchFrame::decode(frame)?;
    Ok((r#type, object.unwrap_or_default().raw))
}

/// Reads a refusal.
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

/// Reads the envelope of a document; what is in it shares its bytes.
fn unwrap(document: &Bytes) -> Result<Unknown, DecodeError> {
    Unknown::decode(document.slice_ref(content(document)))
}

fn content(document: &[u8]) -> &[u8] {
    document.strip_prefix(MAGIC).unwrap_or_default()
}

#[cfg(test)]
mod tests;
