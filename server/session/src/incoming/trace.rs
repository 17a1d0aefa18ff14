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
            let (text, outcome) = match item {
                Item::Pod(_) | Item::ReplicaSet(_) => return,
                Item::Event(event) => (text_of_field(event, EVENT_TRACEPARENT), None),
                Item::Outcome(it) => (text_of_field(it, OUTCOME_TRACEPARENT), Some(it)),
            };
            let text = text.filter(|text| text.len() == TraceContext::LENGTH);
            let place = text.and_then(TraceContext::parse);
            let (Some(text), Some(place)) = (text, place) else {
                continue;
            };
            if outcome.is_some_and(|outcome| outcome.len() > OBJECT_BYTES_MAX) {
                continue;
            }
            let Ok(outcome) = outcome.map(v1::Outcome::decode).transpose() else {
                continue;
            };
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
