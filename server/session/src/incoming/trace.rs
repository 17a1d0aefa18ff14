//! Replaces the trace contexts in a frame in place.

use decree::{TraceContext, v1};
use prost::Message;

use super::items::{Item, Items, List};
use crate::wire::{EVENT_TRACEPARENT, OBJECT_BYTES_MAX, OUTCOME_TRACEPARENT, text_of_field};

/// Returns the bytes of a frame with other trace contexts in this list; `None` if `begin` returned none. All trace contexts have the same
/// length, so nothing else changes.
pub(super) fn write(
    frame: &[u8],
    list: List,
    mut begin: impl FnMut(TraceContext, Option<&v1::Outcome>) -> Option<TraceContext>,
) -> Option<Vec<u8>> {
    let mut written = None;
    // An invalid item ends the list. The session refuses it later.
    for item in Items::new(frame, list).map_while(Result::ok) {
        let text = match item {
            Item::Pod(_) | Item::ReplicaSet(_) => return None,
            Item::Event(event) => text_of_field(event, EVENT_TRACEPARENT),
            Item::Outcome(outcome) => text_of_field(outcome, OUTCOME_TRACEPARENT),
        };
        let text = text.filter(|text| text.len() == TraceContext::LENGTH);
        let Some((text, place)) = text.and_then(|text| Some((text, TraceContext::parse(text)?)))
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
    written
}

#[cfg(test)]
mod tests;
