//! The time, as a session is told it.

use std::time::Duration;

use server_core::Timestamp;

/// How long a session sleeps at most, so that a wall clock that was set is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// A moment on both clocks.
///
/// The cluster's own times (when a pod became ready) are compared with the wall clock, which may jump either way. What passes
/// between the two ends of a session (heartbeats, silence) is measured on the monotonic one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The wall clock.
    pub wall: Timestamp,
    /// The monotonic clock: how long it is since a moment that stays the same while the session lives.
    pub monotonic: Duration,
}

// === impl Now ===

impl Now {
    /// Returns when the monotonic clock shows that the wall clock should have reached `due`, at most a minute from this moment.
    pub(crate) fn reaches(self, due: Timestamp) -> Duration {
        let wait = u64::try_from(due.since(self.wall).0).unwrap_or(0);
        self.monotonic + Duration::from_nanos(wait).min(SLEEP_MAX)
    }
}

#[cfg(test)]
mod tests {
    use server_core::Span;

    use super::*;

    #[test]
    fn far_due_time_is_looked_at_each_minute_and_past_one_at_once() {
        let now = Now {
            wall: Timestamp::from_seconds(1_000),
            monotonic: Duration::from_secs(5),
        };
        let reaches = |seconds| now.reaches(now.wall.plus(Span::seconds(seconds)));
        assert_eq!(reaches(3), Duration::from_secs(8));
        assert_eq!(reaches(3_600), Duration::from_secs(65));
        assert_eq!(reaches(-3_600), Duration::from_secs(5));
    }
}
