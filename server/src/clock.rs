//! The only source of time in the server. Sessions and the core get the time as an argument.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use decree_core::Timestamp;
use server_session::Now;
use tokio::time::Instant;

/// The clocks of one session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// Starts the monotonic clock at 0.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Now {
        Now {
            wall: now(),
            monotonic: self.0.elapsed(),
        }
    }

    /// The instant at which the monotonic clock shows this time.
    pub(crate) fn instant(self, monotonic: Duration) -> Instant {
        self.0 + monotonic
    }
}

/// The time of the wall clock.
pub(crate) fn now() -> Timestamp {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => Timestamp(nanos(since)),
        Err(before) => Timestamp(-nanos(before.duration())),
    }
}

/// The wall clock in seconds since 1970.
pub(crate) fn seconds() -> i64 {
    now().0.div_euclid(1_000_000_000)
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
