//! Messages of the contract in canonical proto3 JSON, fields with default values included, so that programs find every key.

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde::ser::{Error as _, Serializer};

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
    /// If the message is not of this name, or JSON cannot express a value, such as a time after the year 9999.
    pub fn value(
        &self,
        name: &str,
        message: &impl Message,
    ) -> serde_json::Result<serde_json::Value> {
        self.write(name, message, serde_json::value::Serializer)
    }

    /// A message as JSON text on one line.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn text(&self, name: &str, message: &impl Message) -> serde_json::Result<String> {
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
    ) -> serde_json::Result<S::Ok> {
        let descriptor = self.0.get_message_by_name(&format!("decree.v1.{name}"));
        let unknown = || S::Error::custom(format!("the contract has no message {name}"));
        let descriptor = descriptor.ok_or_else(unknown)?;
        let bytes = message.encode_to_vec();
        let message = DynamicMessage::decode(descriptor, bytes.as_slice());
        let message = message.map_err(S::Error::custom)?;
        let options = SerializeOptions::new().skip_default_fields(false);
        message.serialize_with_options(to, &options)
    }
}
