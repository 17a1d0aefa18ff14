//! The number of calls in flight that a cluster can take, learnt from its answers.

use std::{collections::BTreeMap, time::Duration};

use agent_core::backoff::since;
use jiff::Timestamp;

/// The first limit: the capacity of a small API server.
const LIMIT_START: f64 = 32.0;
/// A lower limit gains nothing: a few calls must always run, or no answer shows an improvement.
const LIMIT_MIN: f64 = 4.0;
/// How many calls may wait in the API server. More calls make it no faster, and other clients wait behind them.
const WAITING_MAX: f64 = 64.0;
/// The fraction of the missing calls that each round of answers adds. More would overshoot, as answers come late.
const GAIN: f64 = 0.25;
/// The weight of each answer in the average.
const AVERAGE_OF: f64 = 1.0 / 32.0;
/// The latency of an answer that can be a sign of load: the API server's own goal for writes.
const SLOW: Duration = Duration::from_secs(1);
/// How much slower than usual the answer must be as well: if an admission webhook takes seconds, seconds are no sign.
const SLOW_FACTOR: u32 = 4;
/// The shortest time between two falls of the limit: calls in flight at a fall reflect the old limit.
const FALL_EVERY: Duration = Duration::from_secs(1);
/// How long the quickest answer counts as usual, at least; at most twice that.
const USUAL_FOR: Duration = Duration::from_secs(60);

/// Learns how many calls may be in flight.
///
/// The delay of an answer over the recent quickest shows how many calls wait instead of running, as in TCP Vegas; the limit follows their
/// number. When the cluster reports overload, the limit falls by half. After that it rises by at most one a round.
#[derive(Debug)]
pub(super) struct AdaptiveLimit {
    limit: f64,
    limit_max: f64,
    /// When the cluster last reported overload.
    fell: Option<Timestamp>,
    usual: BTreeMap<&'static str, Usual>,
    worked_on: Option<f64>,
}

/// The quickest answers to calls of a verb, without load: of this period and of the previous one.
#[derive(Debug, Default)]
struct Usual {
    since: Option<Timestamp>,
    quickest: Option<Duration>,
    quickest_before: Option<Duration>,
}

/// What an answer shows about load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// The verb: a create that passes webhooks takes longer than a read, without any load.
    pub(super) verb: &'static str,
    /// The duration of the call.
    pub(super) took: Duration,
    pub(super) ending: Ending,
    /// How many calls were in flight with this call.
    pub(super) in_flight: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The cluster did the work.
    Done,
    /// The cluster refused, perhaps before any work; or no answer came.
    Refused,
    /// The cluster refused because of its load.
    Throttled,
}

// === impl AdaptiveLimit ===

impl AdaptiveLimit {
    pub(super) fn new(limit_max: u16) -> Self {
        let limit_max = f64::from(limit_max.max(1));
        Self {
            limit: LIMIT_START.min(limit_max),
            limit_max,
            fell: None,
            usual: BTreeMap::new(),
            worked_on: None,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 65,535"
    )]
    pub(super) fn limit(&self) -> usize {
        self.limit as usize
    }

    pub(super) fn handle_answer(&mut self, now: Timestamp, sample: Sample) {
        let took = sample.took;
        let usual = self.usual.entry(sample.verb).or_default();
        if sample.ending == Ending::Done {
            usual.handle_answer(now, took);
        }
        let usual = usual.quickest().unwrap_or(took);
        let slow = took > SLOW && usual.saturating_mul(SLOW_FACTOR) < took;
        if sample.ending == Ending::Throttled || slow {
            self.fall(now);
        } else if sample.ending == Ending::Done {
            self.rise_or_sink(usual, took, sample.in_flight);
        }
    }

    /// Follows the number of waiting calls.
    fn rise_or_sink(&mut self, usual: Duration, took: Duration, in_flight: usize) {
        let part = usual.as_secs_f64() / took.as_secs_f64().max(f64::MIN_POSITIVE);
        let worked_on = self.worked_on.unwrap_or(part);
        let worked_on = worked_on + (part - worked_on) * AVERAGE_OF;
        self.worked_on = Some(worked_on);
        if in_flight.saturating_mul(2) < self.limit() {
            // Below half the limit, latency tells nothing about the limit.
            return;
        }
        let waiting = self.limit * (1.0 - worked_on).max(0.0);
        let round_max = self.fell.map_or(f64::INFINITY, |_| 1.0);
        let round = (GAIN * (WAITING_MAX - waiting)).min(round_max);
        self.limit = (self.limit + round / self.limit).clamp(self.limit_min(), self.limit_max);
    }

    fn limit_min(&self) -> f64 {
        LIMIT_MIN.min(self.limit_max)
    }

    fn fall(&mut self, now: Timestamp) {
        if self.fell.is_some_and(|fell| since(now, fell) < FALL_EVERY) {
            return;
        }
        self.fell = Some(now);
        self.limit = (self.limit / 2.0).max(self.limit_min());
    }
}

// === impl Usual ===

