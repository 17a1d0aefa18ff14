//! Server-sent events: a name, and one line of JSON.

use bytes::Bytes;
use serde_json::json;
use server_core::Timestamp;
use service::escaped_json;

use crate::answer::Refused;

/// JSON has no line breaks, so the data is one line. A terminal may show it.
pub(crate) fn event(name: &str, data: &str) -> Bytes {
    let data = escaped_json(data);
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// The event that the server is reachable, with its time.
pub(crate) fn ping(now: Timestamp) -> Bytes {
    event("ping", &json!({"seconds": seconds(now)}).to_string())
}

pub(crate) fn end(why: &Refused) -> Bytes {
    event("end", &why.text())
}

pub(crate) const fn seconds(time: Timestamp) -> i64 {
    time.0.div_euclid(1_000_000_000)
}
