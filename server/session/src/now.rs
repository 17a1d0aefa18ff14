//! The time argument of a session.

use std::time::Duration;

use decree_core::{Span, Timestamp};

/// The longest sleep of a session, so that it notices a change of the wall clock.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// A moment on both clocks.
///
/// The times of the cluster, such as when a pod became ready, are compared with the wall clock, which may jump either way. The times
/// between the two ends of a session (heartbeats, silence) are measured on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The wall clock.
    pub wall: Timestamp,
    /// The monotonic clock: the time since a moment that is fixed for the session.
    pub monotonic: Duration,
}

/// The clock by which a session decides. It follows the wall clock and never goes back, since available pods stay available. If the wall
/// clock is set back, this clock runs at half speed until the wall clock has caught up, so that retries still come due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyClock {
    now: Now,
    time: Timestamp,
}

impl SteadyClock {
    pub(crate) const fn new(now: Now) -> Self {
        Self {
            now,
            time: now.wall,
        }
    }

    /// Takes the latest moment, and returns the time of this clock.
    pub(crate) fn advance(&mut self, now: Now) -> Timestamp {
        let elapsed = now.monotonic.saturating_sub(self.now.monotonic);
        let half = i64::try_from(elapsed.as_nanos().div_ceil(2)).unwrap_or(i64::MAX);
        self.time = now.wall.max(self.time.plus(Span(half)));
        self.now = now;
        self.time
    }

    pub(crate) const fn time(&self) -> Timestamp {
        self.time
    }

    pub(crate) const fn monotonic(&self) -> Duration {
        self.now.monotonic
    }

    /// Returns the monotonic time at which this clock should reach `due`, at most a minute after the latest moment.
    pub(crate) fn reaches(&self, due: Timestamp) -> Duration {
        let ahead = nanos(self.time.since(self.now.wall));
        let wait = nanos(due.since(self.time));
        let wait = wait.saturating_add(wait.min(ahead));
        self.now.monotonic + Duration::from_nanos(wait).min(SLEEP_MAX)
    }
}

fn nanos(span: Span) -> u64 {
    u64::try_from(span.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Now = Now {
        wall: Timestamp::from_seconds(10_000),
        monotonic: Duration::from_secs(5),
    };

    /// Returns the moment after these seconds since the start, by each clock.
    fn after(wall: i64, monotonic: u64) -> Now {
        Now {
            wall: START.wall.plus(Span::seconds(wall)),
            monotonic: START.monotonic + Duration::from_secs(monotonic),
        }
    }

    #[test]
    fn far_due_time_is_looked_at_each_minute_and_past_one_at_once() {
        let clock = SteadyClock::new(START);
        let reaches = |seconds| clock.reaches(START.wall.plus(Span::seconds(seconds)));
        assert_eq!(reaches(3), Duration::from_secs(8));
        assert_eq!(reaches(3_600), Duration::from_secs(65));
        assert_eq!(reaches(-3_600), Duration::from_secs(5));
    }

    #[test]
    fn clock_that_is_set_back_goes_on_at_half_speed_until_the_wall_clock_has_caught_up() {
        let mut clock = SteadyClock::new(START);
        let mut shows = |wall, monotonic| clock.advance(after(wall, monotonic));
        assert_eq!(shows(10, 10), after(10, 0).wall);
        assert_eq!(shows(-3_600, 10), after(10, 0).wall, "set back by an hour");
        assert_eq!(shows(-3_598, 12), after(11, 0).wall);
        assert_eq!(shows(10_000, 13_610), after(10_000, 0).wall);
    }

    #[test]
    fn step_back_at_most_doubles_a_wait_and_a_small_one_is_made_up_for() {
        for (step, due, wait) in [(-3_600, 8, 16), (-2, 30, 32)] {
            let mut clock = SteadyClock::new(START);
            clock.advance(after(step, 0));
            let due = START.wall.plus(Span::seconds(due));
            let monotonic = START.monotonic + Duration::from_secs(wait);
            assert_eq!(clock.reaches(due), monotonic);
            let wall = step + wait.cast_signed();
            assert_eq!(clock.advance(after(wall, wait)), due);
        }
    }
}
