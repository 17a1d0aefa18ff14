//! The common parts of messages, and the errors of invalid ones.

use std::fmt::Display;

use agent_core::api::{InvalidObject, Object};
use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use thiserror::Error;

/// How many bytes are kept of the path of a field, and of what is wrong with it. Both quote the object, which may be long.
const QUOTED_BYTES_MAX: usize = 256;

/// A message that is projected to an object of the contract.
pub(crate) trait Projected: Message + Default + DeserializeOwned {
    /// The name of the kind, for people.
    const NOUN: &'static str;
    type Into: Into<Object>;

    /// Names the first field that is required and absent.
    fn project(self) -> Result<Self::Into, InvalidObject>;
}

/// An object of which only the name is read, since the rest is invalid.
#[derive(Clone, PartialEq, Message, Deserialize)]
struct Named {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Name>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct Name {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
}

/// Why a document cannot be read.
#[derive(Debug, Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Protobuf(#[from] prost::DecodeError),
    #[error(transparent)]
    Object(#[from] InvalidObject),
    #[error("it is of kind {found:?}, not {expected:?}")]
    Kind { found: String, expected: String },
    #[error("it is a list without {0}")]
    List(&'static str),
}

/// Reads a message from JSON, or names the field that is wrong.
pub(super) fn from_value<P: Projected>(object: &Value) -> Result<P::Into, InvalidObject> {
    if let Ok(message) = P::deserialize(object) {
        return message.project();
    }
    let (field, detail) = fault::<P>(object);
    let text = |path| object.pointer(path).and_then(Value::as_str);
    let object = ["/metadata/namespace", "/metadata/name"].map(|it| text(it).unwrap_or_default());
    Err(invalid(P::NOUN, object, field, detail))
}

/// Reads a message from JSON. An invalid message is read twice, to find the place of its error, unless it makes no [`Value`].
pub(crate) fn from_json<P: Projected>(text: &[u8]) -> Result<P::Into, InvalidObject> {
    match serde_json::from_slice::<P>(text) {
        Ok(message) => message.project(),
        Err(error) => match serde_json::from_slice(text) {
            Ok(object) => from_value::<P>(&object),
            Err(_) => {
                let named = serde_json::from_slice(text).ok();
                Err(undecoded::<P>(named, "JSON", &error))
            }
        },
    }
}

/// Reads a message from protobuf.
pub(crate) fn from_protobuf<P: Projected>(bytes: Bytes) -> Result<P::Into, InvalidObject> {
    match P::decode(bytes.clone()) {
        Ok(message) => message.project(),
        Err(error) => {
            let named = Named::decode(bytes).ok();
            Err(undecoded::<P>(named, "protobuf", &error))
        }
    }
}

/// The error of an object that cannot be decoded, but perhaps its name can be.
fn undecoded<P: Projected>(
    named: Option<Named>,
    encoding: &str,
    error: &dyn Display,
) -> InvalidObject {
    let Name { namespace, name } = named.and_then(|it| it.metadata).unwrap_or_default();
    invalid(P::NOUN, [&namespace, &name], encoding, error.to_string())
}

/// The field that is wrong in an object, and its error.
pub(super) fn fault<T: DeserializeOwned>(object: &Value) -> (String, String) {
    match serde_path_to_error::deserialize::<_, T>(object) {
        Ok(_) => Default::default(),
        Err(error) => (error.path().to_string(), error.inner().to_string()),
    }
}

/// The error of an object with this namespace and name.
pub(super) fn invalid(
    noun: &str,
    object: [&str; 2],
    field: impl Into<String>,
    detail: impl Into<String>,
) -> InvalidObject {
    let [namespace, name] = object.map(|text| if text.is_empty() { "?" } else { text });
    InvalidObject {
        object: format!("{noun} {namespace}/{name}"),
        field: quoted(field.into()),
        detail: quoted(detail.into()),
    }
}

fn quoted(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(QUOTED_BYTES_MAX));
    // A list keeps the errors of all its objects.
    text.shrink_to_fit();
    text
}
