//! How many calls are under way, and how often one begins: places that follow a [`Pace`], and a rate for those who want one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_core::{
    api::ApiError,
    pace::{Answered, Bucket, Ending, Pace},
};
use jiff::Timestamp;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};

use crate::clock::Clock;

/// How long a call may wait for its turn at a fixed rate.
const WAIT_SECONDS_MAX: f64 = 5.0;

/// A fixed rate of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How many calls begin in a second.
    pub per_second: f64,
    /// How many may begin at once after a rest.
    pub burst: u32,
}

/// Lets calls in, first come, first served.
#[derive(Debug)]
pub(super) struct Gate {
    clock: Clock,
    places: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pace: Pace,
    /// How many places there are, taken ones included.
    places: usize,
    in_flight: usize,
    bucket: Option<Bucket>,
}

/// A place of a call under way.
pub(super) struct Place<'a> {
    gate: &'a Gate,
    permit: Option<SemaphorePermit<'a>>,
    begun: Instant,
}

// === impl Rate ===

impl Rate {
    /// Returns how many calls begin in a few seconds: more would wait so long for their turn that they count as lost.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number, and one beyond all numbers becomes the greatest"
    )]
    fn calls_max(self) -> u16 {
        (self.per_second * WAIT_SECONDS_MAX).ceil() as u16
    }
}

// === impl Gate ===

impl Gate {
    pub(super) fn new(calls_max: u16, rate: Option<Rate>) -> Self {
        let calls_max = rate.map_or(calls_max, |rate| calls_max.min(rate.calls_max()));
        let pace = Pace::new(calls_max);
        let places = pace.limit();
        let bucket = rate.map(|rate| Bucket::new(rate.per_second, rate.burst.into()));
        Self {
            clock: Clock::starting_at(Timestamp::now()),
            places: Semaphore::new(places),
            state: Mutex::new(State {
                pace,
                places,
                in_flight: 0,
                bucket,
            }),
        }
    }

    /// Returns how many calls the gate lets in at the moment.
    pub(super) fn limit(&self) -> usize {
        self.lock().pace.limit()
    }

    /// Waits for the turn of a call.
    pub(super) async fn enter(&self) -> Place<'_> {
        // The semaphore is never closed; were it, a call without a place is better than none.
        let permit = self.places.acquire().await.ok();
        let wait = {
            let mut state = self.lock();
            state.in_flight += 1;
            let now = self.clock.now();
            state.bucket.as_mut().map(|bucket| bucket.take(now))
        };
        let mut place = Place {
            gate: self,
            permit,
            begun: Instant::now(),
        };
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            tokio::time::sleep(wait).await;
            place.begun = Instant::now();
        }
        place
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Place ===

impl Place<'_> {
    /// Learns from the answer to a call of this verb.
    pub(super) fn note<T>(&self, verb: &'static str, answer: &Result<T, ApiError>) {
        let ending = match answer {
            Ok(_) => Ending::Done,
            Err(error) if error.code == Some(429) => Ending::Throttled,
            Err(_) => Ending::Refused,
        };
        let mut state = self.gate.lock();
        let answered = Answered {
            verb,
            took: self.begun.elapsed(),
            ending,
            in_flight: state.in_flight,
        };
        state.pace.handle_answer(self.gate.clock.now(), answered);
        let more = state.pace.limit().saturating_sub(state.places);
        state.places += more;
        self.gate.places.add_permits(more);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.in_flight -= 1;
        // Where there are more places than the pace allows, this one goes.
        if state.places > state.pace.limit()
            && let Some(permit) = self.permit.take()
        {
            state.places -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn throttled() -> Result<(), ApiError> {
        Err(ApiError {
            code: Some(429),
            ..ApiError::default()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn throttling_takes_places_away_and_success_gives_them_back() {
        let gate = Gate::new(64, None);
        assert_eq!(gate.places.available_permits(), 32);
        let place = gate.enter().await;
        place.note("create_pod", &throttled());
        drop(place);
        for _ in 0..15 {
            drop(gate.enter().await);
        }
        assert_eq!(gate.places.available_permits(), 16);

        let mut places = Vec::new();
        for _ in 0..16 {
            places.push(gate.enter().await);
        }
        places
            .iter()
            .for_each(|place| place.note("create_pod", &Ok(())));
        places
            .iter()
            .for_each(|place| place.note("create_pod", &Ok(())));
        drop(places);
        assert_eq!(gate.places.available_permits(), 17);
    }

    #[tokio::test(start_paused = true)]
    async fn rate_holds_calls_back_after_its_burst() {
        let rate = Rate {
            per_second: 10.0,
            burst: 2,
        };
        let gate = Gate::new(64, Some(rate));
        let begun = Instant::now();
        for _ in 0..4 {
            drop(gate.enter().await);
        }
        assert!(begun.elapsed() >= Duration::from_millis(200));
    }
}
