//! The recent work of a peer or a connection, from which its steps have to wait for a permit.

use std::time::{Duration, Instant};

/// The recent work that makes the sessions of a peer, or a connection, busy.
const BUSY: Duration = Duration::from_micros(250);
/// The maximum of the recent work, so that a peer is not busy for long after a long step.
const USED_MAX: Duration = Duration::from_millis(1);
/// One part in this many of the time at rest is credited, so a peer that works less than that is never busy.
const RECOVERY: u32 = 4;

/// The recent work of the sessions of a peer, or of a connection.
#[derive(Debug)]
pub(crate) struct Usage {
    time: Duration,
    /// The end of the time that is already counted.
    until: Instant,
}

// === impl Usage ===

impl Usage {
    pub(crate) fn is_busy(&mut self, now: Instant) -> bool {
        self.rest(now);
        self.time >= BUSY
    }

    /// Counts a step, up to `step_max`, and the rest before it.
    pub(crate) fn work(&mut self, begun: Instant, now: Instant, step_max: Duration) {
        self.rest(begun);
        let step = now.saturating_duration_since(begun).min(step_max);
        self.time = USED_MAX.min(self.time + step);
        self.until = self.until.max(now);
    }

    /// Counts the time since the last step as one.
    pub(crate) fn work_on(&mut self, now: Instant, step_max: Duration) {
        self.work(self.until, now, step_max);
    }

    /// Credits the time since the last step. There is none while another session of the peer works.
    pub(crate) fn rest(&mut self, now: Instant) {
        let rested = now.saturating_duration_since(self.until);
        self.time = self.time.saturating_sub(rested / RECOVERY);
        self.until = self.until.max(now);
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            time: Duration::ZERO,
            until: Instant::now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_MAX: Duration = Duration::from_micros(500);

    #[test]
    fn peer_that_works_all_the_time_is_busy_and_one_that_rests_is_not() {
        let millisecond = Duration::from_millis(1);
        let mut usage = Usage::default();
        let mut works_and_rests = |work: Duration, rest: Duration| {
            let now = usage.until + work;
            usage.work(usage.until, now, STEP_MAX);
            let was_busy = usage.is_busy(now);
            usage.rest(now + rest);
            was_busy
        };
        for _ in 0..1_000 {
            assert!(!works_and_rests(Duration::from_micros(50), millisecond));
        }
        for _ in 0..100 {
            works_and_rests(millisecond, Duration::ZERO);
        }
        assert!(works_and_rests(millisecond, USED_MAX * RECOVERY));
        assert!(
            !works_and_rests(Duration::ZERO, Duration::ZERO),
            "it recovers"
        );
    }

    #[test]
    fn sessions_of_a_peer_are_busy_together() {
        let (share, all) = (Duration::from_micros(10), Duration::from_millis(1));
        let mut usage = Usage::default();
        let begun = usage.until;
        // A hundred sessions on two threads, each with a hundredth of the time.
        for turn in 0..100 {
            let at = begun + all / 100 * turn;
            usage.work(at, at + share, STEP_MAX);
            usage.work(at, at + share, STEP_MAX);
        }
        assert!(usage.is_busy(begun + all));
    }

    #[test]
    fn step_that_the_kernel_interrupts_counts_as_a_short_one() {
        let mut usage = Usage::default();
        let (begun, end) = (usage.until, usage.until + Duration::from_secs(1));
        usage.work(begun, end, BUSY / 2);
        assert!(!usage.is_busy(end));
    }
}
