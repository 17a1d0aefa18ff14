//! Messages of the contract in canonical proto3 JSON, fields with default values included, so that programs find every key.

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde::Serializer;
use thiserror::Error;

/// Why a message cannot be written as JSON.
#[derive(Debug, Error)]
pub enum JsonError {
    /// `decree.v1` has no message of this name.
    #[error("the contract has no message {0}")]
    Unknown(String),
    /// The bytes do not belong to a message of this type.
    #[error("the message cannot be read again: {0}")]
    Decode(#[from] prost::DecodeError),
    /// JSON cannot express a value, such as a time after the year 9999.
    #[error("the message cannot be written: {0}")]
    Write(#[from] serde_json::Error),
}

/// Writes messages of the contract, by their names in `decree.v1`.
#[derive(Clone, Debug)]
pub struct Json(DescriptorPool);

impl Default for Json {
    fn default() -> Self {
        let pool = DescriptorPool::decode(crate::FILE_DESCRIPTOR_SET);
        Self(pool.expect("the contract was compiled from these descriptors"))
    }
}

impl Json {
    /// A message as a JSON value.
    ///
    /// # Errors
    /// If there is no message of this name, or JSON cannot express a value.
    pub fn value(
        &self,
        name: &str,
        message: &impl Message,
    ) -> Result<serde_json::Value, JsonError> {
        self.write(name, message, serde_json::value::Serializer)
    }

    /// A message as JSON text on one line.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn text(&self, name: &str, message: &impl Message) -> Result<String, JsonError> {
        let mut text = Vec::new();
        self.write(name, message, &mut serde_json::Serializer::new(&mut text))?;
        // JSON text is always valid UTF-8.
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn write<S: Serializer<Error = serde_json::Error>>(
        &self,
        name: &str,
        message: &impl Message,
        to: S,
    ) -> Result<S::Ok, JsonError> {
        let descriptor = self.0.get_message_by_name(&format!("decree.v1.{name}"));
        let descriptor = descriptor.ok_or_else(|| JsonError::Unknown(name.to_owned()))?;
        let bytes = message.encode_to_vec();
        let message = DynamicMessage::decode(descriptor, bytes.as_slice())?;
        let options = SerializeOptions::new().skip_default_fields(false);
        Ok(message.serialize_with_options(to, &options)?)
    }
}
