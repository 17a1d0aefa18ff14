//! A rate with a burst, for those who want a fixed one.

use std::time::Duration;

use jiff::Timestamp;

use crate::backoff::since;

/// A bucket of tokens that fills at a rate.
#[derive(Debug)]
pub struct TokenBucket {
    per_second: f64,
    burst: f64,
    tokens: f64,
    filled: Option<Timestamp>,
}

// === impl TokenBucket ===

impl TokenBucket {
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

    #[test]
    fn bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = TokenBucket::new(10.0, 2.0);
        assert_eq!(bucket.take(Timestamp::UNIX_EPOCH), Duration::ZERO);
        assert_eq!(bucket.take(Timestamp::UNIX_EPOCH), Duration::ZERO);
        assert_eq!(
            bucket.take(Timestamp::UNIX_EPOCH),
            Duration::from_millis(100)
        );
        assert_eq!(
            bucket.take(Timestamp::UNIX_EPOCH),
            Duration::from_millis(200)
        );
        assert!(!bucket.try_take(Timestamp::UNIX_EPOCH));
        assert!(bucket.try_take(after(Timestamp::UNIX_EPOCH, Duration::from_secs(1))));
    }
}
