//! Waits that grow after each failure, with jitter from a seed; and rates.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// A wait that doubles from `min` to `max`. Each wait is drawn from the upper half of its step, so that many agents do not reconnect to a
/// lost server at the same time.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    min: Duration,
    pub(crate) max: Duration,
    failures: u32,
    random: u64,
}

impl Backoff {
    pub(crate) const fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Self {
            min,
            max,
            failures: 0,
            random: seed,
        }
    }

    pub(crate) fn next_wait(&mut self) -> Duration {
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

    pub(crate) const fn reset(&mut self) {
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
#[must_use]
pub fn since(now: Timestamp, earlier: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(earlier)).unwrap_or_default()
}

pub mod token_bucket;

#[cfg(test)]
mod tests {
    use super::*;

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
    fn seed_decides_the_waits() {
        let waits = |seed| {
            let mut backoff = Backoff::new(MIN, MAX, seed);
            (0..8).map(|_| backoff.next_wait()).collect::<Vec<_>>()
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }
}
