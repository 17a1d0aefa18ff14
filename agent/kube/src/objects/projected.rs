//! The common parts of messages, and the errors of invalid ones.

use agent_core::api::{InvalidObject, Object};
use prost::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// A message that is projected to an object of the contract.
pub(crate) trait Projected: Message + Default + DeserializeOwned {
    /// The name of the kind, for people.
    const NOUN: &'static str;
    /// The projected object.
    type Into: Into<Object>;

    /// Returns the version, even of an object that cannot be projected.
    fn resource_version(&self) -> &str;

    /// Names the first field that is required and absent.
    fn project(self) -> Result<Self::Into, InvalidObject>;
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

pub(super) fn from_value<P: Projected>(object: &Value) -> Result<P::Into, InvalidObject> {
    match P::deserialize(object) {
        Ok(message) => message.project(),
        Err(_) => Err(explain::<P>(object)),
    }
}

/// Reads a message from JSON. An invalid message is read twice, to find the place of its error.
pub(crate) fn from_json<P: Projected>(text: &[u8]) -> Result<P::Into, Unreadable> {
    Ok(match serde_json::from_slice::<P>(text) {
        Ok(message) => message.project()?,
        Err(_) => from_value::<P>(&serde_json::from_slice(text)?)?,
    })
}

fn explain<P: Projected>(object: &Value) -> InvalidObject {
    let (field, detail) = fault::<P>(object);
    let name = ["/metadata/namespace", "/metadata/name"];
    let [namespace, name] = name.map(|path| object.pointer(path).and_then(Value::as_str));
    invalid(P::NOUN, namespace, name, field, detail)
}

/// The field that is wrong in an object, and its error.
pub(super) fn fault<T: DeserializeOwned>(object: &Value) -> (String, String) {
    match serde_path_to_error::deserialize::<_, T>(object) {
        Ok(_) => Default::default(),
        Err(error) => (error.path().to_string(), error.inner().to_string()),
    }
}

pub(super) fn invalid(
    noun: &str,
    namespace: Option<&str>,
    name: Option<&str>,
    field: impl Into<String>,
    detail: impl Into<String>,
) -> InvalidObject {
    let known = |text: Option<&str>| text.filter(|it| !it.is_empty()).unwrap_or("?").to_owned();
    InvalidObject {
        object: format!("{noun} {}/{}", known(namespace), known(name)),
        field: field.into(),
        detail: detail.into(),
    }
}
