//! Messages of the contract as `-o json` prints them.

use decree::json::{Json, JsonError};
use prost::Message;

#[derive(Debug)]
pub(crate) struct Writer {
    json: Json,
    name: &'static str,
}

// === impl Writer ===

impl Writer {
    /// The writer for the message `name` of `decree.v1`.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            json: Json::default(),
            name,
        }
    }

    pub(crate) fn value(&self, message: &impl Message) -> Result<serde_json::Value, JsonError> {
        self.json.value(self.name, message)
    }
}

pub(crate) fn value(
    name: &'static str,
    message: &impl Message,
) -> Result<serde_json::Value, JsonError> {
    Writer::new(name).value(message)
}

impl From<JsonError> for crate::exit::Failure {
    fn from(error: JsonError) -> Self {
        Self::new(crate::exit::Exit::No, error.to_string())
    }
}
