//! What other controllers did otherwise, as shadow mode found it.

use std::sync::Arc;

use decree::v1;

use super::{console_state::ConsoleState, event::event, reader::Reader};
use crate::{access::Caller, error::Refusal, inspection::Inspection};

/// What was sent of the differences.
#[derive(Debug, Default)]
pub(super) struct Differences {
    sent: String,
}

// === impl Differences ===

impl Differences {
    /// Sends the differences, if there are others than before.
    pub(super) async fn poll(
        &mut self,
        state: &ConsoleState,
        caller: &Caller,
        reader: &mut Reader,
    ) -> Result<(), Refusal> {
        let inspection = Inspection(Arc::clone(&state.shared));
        let request = v1::ListDifferencesRequest::default();
        let found = inspection.differences(caller.clone(), request).await?;
        let text = state.json.text("ListDifferencesResponse", &found);
        if text != self.sent {
            reader.send(event("differences", &text)).await;
            self.sent = text;
        }
        Ok(())
    }
}
