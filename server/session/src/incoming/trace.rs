//! The places in traces that a frame names, written over where they stand.

use bytes::Bytes;
use decree::{
    TraceContext,
    v1::{self, reconcile_request::Frame},
};

use super::items::{Items, List};
use crate::wire::{EVENT_TRACEPARENT, OUTCOME_TRACEPARENT, text_of_field};

/// Does it in a message.
pub(super) fn frame(
    request: &mut v1::ReconcileRequest,
    mut begin: impl FnMut(TraceContext, Option<&v1::Outcome>) -> Option<TraceContext>,
) {
    if let Some(Frame::Events(events)) = &mut request.frame {
        for event in &mut events.events {
            let place = TraceContext::parse(&event.traceparent);
            if let Some(child) = place.and_then(|place| begin(place, None)) {
                event.traceparent = child.to_string();
            }
        }
    } else if let Some(Frame::Outcomes(outcomes)) = &mut request.frame {
        for outcome in &mut outcomes.outcomes {
            let place = TraceContext::parse(&outcome.traceparent);
            if let Some(child) = place.and_then(|place| begin(place, Some(outcome))) {
                outcome.traceparent = child.to_string();
            }
        }
    }
}

/// Does it in the bytes of items. All places have the same length, so that nothing else changes.
pub(super) fn items(
    items: &mut Items,
    mut begin: impl FnMut(TraceContext, Option<&v1::Outcome>) -> Option<TraceContext>,
) {
    let field = match items.list() {
        List::Objects => return,
        List::Events => EVENT_TRACEPARENT,
        List::Outcomes => OUTCOME_TRACEPARENT,
    };
    let mut written = None;
    for item in items.iter() {
        // What is no item ends the list: it is refused when the frame is taken.
        let Ok(item) = item else { break };
        let Some(text) = text_of_field(item.bytes, field) else {
            continue;
        };
        let place = TraceContext::parse(text);
        let Some(place) = place.filter(|_| text.len() == TraceContext::LENGTH) else {
            continue;
        };
        let outcome = match items.list() {
            List::Outcomes => item.outcome().map(Some),
            List::Objects | List::Events => Ok(None),
        };
        let Ok(outcome) = outcome else { continue };
        if let Some(child) = begin(place, outcome.as_ref()) {
            let from = text.as_ptr().addr() - items.bytes.as_ptr().addr();
            let bytes = written.get_or_insert_with(|| items.bytes.to_vec());
            bytes[from..from + text.len()].copy_from_slice(child.to_string().as_bytes());
        }
    }
    if let Some(bytes) = written {
        items.bytes = Bytes::from(bytes);
    }
}

#[cfg(test)]
mod tests;
