//! Waits that grow after each failure, with jitter from a seed; and rates.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// A wait that doubles from `min` to `max`. Each wait is drawn from the upper half of its step, so that many agents do not reconnect to a
/// lost server at the same time.
#[derive(Clone, Debug)]
pub struct Backoff {
    min: Duration,
    pub(crate) max: Duration,
    failures: u32,
    random: u64,
}

impl Backoff {
    /// Creates a backoff that has seen no failure.
    pub const fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Self {
            min,
            max,
            failures: 0,
            random: seed,
        }
    }

    /// Returns the wait after one more failure.
    pub fn next_wait(&mut self) -> Duration {
        let doubled = self
            .min
            .saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1).min(31);
        self.jittered(doubled.min(self.max))
    }

    /// The longest wait, for failures that last.
    pub(crate) fn longest_wait(&mut self) -> Duration {
        self.jittered(self.max)
    }

    /// Forgets the failures.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    fn jittered(&mut self, wait: Duration) -> Duration {
        let half = wait / 2;
        let spread = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX).max(1);
        half + Duration::from_nanos(self.draw() % spread)
    }

    /// Draws from `SplitMix64`. Any seed works, zero included.
    const fn draw(&mut self) -> u64 {
        let drawn = split_mix(self.random);
        self.random = self.random.wrapping_add(SPLIT_MIX_STEP);
        drawn
    }
}

/// The increment of the state of `SplitMix64` per draw.
const SPLIT_MIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

pub(crate) const fn split_mix(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(SPLIT_MIX_STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Saturates at the end of time.
pub(crate) fn after(now: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// Returns the time from `earlier` to `now`, at least zero.
pub fn since(now: Timestamp, earlier: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(earlier)).unwrap_or_default()
}

/// A bucket of tokens that fills at a rate. Its only state is the time when it will be full.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    every: Duration,
    burst: u32,
    full: Timestamp,
}

impl TokenBucket {
    /// Creates a full bucket of at least one token, with one new token per interval.
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

    const MIN: Duration = Duration::from_millis(100);
    const MAX: Duration = Duration::from_secs(2);

    #[test]
    fn waits_double_up_to_the_longest_and_start_over() {
        let mut backoff = Backoff::new(MIN, MAX, 7);
        for step_ms in [100, 200, 400, 800, 1600, 2000, 2000] {
            let step = Duration::from_millis(step_ms);
            let wait = backoff.next_wait();
            assert!(step / 2 <= wait && wait <= step, "{wait:?} of {step:?}");
        }
        assert!((0..100).all(|_| backoff.next_wait() <= MAX));
        backoff.reset();
        assert!(backoff.next_wait() <= MIN);
    }

    /// The first numbers of seed 1234567 are published with the generator.
    #[test]
    fn draws_are_those_of_splitmix64() {
        let mut backoff = Backoff::new(MIN, MAX, 1_234_567);
        for expected in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ] {
            assert_eq!(backoff.draw(), expected);
        }
    }

    #[test]
    fn bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = TokenBucket::new(Duration::from_millis(100), 2);
        for wait in [0, 0, 100, 200] {
            assert_eq!(bucket.take(at(0)), Duration::from_millis(wait));
        }
        assert!(!bucket.try_take(at(0)) && bucket.try_take(at(1)));
    }

    #[test]
    fn some_are_at_once_and_then_one_each_interval() {
        let mut bucket = TokenBucket::new(Duration::from_secs(10), 3);
        let mut now = at(0);
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
