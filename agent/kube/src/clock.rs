//! The agent's clock: wall time where it started, monotonic time from there, so that a step of the wall clock moves no timer.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the time. Copies agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    start: Timestamp,
}

impl Clock {
    /// Creates a clock that shows `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            origin: Instant::now(),
            start,
        }
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.origin.elapsed());
        let now = elapsed
            .ok()
            .and_then(|elapsed| self.start.checked_add(elapsed).ok());
        now.unwrap_or(Timestamp::MAX)
    }

    /// Waits until the clock shows `time`; forever without a time.
    pub async fn sleep_until(&self, time: Option<Timestamp>) {
        let Some(time) = time else {
            return std::future::pending().await;
        };
        let wait = std::time::Duration::try_from(time.duration_since(self.start));
        match self.origin.checked_add(wait.unwrap_or_default()) {
            Some(instant) => tokio::time::sleep_until(instant).await,
            None => std::future::pending().await,
        }
    }
}
