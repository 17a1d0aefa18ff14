//! Replaces the trace contexts in a frame in place.

use decree::{TraceContext, v1};
use prost::Message;

use super::{IncomingFrame, Item};
use crate::wire::{EVENT_TRACEPARENT, OBJECT_BYTES_MAX, OUTCOME_TRACEPARENT, text_of_field};

// === impl IncomingFrame ===

impl IncomingFrame {
    /// Replaces the span context of each event and outcome by the one that `begin` returns for it; `begin` also gets the outcome.
    ///
    /// The items are read only as far as necessary. A span context in another format stays unchanged. So does an item that is no message,
    /// which the session refuses later.
    pub fn trace(
        &mut self,
        mut begin: impl FnMut(TraceContext, Option<&v1::Outcome>) -> Option<TraceContext>,
    ) {
        let Some(list) = self.head().ok().and_then(|head| head.list) else {
            return;
        };
        // All trace contexts have the same length, so nothing else changes.
        let (frame, mut written) = (&self.0, None);
        for item in self.items(list).map_while(Result::ok) {
            let text = match item {
                Item::Pod(_) | Item::ReplicaSet(_) => return,
                Item::Event(event) => text_of_field(event, EVENT_TRACEPARENT),
                Item::Outcome(outcome) => text_of_field(outcome, OUTCOME_TRACEPARENT),
            };
            let text = text.filter(|text| text.len() == TraceContext::LENGTH);
            let Some((text, place)) =
                text.and_then(|text| Some((text, TraceContext::parse(text)?)))
            else {
                continue;
            };
            let outcome = match item {
                Item::Outcome(outcome) if outcome.len() > OBJECT_BYTES_MAX => continue,
                Item::Outcome(outcome) => v1::Outcome::decode(outcome).map(Some),
                Item::Pod(_) | Item::ReplicaSet(_) | Item::Event(_) => Ok(None),
            };
            let Ok(outcome) = outcome else { continue };
            if let Some(child) = begin(place, outcome.as_ref()) {
                let from = text.as_ptr().addr() - frame.as_ptr().addr();
                let written = written.get_or_insert_with(|| frame.to_vec());
                written[from..from + text.len()].copy_from_slice(child.to_string().as_bytes());
            }
        }
        if let Some(written) = written {
            self.0 = written.into();
        }
    }
}

#[cfg(test)]
mod tests;
