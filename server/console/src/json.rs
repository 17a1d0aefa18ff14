//! Messages of the contract in the JSON of the pages, the same as `decree -o json` prints.

use prost::Message;

#[derive(Debug, Default)]
pub(crate) struct Json(decree::json::Json);

// === impl Json ===

impl Json {
    /// A message by its name in `decree.v1`; `null` if JSON cannot express a value, such as a time after the year 9999.
    pub(crate) fn text(&self, name: &str, message: &impl Message) -> String {
        let text = self.0.text(name, message);
        text.unwrap_or_else(|_| "null".to_owned())
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
        let text = Json::default().text("ReplicaSetSummary", &summary);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["state"], "REPLICA_SET_STATE_ACTING");
        assert_eq!(value["operationsInFlight"], 0);
    }
}
