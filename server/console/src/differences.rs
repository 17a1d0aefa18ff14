//! The actions in which other controllers differed, as shadow mode found them.

use decree::v1;

use crate::{
    answer::Refused, backend::Caller, console_state::ConsoleState, event::event, reader::PageReader,
};

/// The differences that a reader has.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    sent: String,
}

// === impl Differences ===

impl Differences {
    /// Sends the differences if they have changed.
    pub(crate) async fn poll(
        &mut self,
        state: &ConsoleState,
        caller: &Caller,
        reader: &mut PageReader,
    ) -> Result<(), Refused> {
        let request = v1::ListDifferencesRequest::default();
        let found = state.server.list_differences(caller, request).await?;
        let text = state.json.text("ListDifferencesResponse", &found);
        if text != self.sent {
            reader.send(event("differences", &text)).await;
            self.sent = text;
        }
        Ok(())
    }
}
