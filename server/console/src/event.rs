//! Server-sent events: a name, and one line of JSON.

use bytes::Bytes;
use serde_json::json;
use server_core::Timestamp;

use crate::answer::Refused;

/// Returns an event. JSON has no line breaks, so its data is one line.
pub(crate) fn event(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// Returns the event that says that the server is there, and what time it has.
pub(crate) fn ping(now: Timestamp) -> Bytes {
    event("ping", &json!({"seconds": seconds(now)}).to_string())
}

/// Returns the last event of a stream.
pub(crate) fn end(why: &Refused) -> Bytes {
    event("end", &why.text())
}

/// Returns the last event of a stream that gave way to another.
pub(crate) fn displaced() -> Bytes {
    let message = "another page took the place of this one";
    let data = json!({"reason": "DISPLACED", "message": message});
    event("end", &data.to_string())
}

/// Returns a time in seconds since 1970.
pub(crate) const fn seconds(time: Timestamp) -> i64 {
    time.0.div_euclid(1_000_000_000)
}
