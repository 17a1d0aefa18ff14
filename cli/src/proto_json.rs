//! Messages of the contract in canonical proto3 JSON, fields with default values included, so that programs find every key.

use decree::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use thiserror::Error;

/// Why a message cannot be written. It takes a contract that contradicts itself.
#[derive(Debug, Error)]
pub(crate) enum JsonError {
    #[error("the contract cannot be read: {0}")]
    Contract(#[from] prost_reflect::DescriptorError),
    #[error("the contract has no message {0}")]
    Unknown(&'static str),
    #[error("the message cannot be read again: {0}")]
    Decode(#[from] prost::DecodeError),
    #[error("the message cannot be written: {0}")]
    Write(#[from] serde_json::Error),
}

/// Writes messages of one type.
#[derive(Debug)]
pub(crate) struct Writer {
    descriptor: prost_reflect::MessageDescriptor,
}

// === impl Writer ===

impl Writer {
    /// Returns the writer for the message `name` of `decree.v1`.
    pub(crate) fn new(name: &'static str) -> Result<Self, JsonError> {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET)?;
        let descriptor = pool
            .get_message_by_name(&format!("decree.v1.{name}"))
            .ok_or(JsonError::Unknown(name))?;
        Ok(Self { descriptor })
    }

    /// Returns a message as JSON.
    pub(crate) fn value(&self, message: &impl Message) -> Result<serde_json::Value, JsonError> {
        let bytes = message.encode_to_vec();
        let message = DynamicMessage::decode(self.descriptor.clone(), bytes.as_slice())?;
        let options = SerializeOptions::new().skip_default_fields(false);
        Ok(message.serialize_with_options(serde_json::value::Serializer, &options)?)
    }
}

/// Returns one message of a type as JSON.
pub(crate) fn value(
    name: &'static str,
    message: &impl Message,
) -> Result<serde_json::Value, JsonError> {
    Writer::new(name)?.value(message)
}

// === impl JsonError ===

impl From<JsonError> for crate::exit::Failure {
    fn from(error: JsonError) -> Self {
        Self::new(crate::exit::Exit::No, error.to_string())
    }
}
