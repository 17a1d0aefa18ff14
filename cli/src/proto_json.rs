//! Messages of the contract as `-o json` prints them.

use decree::json::{Json, JsonError};
use prost::Message;
use serde_json::Value;

use crate::exit::{Exit, Failure};

/// A message as JSON, by its name in `decree.v1`. For many messages, keep a [`Json`].
pub(crate) fn value(name: &str, message: &impl Message) -> Result<Value, JsonError> {
    Json::default().value(name, message)
}

impl From<JsonError> for Failure {
    fn from(error: JsonError) -> Self {
        Self::new(Exit::No, error.to_string())
    }
}
