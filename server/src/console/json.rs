//! Messages of the contract in canonical proto3 JSON, as `decree -o json` prints them.

use decree::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};

/// Writes messages of the contract.
#[derive(Debug)]
pub(super) struct Json(DescriptorPool);

// === impl Json ===

impl Json {
    pub(super) fn new() -> Self {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET);
        Self(pool.expect("the contract was compiled from these descriptors"))
    }

    /// Returns a message by its name in `decree.v1`, fields with default values included. What JSON cannot say, such as a time after the
    /// year 9999, makes it `null`.
    pub(super) fn text(&self, name: &str, message: &impl Message) -> String {
        self.write(name, message)
            .unwrap_or_else(|| "null".to_owned())
    }

    fn write(&self, name: &str, message: &impl Message) -> Option<String> {
        let descriptor = self.0.get_message_by_name(&format!("decree.v1.{name}"))?;
        let bytes = message.encode_to_vec();
        let message = DynamicMessage::decode(descriptor, bytes.as_slice()).ok()?;
        let mut serializer = serde_json::Serializer::new(Vec::new());
        let options = SerializeOptions::new().skip_default_fields(false);
        message
            .serialize_with_options(&mut serializer, &options)
            .ok()?;
        String::from_utf8(serializer.into_inner()).ok()
    }
}

#[cfg(test)]
mod tests {
    use decree::v1;

    use super::*;

    #[test]
    fn messages_have_every_key_and_words_for_enums() {
        let summary = v1::ReplicaSetSummary {
            state: v1::ReplicaSetState::Acting.into(),
            ..v1::ReplicaSetSummary::default()
        };
        let text = Json::new().text("ReplicaSetSummary", &summary);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["state"], "REPLICA_SET_STATE_ACTING");
        assert_eq!(value["operationsInFlight"], 0);
    }
}
