//! The clocks of a machine, relative to the clock of the cluster.

use jiff::{SignedDuration, Timestamp};

/// The unit of a machine's drift: drift is counted in millionths.
const ONE: i128 = 1_000_000;

/// The clocks of one process: a wall clock, which may be wrong and may be set, and a monotonic clock, which starts with the
/// process. Both run at the speed of their machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    begun: Timestamp,
    /// The reading of the clocks at the start of the process.
    showed: Timestamp,
    /// The speed relative to the clock of the cluster, in millionths above 1.
    drift: i32,
    /// The sum of the changes to the wall clock since the start.
    set: SignedDuration,
}

impl Clock {
    /// Returns the clocks of a process that starts now on a machine whose clock is ahead by `offset` and drifts by `drift`
    /// millionths.
    pub fn new(now: Timestamp, offset: SignedDuration, drift: i32) -> Self {
        Self {
            begun: now,
            showed: now + offset,
            drift,
            set: SignedDuration::ZERO,
        }
    }

    /// Sets the wall clock to the time of the cluster plus `offset`.
    pub fn set(&mut self, now: Timestamp, offset: SignedDuration) {
        self.set = (now + offset).duration_since(self.monotonic(now));
    }

    /// Returns the monotonic clock at a time of the cluster.
    pub fn monotonic(&self, now: Timestamp) -> Timestamp {
        let passed = now.duration_since(self.begun).as_nanos();
        let shown = passed + passed * i128::from(self.drift) / ONE;
        bounded(self.showed.as_nanosecond() + shown)
    }

    /// Returns the wall clock at a time of the cluster.
    pub fn wall(&self, now: Timestamp) -> Timestamp {
        self.monotonic(now) + self.set
    }

    /// Returns the first time of the cluster at which the wall clock shows `shown` or later, unless the clock is set.
    pub fn when_wall(&self, shown: Timestamp) -> Timestamp {
        let shown = shown.as_nanosecond() - self.set.as_nanos();
        self.when_monotonic(bounded(shown))
    }

    /// Returns the first time of the cluster at which the monotonic clock shows `shown` or later, to the nanosecond.
    pub fn when_monotonic(&self, shown: Timestamp) -> Timestamp {
        let passed = shown.as_nanosecond() - self.showed.as_nanosecond();
        let speed = ONE + i128::from(self.drift);
        // Rounded up, so that the deadline has passed when the process is polled.
        let passed = -(-passed * ONE).div_euclid(speed) + i128::from(self.drift != 0);
        bounded(self.begun.as_nanosecond() + passed)
    }
}

fn bounded(nanoseconds: i128) -> Timestamp {
    let extreme = if nanoseconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_nanosecond(nanoseconds).unwrap_or(extreme)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN: Timestamp = Timestamp::UNIX_EPOCH;

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    #[test]
    fn setting_moves_the_wall_clock_alone() {
        let mut clock = Clock::new(BEGUN, seconds(5), 0);
        clock.set(BEGUN + seconds(10), seconds(-3600));
        let now = BEGUN + seconds(20);
        assert_eq!(clock.monotonic(now), BEGUN + seconds(25));
        assert_eq!(clock.wall(now), BEGUN + seconds(20 - 3600));
    }

    #[test]
    fn fast_clock_shows_more_and_is_due_earlier() {
        let clock = Clock::new(BEGUN, seconds(0), 10_000);
        let now = BEGUN + seconds(100);
        assert_eq!(clock.monotonic(now), BEGUN + seconds(101));
        let due = clock.when_monotonic(BEGUN + seconds(101));
        assert!(due >= now && due.duration_since(now) <= SignedDuration::from_nanos(2));
    }

    #[test]
    fn what_is_due_is_shown_when_it_is_due() {
        for drift in [-10_000, -7, 0, 3, 9_999, 400_000] {
            let clock = Clock::new(BEGUN, seconds(-7), drift);
            for nanoseconds in [1, 999, 1_000_000_007, 86_400_000_000_123] {
                let shown = BEGUN + SignedDuration::from_nanos(nanoseconds);
                assert!(
                    clock.monotonic(clock.when_monotonic(shown)) >= shown,
                    "{drift}"
                );
            }
        }
    }

    #[test]
    fn what_is_never_due_or_long_overdue_stays_so() {
        let clock = Clock::new(BEGUN, seconds(0), 10_000);
        assert!(clock.when_monotonic(Timestamp::MIN) < BEGUN);
        assert!(clock.when_monotonic(Timestamp::MAX) > BEGUN + seconds(1_000_000_000));
    }
}
