//! Kubernetes' protobuf documents around objects.
//!
//! A document is four bytes of magic and an [`Unknown`], which holds the encoded object and its kind. The numbers of the fields are those
//! of Kubernetes' published `generated.proto` files.

use bytes::Bytes;
use prost::{DecodeError, Message};

/// The first bytes of a document.
const MAGIC: &[u8; 4] = b"k8s\0";

/// The envelope of every document.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
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

pub(crate) fn is_protobuf(document: &[u8]) -> bool {
    document.starts_with(MAGIC)
}

pub(crate) fn pod_document(message: Vec<u8>) -> Vec<u8> {
    let unknown = Unknown {
        type_meta: Some(TypeMeta {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
        }),
        raw: message.into(),
    };
    [&MAGIC[..], &unknown.encode_to_vec()].concat()
}

pub(crate) fn kind(document: &Bytes) -> Result<String, DecodeError> {
    Ok(unwrap(document)?.type_meta.unwrap_or_default().kind)
}

pub(crate) fn message<M: Message + Default>(document: &Bytes) -> Result<M, DecodeError> {
    M::decode(object(document)?)
}

/// Returns the encoded object of a document.
pub(crate) fn object(document: &Bytes) -> Result<Bytes, DecodeError> {
    Ok(unwrap(document)?.raw)
}

/// Reads an event of a watch, without its length prefix: the type, and the document of its object.
pub(crate) fn event(frame: Bytes) -> Result<(String, Bytes), DecodeError> {
    let WatchFrame { r#type, object } = WatchFrame::decode(frame)?;
    Ok((r#type, object.unwrap_or_default().raw))
}

/// Reads the envelope of a document. The object in it shares the document's bytes.
fn unwrap(document: &Bytes) -> Result<Unknown, DecodeError> {
    let content = document.strip_prefix(MAGIC).unwrap_or_default();
    Unknown::decode(document.slice_ref(content))
}

#[cfg(test)]
mod tests;
