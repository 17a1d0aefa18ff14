//! Server-sent events: a name, and one line of JSON.

use bytes::Bytes;
use serde_json::json;

use super::answer;
use crate::{clock, error::Refusal};

/// Returns an event. JSON has no line breaks, so its data is one line.
pub(super) fn event(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// Returns the event that says that the server is there, and what time it has.
pub(super) fn ping() -> Bytes {
    event("ping", &json!({"seconds": clock::seconds()}).to_string())
}

/// Returns the last event of a stream.
pub(super) fn end(why: &Refusal) -> Bytes {
    event("end", &answer::text(why))
}

/// Returns the last event of a stream that gave way to another.
pub(super) fn displaced() -> Bytes {
    let message = "another page took the place of this one";
    let data = json!({"reason": "DISPLACED", "message": message});
    event("end", &data.to_string())
}
