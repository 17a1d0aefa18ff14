//! Messages of the contract as the pages read them, which is as `decree -o json` prints them.

use prost::Message;

/// Writes messages of the contract.
#[derive(Debug, Default)]
pub(crate) struct Json(decree::json::Json);

// === impl Json ===

impl Json {
    /// Returns a message by its name in `decree.v1`. What JSON cannot say, such as a time after the year 9999, makes it `null`.
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
