//! How often at most: some at once after a rest, and then one each interval.

use std::time::Duration;

use jiff::Timestamp;

use crate::backoff::after;

/// A pace, of which no more is known than until when it is spoken for.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    every: Duration,
    at_once: u32,
    /// When as many may be at once again as after a rest.
    rested: Timestamp,
}

// === impl Pace ===

impl Pace {
    /// Returns a pace of one each interval, and so many at once after a rest; at least one.
    pub(crate) const fn new(every: Duration, at_once: u32) -> Self {
        Self {
            every,
            at_once,
            rested: Timestamp::MIN,
        }
    }

    /// Returns when the next may be, `now` at the earliest.
    pub(crate) fn next(&self, now: Timestamp) -> Timestamp {
        let ahead = self.every.saturating_mul(self.at_once.saturating_sub(1));
        let next = self.rested.checked_sub(ahead).unwrap_or(Timestamp::MIN);
        next.max(now)
    }

    /// Notes that one is now.
    pub(crate) fn take(&mut self, now: Timestamp) {
        self.rested = after(self.rested.max(now), self.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn at(seconds: u64) -> Timestamp {
        after(START, Duration::from_secs(seconds))
    }

    #[test]
    fn some_are_at_once_and_then_one_each_interval() {
        let mut pace = Pace::new(Duration::from_secs(10), 3);
        let mut now = START;
        let times: Vec<_> = (0..6)
            .map(|_| {
                now = pace.next(now);
                pace.take(now);
                now
            })
            .collect();
        assert_eq!(times, [0, 0, 0, 10, 20, 30].map(at));
        assert_eq!(pace.next(at(45)), at(45), "one interval of rest, one more");
        pace.take(at(45));
        assert_eq!(pace.next(at(45)), at(50));
        assert_eq!(pace.next(at(90)), at(90), "rested");
    }
}
