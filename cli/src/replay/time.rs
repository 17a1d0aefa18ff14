//! Times of a recording, as they are printed.

use server_session::Now;

/// The wall clock time in RFC 3339.
pub(super) fn rfc3339(now: Now) -> String {
    jiff::Timestamp::from_nanosecond(now.wall.0.into())
        .map_or_else(|_| "<unknown>".to_owned(), |time| format!("{time:.3}"))
}
