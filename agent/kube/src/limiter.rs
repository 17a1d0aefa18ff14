//! The number of calls in flight, and how often one begins: permits from an [`AdaptiveLimit`], and an optional rate.

mod adaptive_limit;

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_core::{api::ApiError, token_bucket::TokenBucket};
use jiff::Timestamp;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};

use self::adaptive_limit::{AdaptiveLimit, Ending, Sample};
use crate::clock::Clock;

/// How long a call may wait at a fixed rate.
const WAIT_SECONDS_MAX: f64 = 5.0;

/// A fixed rate of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How many calls begin in a second.
    pub per_second: f64,
    /// How many calls may begin at once after a rest.
    pub burst: u32,
}

/// Admits calls, first come, first served.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimiter {
    clock: Clock,
    semaphore: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: AdaptiveLimit,
    /// The number of permits, including the ones in use.
    permits: usize,
    in_flight: usize,
    bucket: Option<TokenBucket>,
}

/// The permission of a call to be in flight.
pub(crate) struct Permit<'a> {
    limiter: &'a ConcurrencyLimiter,
    semaphore_permit: Option<SemaphorePermit<'a>>,
    begun: Instant,
}

// === impl Rate ===

impl Rate {
    /// The number of calls that begin in a few seconds at this rate. A call behind more of them would wait so long that it counts as lost.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number, and one beyond all numbers becomes the greatest"
    )]
    fn calls_max(self) -> u16 {
        (self.per_second * WAIT_SECONDS_MAX).ceil() as u16
    }
}

// === impl ConcurrencyLimiter ===

impl ConcurrencyLimiter {
    pub(crate) fn new(calls_max: u16, rate: Option<Rate>) -> Self {
        let calls_max = rate.map_or(calls_max, |rate| calls_max.min(rate.calls_max()));
        let limit = AdaptiveLimit::new(calls_max);
        let permits = limit.limit();
        let bucket = rate.map(|rate| TokenBucket::per_second(rate.per_second, rate.burst));
        Self {
            clock: Clock::starting_at(Timestamp::now()),
            semaphore: Semaphore::new(permits),
            state: Mutex::new(State {
                limit,
                permits,
                in_flight: 0,
                bucket,
            }),
        }
    }

    /// The number of calls that the limiter admits now.
    pub(crate) fn limit(&self) -> usize {
        self.lock().limit.limit()
    }

    pub(crate) async fn enter(&self) -> Permit<'_> {
        // The semaphore is never closed. If it were, a call without a permit would be better than none.
        let semaphore_permit = self.semaphore.acquire().await.ok();
        let wait = {
            let mut state = self.lock();
            state.in_flight += 1;
            let now = self.clock.now();
            state.bucket.as_mut().map(|bucket| bucket.take(now))
        };
        let mut permit = Permit {
            limiter: self,
            semaphore_permit,
            begun: Instant::now(),
        };
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            tokio::time::sleep(wait).await;
            permit.begun = Instant::now();
        }
        permit
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Permit ===

impl Permit<'_> {
    /// Learns from the answer to a call of this verb.
    pub(crate) fn note<T>(&self, verb: &'static str, answer: &Result<T, ApiError>) {
        let ending = match answer {
            Ok(_) => Ending::Done,
            Err(error) if error.code == Some(429) => Ending::Throttled,
            Err(_) => Ending::Refused,
        };
        let mut state = self.limiter.lock();
        let sample = Sample {
            verb,
            took: self.begun.elapsed(),
            ending,
            in_flight: state.in_flight,
        };
        state.limit.handle_answer(self.limiter.clock.now(), sample);
        let more = state.limit.limit().saturating_sub(state.permits);
        state.permits += more;
        self.limiter.semaphore.add_permits(more);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.limiter.lock();
        state.in_flight -= 1;
        // If there are more permits than the limit allows, this permit is dropped.
        if state.permits > state.limit.limit()
            && let Some(permit) = self.semaphore_permit.take()
        {
            state.permits -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn throttling_takes_permits_away_and_success_gives_them_back() {
        let limiter = ConcurrencyLimiter::new(64, None);
        assert_eq!(limiter.semaphore.available_permits(), 32);
        let permit = limiter.enter().await;
        let throttled = ApiError {
            code: Some(429),
            ..ApiError::default()
        };
        permit.note("create_pod", &Err::<(), _>(throttled));
        drop(permit);
        for _ in 0..15 {
            drop(limiter.enter().await);
        }
        assert_eq!(limiter.semaphore.available_permits(), 16);

        let mut permits = Vec::new();
        for _ in 0..16 {
            permits.push(limiter.enter().await);
        }
        for permit in permits.iter().chain(&permits) {
            permit.note("create_pod", &Ok(()));
        }
        drop(permits);
        assert_eq!(limiter.semaphore.available_permits(), 17);
    }

    #[tokio::test(start_paused = true)]
    async fn rate_holds_calls_back_after_its_burst() {
        let rate = Rate {
            per_second: 10.0,
            burst: 2,
        };
        let limiter = ConcurrencyLimiter::new(64, Some(rate));
        let begun = Instant::now();
        for _ in 0..4 {
            drop(limiter.enter().await);
        }
        assert!(begun.elapsed() >= Duration::from_millis(200));
    }
}
