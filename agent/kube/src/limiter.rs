//! How many calls may be in flight, learnt from their answers.
//!
//! The limit rises by one in a round of answers and falls by half, as in TCP: after a refusal for load, and after an answer of a second that
//! took many times longer than the quickest of late. [`KubeCluster::calls_max`](crate::KubeCluster) tells the agent, which begins no more calls.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{api::ApiError, pace::since};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::clock::Clock;

/// The first limit: the capacity of a small API server.
const LIMIT_START: f64 = 32.0;
/// The limit rises by this many in a round until it falls for the first time.
const FIRST_ROUNDS: f64 = 16.0;
/// A lower limit gains nothing: a few calls must always run, or no answer shows an improvement.
const LIMIT_MIN: f64 = 4.0;
/// The latency of an answer that is a sign of overload, if quick answers are usual: the API server's own goal for writes.
const OVERLOADED: Duration = Duration::from_secs(1);
/// How many times longer than the quickest answer such an answer takes.
const SLOW_FACTOR: u32 = 8;
/// The shortest time between two falls of the limit: calls in flight at a fall reflect the old limit.
const FALL_EVERY: Duration = Duration::from_secs(1);
/// How long the quickest answer counts as usual, at least; at most twice that.
const USUAL_FOR: Duration = Duration::from_secs(60);

/// The limit of calls in flight.
#[derive(Debug)]
pub(crate) struct Limiter {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: f64,
    limit_max: f64,
    in_flight: u32,
    /// When the limit last fell.
    fell: Option<Timestamp>,
    /// By verb: a create that passes webhooks takes longer than a read, without any load.
    usual: BTreeMap<&'static str, Usual>,
}

/// The quickest answers to calls of a verb: of this period, and of this and the previous one.
#[derive(Clone, Copy, Debug)]
struct Usual {
    since: Timestamp,
    of_period: Duration,
    quickest: Duration,
}

/// A call in flight.
pub(crate) struct Permit<'a> {
    limiter: &'a Limiter,
    begun: Instant,
}

impl Limiter {
    pub(crate) fn new(calls_max: u16) -> Self {
        let limit_max = f64::from(calls_max.max(1));
        Self {
            clock: Clock::starting_at(Timestamp::now()),
            state: Mutex::new(State {
                limit: LIMIT_START.min(limit_max),
                limit_max,
                in_flight: 0,
                fell: None,
                usual: BTreeMap::new(),
            }),
        }
    }

    /// The number of calls that may be in flight now.
    pub(crate) fn limit(&self) -> usize {
        self.state.lock().limit()
    }

    /// Begins a call.
    pub(crate) fn enter(&self) -> Permit<'_> {
        self.state.lock().in_flight += 1;
        Permit {
            limiter: self,
            begun: Instant::now(),
        }
    }
}

impl Permit<'_> {
    /// Learns from the answer to a call of this verb. A refusal for another cause, or no answer, may come before any work.
    pub(crate) fn note<T>(&self, verb: &'static str, answer: &Result<T, ApiError>) {
        let (now, took) = (self.limiter.clock.now(), self.begun.elapsed());
        let mut state = self.limiter.state.lock();
        match answer {
            Ok(_) => state.handle_done(now, verb, took),
            Err(error) if error.code == Some(429) => state.fall(now),
            Err(_) => {}
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.limiter.state.lock().in_flight -= 1;
    }
}

impl State {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 65,535"
    )]
    const fn limit(&self) -> usize {
        self.limit as usize
    }

    fn handle_done(&mut self, now: Timestamp, verb: &'static str, took: Duration) {
        let usual = self.usual.entry(verb).or_insert(Usual {
            since: now,
            of_period: took,
            quickest: took,
        });
        let quickest = usual.next(now, took);
        if took > OVERLOADED && took > quickest * SLOW_FACTOR {
            self.fall(now);
        } else if f64::from(self.in_flight) * 2.0 >= self.limit {
            let round = self.fell.map_or(FIRST_ROUNDS, |_| 1.0);
            self.limit = (self.limit + round / self.limit).min(self.limit_max);
        }
    }

    fn fall(&mut self, now: Timestamp) {
        if self.fell.is_none_or(|fell| since(now, fell) >= FALL_EVERY) {
            self.fell = Some(now);
            self.limit = (self.limit / 2.0).max(LIMIT_MIN).min(self.limit_max);
        }
    }
}

impl Usual {
    /// Takes an answer. Returns the quickest of late.
    fn next(&mut self, now: Timestamp, took: Duration) -> Duration {
        if since(now, self.since) >= USUAL_FOR {
            (self.since, self.quickest, self.of_period) = (now, self.of_period, took);
        }
        self.of_period = self.of_period.min(took);
        self.quickest = self.quickest.min(took);
        self.quickest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_millis(5);
    const VERB: &str = "create_pod";

    fn state() -> State {
        Limiter::new(256).state.into_inner()
    }

    fn second(number: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_secs(number)
    }

    impl State {
        /// Takes answers at one time that come while as many calls as allowed are in flight.
        fn answers(&mut self, seconds: u64, took: Duration, count: usize) {
            for _ in 0..count {
                self.in_flight = u32::try_from(self.limit()).expect("small");
                self.handle_done(second(seconds), VERB, took);
            }
        }
    }

    #[test]
    fn limit_grows_to_the_most_while_calls_are_in_flight_and_answers_are_quick() {
        let mut state = state();
        state.in_flight = 3;
        state.handle_done(second(0), VERB, QUICK);
        assert_eq!(state.limit(), 32, "few are in flight");
        state.answers(0, QUICK, 5_000);
        assert_eq!(state.limit(), 256);
    }

    #[test]
    fn refusals_for_load_halve_the_limit_once_a_second_and_leave_a_few() {
        let mut state = state();
        for (second_of, limit) in [(0, 16), (0, 16), (1, 8), (2, 4), (3, 4)] {
            state.fall(second(second_of));
            assert_eq!(state.limit(), limit);
        }
        state.answers(4, QUICK, 5);
        assert_eq!(state.limit(), 5, "one more in a round");
    }

    #[test]
    fn slow_answer_is_a_sign_of_load_only_where_answers_are_quick() {
        let slow = Duration::from_secs(3);
        let mut webhook = state();
        webhook.answers(0, slow, 4);
        assert!(webhook.limit() > 32);
        let mut other_verb = state();
        other_verb.handle_done(second(0), "read_pod", QUICK);
        other_verb.answers(0, slow, 1);
        assert_eq!(other_verb.limit(), 32);
        let mut state = state();
        state.answers(0, QUICK, 1);
        state.answers(0, slow, 1);
        assert_eq!(state.limit(), 16);
    }

    #[test]
    fn quickest_answer_is_forgotten_after_two_periods() {
        let mut usual = Usual {
            since: second(0),
            of_period: QUICK,
            quickest: QUICK,
        };
        for (seconds, took, quickest) in [(59, 3, 1), (60, 4, 1), (120, 5, 4), (180, 6, 5)] {
            assert_eq!(usual.next(second(seconds), QUICK * took), QUICK * quickest);
        }
    }
}
