//! Where the server learns the time; the core is told.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use server_core::{Span, Timestamp};

/// Returns the wall clock's time.
pub(crate) fn now() -> Timestamp {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => Timestamp(nanos(since)),
        Err(before) => Timestamp(-nanos(before.duration())),
    }
}

/// Returns how long to wait from `now` until `due`; nothing if it has passed.
pub(crate) fn until(now: Timestamp, due: Timestamp) -> Duration {
    Duration::from_nanos(u64::try_from(due.since(now).0).unwrap_or(0))
}

/// Returns a span of the core for a duration.
pub(crate) fn span(duration: Duration) -> Span {
    Span(nanos(duration))
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
