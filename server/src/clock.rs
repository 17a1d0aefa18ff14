//! Where the server learns the time; sessions and the core are given it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use server_core::Timestamp;
use server_session::Now;
use tokio::time::Instant;

/// The clocks of one session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

// === impl Clock ===

impl Clock {
    /// Returns clocks whose monotonic one begins at 0.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time on both.
    pub(crate) fn now(self) -> Now {
        Now {
            wall: now(),
            monotonic: self.0.elapsed(),
        }
    }

    /// Returns when the monotonic one shows this time.
    pub(crate) fn instant(self, monotonic: Duration) -> Instant {
        self.0 + monotonic
    }
}

/// Returns the wall clock's time.
pub(crate) fn now() -> Timestamp {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => Timestamp(nanos(since)),
        Err(before) => Timestamp(-nanos(before.duration())),
    }
}

/// Returns the wall clock's time in seconds since 1970.
pub(crate) fn seconds() -> i64 {
    now().0.div_euclid(1_000_000_000)
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