impl Usual {
    fn handle_answer(&mut self, now: Timestamp, took: Duration) {
        if self.since.is_none_or(|from| since(now, from) >= USUAL_FOR) {
            self.since = Some(now);
            self.quickest_before = self.quickest.take();
        }
        self.quickest = self.quickest.into_iter().chain([took]).min();
    }

    fn quickest(&self) -> Option<Duration> {
        self.quickest.into_iter().chain(self.quickest_before).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_millis(5);
    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn second(number: u64) -> Timestamp {
        START + Duration::from_secs(number)
    }

    fn answer(took: Duration, ending: Ending, in_flight: usize) -> Sample {
        Sample {
            verb: "create_pod",
            took,
            ending,
            in_flight,
        }
    }

    #[test]
    fn limit_grows_to_the_most_while_nothing_complains() {
        let mut adaptive = AdaptiveLimit::new(256);
        assert_eq!(adaptive.limit(), 32);
        for _ in 0..5_000 {
            adaptive.handle_answer(START, answer(QUICK, Ending::Done, adaptive.limit()));
        }
        assert_eq!(adaptive.limit(), 256);
    }

    #[test]
    fn calls_that_only_wait_become_no_more() {
        let mut adaptive = AdaptiveLimit::new(256);
        adaptive.handle_answer(START, answer(QUICK, Ending::Done, 1));
        for (at_once, expected) in [(2, 64..=68), (60, 106..=137), (2, 64..=68)] {
            // Each call takes `QUICK`, while the others wait.
            for _ in 0..5_000 {
                let waits = u32::try_from(adaptive.limit().div_ceil(at_once)).expect("small");
                adaptive
                    .handle_answer(START, answer(QUICK * waits, Ending::Done, adaptive.limit()));
            }
            let limit = adaptive.limit();
            assert!(expected.contains(&limit), "{at_once}: {limit}");
        }
    }

    #[test]
    fn quickest_answer_is_forgotten_after_two_periods() {
        let mut usual = Usual::default();
        let mut at = |seconds, took| {
            usual.handle_answer(second(seconds), took);
            usual.quickest()
        };
        assert_eq!(at(0, QUICK), Some(QUICK));
        assert_eq!(at(59, QUICK * 3), Some(QUICK));
        assert_eq!(at(60, QUICK * 4), Some(QUICK));
        assert_eq!(at(120, QUICK * 5), Some(QUICK * 4));
        assert_eq!(at(180, QUICK * 6), Some(QUICK * 5));
    }

    #[test]
    fn limit_that_is_not_reached_does_not_grow() {
        let mut adaptive = AdaptiveLimit::new(256);
        adaptive.handle_answer(START, answer(QUICK, Ending::Done, 3));
        assert_eq!(adaptive.limit(), 32);
    }

    #[test]
    fn complaints_halve_the_limit_once_a_second_and_leave_a_few() {
        let mut adaptive = AdaptiveLimit::new(256);
        for _ in 0..50 {
            adaptive.handle_answer(START, answer(QUICK, Ending::Throttled, 32));
        }
        assert_eq!(adaptive.limit(), 16);
        for at in 1..10 {
            adaptive.handle_answer(second(at), answer(QUICK, Ending::Throttled, 16));
        }
        assert_eq!(adaptive.limit(), 4);
    }

    #[test]
    fn limit_recovers_by_one_a_round_after_a_complaint() {
        let mut adaptive = AdaptiveLimit::new(256);
        adaptive.handle_answer(START, answer(QUICK, Ending::Throttled, 32));
        for _ in 0..17 {
            adaptive.handle_answer(START, answer(QUICK, Ending::Done, 16));
        }
        assert_eq!(adaptive.limit(), 17);
    }

    #[test]
    fn quick_reads_and_refusals_say_nothing_of_slow_creates() {
        let mut adaptive = AdaptiveLimit::new(256);
        let read = Sample {
            verb: "read_pod",
            ..answer(QUICK, Ending::Done, 1)
        };
        let refused = answer(QUICK, Ending::Refused, 1);
        for _ in 0..5_000 {
            adaptive.handle_answer(START, read);
            adaptive.handle_answer(START, refused);
            adaptive.handle_answer(START, answer(QUICK * 50, Ending::Done, adaptive.limit()));
        }
        assert_eq!(adaptive.limit(), 256);
    }

    #[test]
    fn slow_answer_is_a_complaint_only_where_answers_are_quick() {
        let slow = Duration::from_secs(3);
        let mut webhook = AdaptiveLimit::new(256);
        for _ in 0..4 {
            webhook.handle_answer(START, answer(slow, Ending::Done, 32));
        }
        assert_eq!(webhook.limit(), 33);

        let mut adaptive = AdaptiveLimit::new(256);
        adaptive.handle_answer(START, answer(Duration::from_millis(1_100), Ending::Done, 1));
        adaptive.handle_answer(START, answer(Duration::from_secs(5), Ending::Done, 32));
        assert_eq!(adaptive.limit(), 16);
    }
}
