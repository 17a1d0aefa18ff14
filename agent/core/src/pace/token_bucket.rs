//! A token bucket: a burst after a rest, and then a rate.

use std::time::Duration;

use jiff::Timestamp;

use super::{after, since};

/// A bucket of tokens that fills at a rate. Its only state is the time when it will be full.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    every: Duration,
    burst: u32,
    full: Timestamp,
}

impl TokenBucket {
    /// Creates a full bucket of at least one token, with one new token per interval.
    #[must_use]
    pub const fn new(every: Duration, burst: u32) -> Self {
        Self {
            every,
            burst,
            full: Timestamp::MIN,
        }
    }

    /// When the next token is available, `now` at the earliest.
    pub(crate) fn next(&self, now: Timestamp) -> Timestamp {
        let ahead = self.every.saturating_mul(self.burst.saturating_sub(1));
        let next = self.full.checked_sub(ahead).unwrap_or(Timestamp::MIN);
        next.max(now)
    }

    /// Takes a token if there is one.
    pub fn try_take(&mut self, now: Timestamp) -> bool {
        let there = self.next(now) <= now;
        if there {
            self.take(now);
        }
        there
    }

    /// Takes a token, in advance if need be. Returns how long to wait for the token; earlier callers wait less.
    pub fn take(&mut self, now: Timestamp) -> Duration {
        let wait = since(self.next(now), now);
        self.full = after(self.full.max(now), self.every);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = TokenBucket::new(Duration::from_millis(100), 2);
        for wait in [0, 0, 100, 200] {
            assert_eq!(bucket.take(START), Duration::from_millis(wait));
        }
        assert!(!bucket.try_take(START) && bucket.try_take(at(1)));
    }

    #[test]
    fn some_are_at_once_and_then_one_each_interval() {
        let mut bucket = TokenBucket::new(Duration::from_secs(10), 3);
        let mut now = START;
        for due in [0, 0, 0, 10, 20, 30] {
            now = bucket.next(now);
            assert_eq!(now, at(due));
            assert!(bucket.try_take(now));
        }
        assert_eq!(bucket.next(at(45)), at(45), "one interval of rest");
        bucket.take(at(45));
        assert_eq!(bucket.next(at(45)), at(50));
        assert_eq!(bucket.next(at(90)), at(90), "rested");
    }
}
