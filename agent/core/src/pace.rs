//! How fast a cluster is asked: the number of calls in flight that it bears, learnt from its answers, and token buckets for
//! those who want a fixed rate.

use std::time::Duration;

use jiff::Timestamp;

use crate::backoff::since;

/// Where learning begins: what a small API server bears.
const LIMIT_START: f64 = 32.0;
/// Below this nothing is won: a few calls must always run, or no answer says that things are better.
const LIMIT_MIN: f64 = 4.0;
/// How slow an answer must be to count as a sign of load: the API server's own goal for writes.
const SLOW: Duration = Duration::from_secs(1);
/// How much slower than usual it must be as well: where an admission webhook takes seconds, seconds say nothing.
const SLOW_FACTOR: u32 = 4;
/// How often the limit falls at most: what is in flight when it falls answers to the old one.
const FALL_EVERY: Duration = Duration::from_secs(1);
/// How long the quickest answer counts as usual.
const USUAL_FOR: Duration = Duration::from_secs(60);

/// Learns how many calls may be in flight: up by one for each round of answers, down by half where the cluster complains. Until
/// it complains for the first time, each answer counts as a round.
#[derive(Debug)]
pub struct Pace {
    limit: f64,
    limit_max: f64,
    complained: bool,
    fell: Option<Timestamp>,
    usual: Option<(Timestamp, Duration)>,
}

/// What an answer tells about load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// How long it took.
    pub took: Duration,
    /// Whether the cluster refused for its load.
    pub throttled: bool,
    /// How many calls were in flight with it.
    pub in_flight: usize,
}

/// A bucket of tokens that fills at a rate.
#[derive(Debug)]
pub struct Bucket {
    per_second: f64,
    burst: f64,
    tokens: f64,
    filled: Option<Timestamp>,
}

// === impl Pace ===

impl Pace {
    /// Returns a pace that allows `limit_max` calls at most.
    #[must_use]
    pub fn new(limit_max: u16) -> Self {
        let limit_max = f64::from(limit_max.max(1));
        Self {
            limit: LIMIT_START.min(limit_max),
            limit_max,
            complained: false,
            fell: None,
            usual: None,
        }
    }

    /// Returns how many calls may be in flight.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 65,535"
    )]
    pub fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Takes an answer.
    pub fn handle_answer(&mut self, now: Timestamp, answered: Answered) {
        let Answered {
            took,
            throttled,
            in_flight,
        } = answered;
        let usual = self.usual(now, took);
        let slow = took > SLOW && usual.saturating_mul(SLOW_FACTOR) < took;
        if throttled || slow {
            self.fall(now);
        } else if in_flight.saturating_mul(2) >= self.limit() {
            // A limit that is not reached teaches nothing.
            let step = if self.complained {
                1.0 / self.limit
            } else {
                1.0
            };
            self.limit = (self.limit + step).min(self.limit_max);
        }
    }

    fn fall(&mut self, now: Timestamp) {
        if self.fell.is_some_and(|fell| since(now, fell) < FALL_EVERY) {
            return;
        }
        self.complained = true;
        self.fell = Some(now);
        self.limit = (self.limit / 2.0).max(LIMIT_MIN.min(self.limit_max));
    }

    /// Returns how long the quickest answer of late took.
    fn usual(&mut self, now: Timestamp, took: Duration) -> Duration {
        let known = self.usual.filter(|(from, _)| since(now, *from) < USUAL_FOR);
        let (from, quickest) = known.unwrap_or((now, took));
        let quickest = quickest.min(took);
        self.usual = Some((from, quickest));
        quickest
    }
}

// === impl Bucket ===

impl Bucket {
    /// Returns a full bucket.
    #[must_use]
    pub fn new(per_second: f64, burst: f64) -> Self {
        let burst = burst.max(1.0);
        Self {
            per_second,
            burst,
            tokens: burst,
            filled: None,
        }
    }

    /// Takes a token if there is one.
    pub fn try_take(&mut self, now: Timestamp) -> bool {
        self.fill(now);
        let there = self.tokens >= 1.0;
        if there {
            self.tokens -= 1.0;
        }
        there
    }

    /// Takes a token that there may not be yet. Returns how long to wait for it; who asks first waits least.
    pub fn take(&mut self, now: Timestamp) -> Duration {
        self.fill(now);
        self.tokens -= 1.0;
        Duration::try_from_secs_f64((-self.tokens).max(0.0) / self.per_second)
            .unwrap_or(Duration::MAX)
    }

    fn fill(&mut self, now: Timestamp) {
        let elapsed = self
            .filled
            .map_or(Duration::ZERO, |filled| since(now, filled));
        self.filled = Some(now);
        self.tokens = (self.tokens + elapsed.as_secs_f64() * self.per_second).min(self.burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::after;

    const QUICK: Duration = Duration::from_millis(5);
    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn second(number: u64) -> Timestamp {
        after(START, Duration::from_secs(number))
    }

    fn answer(took: Duration, throttled: bool, in_flight: usize) -> Answered {
        Answered {
            took,
            throttled,
            in_flight,
        }
    }

    #[test]
    fn limit_grows_to_the_most_while_nothing_complains() {
        let mut pace = Pace::new(256);
        assert_eq!(pace.limit(), 32);
        for _ in 0..1_000 {
            pace.handle_answer(START, answer(QUICK, false, pace.limit()));
        }
        assert_eq!(pace.limit(), 256);
    }

    #[test]
    fn limit_that_is_not_reached_does_not_grow() {
        let mut pace = Pace::new(256);
        pace.handle_answer(START, answer(QUICK, false, 3));
        assert_eq!(pace.limit(), 32);
    }

    #[test]
    fn complaints_halve_the_limit_once_a_second_and_leave_a_few() {
        let mut pace = Pace::new(256);
        for _ in 0..50 {
            pace.handle_answer(START, answer(QUICK, true, 32));
        }
        assert_eq!(pace.limit(), 16);
        for at in 1..10 {
            pace.handle_answer(second(at), answer(QUICK, true, 16));
        }
        assert_eq!(pace.limit(), 4);
    }

    #[test]
    fn limit_recovers_by_one_a_round_after_a_complaint() {
        let mut pace = Pace::new(256);
        pace.handle_answer(START, answer(QUICK, true, 32));
        for _ in 0..17 {
            pace.handle_answer(START, answer(QUICK, false, 16));
        }
        assert_eq!(pace.limit(), 17);
    }

    #[test]
    fn slow_answer_is_a_complaint_only_where_answers_are_quick() {
        let slow = Duration::from_secs(3);
        let mut webhook = Pace::new(256);
        for _ in 0..4 {
            webhook.handle_answer(START, answer(slow, false, 32));
        }
        assert_eq!(webhook.limit(), 36);

        let mut pace = Pace::new(256);
        pace.handle_answer(START, answer(Duration::from_millis(1_100), false, 1));
        pace.handle_answer(START, answer(Duration::from_secs(5), false, 32));
        assert_eq!(pace.limit(), 16);
    }

    #[test]
    fn bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(10.0, 2.0);
        assert_eq!(bucket.take(START), Duration::ZERO);
        assert_eq!(bucket.take(START), Duration::ZERO);
        assert_eq!(bucket.take(START), Duration::from_millis(100));
        assert_eq!(bucket.take(START), Duration::from_millis(200));
        assert!(!bucket.try_take(START));
        assert!(bucket.try_take(second(1)));
    }
}
