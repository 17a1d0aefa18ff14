//! What a session shows without being asked: its sizes, and how current its view is.

use std::time::Duration;

use decree_api::v1;
use decree_core::Span;
use parking_lot::Mutex;
use server_session::{Config, SessionIdentity, Stats};
use tokio::time::Instant;

use crate::metrics::seconds;

/// How long a session may take no frame while it works or waits before its view counts as stale.
const BUSY_MAX: Duration = Duration::from_secs(1);
/// The number of heartbeat intervals without a frame after which a view counts as stale.
const SILENT_INTERVALS: u32 = 2;

/// The state that a session's task publishes. Readers never wait for the task.
#[derive(Debug)]
pub(crate) struct Shown(Mutex<State>);

#[derive(Debug)]
struct State {
    stats: Stats,
    /// When the session took the last frame of its agent.
    heard: Instant,
    /// Since when the session takes no frames, because it works, or waits for its agent to read or for memory.
    busy: Option<Instant>,
    /// The age of the oldest unfinished sync at a time.
    longest: Option<(Span, Instant)>,
}

impl Default for Shown {
    fn default() -> Self {
        let now = Instant::now();
        Self(Mutex::new(State {
            stats: Stats::default(),
            heard: now,
            busy: Some(now),
            longest: None,
        }))
    }
}

impl Shown {
    pub(crate) fn publish(&self, stats: Stats) {
        self.0.lock().stats = stats;
    }

    pub(crate) fn set_longest_sync(&self, age: Option<Span>) {
        self.0.lock().longest = age.map(|age| (age, Instant::now()));
    }

    /// The age of the oldest unfinished sync now, in seconds.
    pub(crate) fn longest_sync(&self) -> f64 {
        let longest = self.0.lock().longest;
        longest.map_or(0.0, |(age, at)| seconds(age) + at.elapsed().as_secs_f64())
    }

    pub(crate) fn summarize(
        &self,
        identity: &SessionIdentity,
        config: &Config,
    ) -> v1::SessionSummary {
        v1::SessionSummary {
            age: self.age().try_into().ok(),
            ..self.stats().summarize(identity, config)
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        self.0.lock().stats
    }

    /// Notes that the session waits for frames, or that it does not.
    pub(crate) fn set_reading(&self, is_reading: bool) {
        self.0.lock().busy = (!is_reading).then(Instant::now);
    }

    /// Notes that the session takes a frame.
    pub(crate) fn hear(&self) {
        self.0.lock().heard = Instant::now();
    }

    /// How long ago the session took the last frame of its agent.
    pub(crate) fn age(&self) -> Duration {
        self.0.lock().heard.elapsed()
    }

    /// Whether the view may lack changes that the agent has sent or should have sent.
    pub(crate) fn is_stale(&self, heartbeat_interval: Duration) -> bool {
        let state = self.0.lock();
        let is_late = state.busy.is_some_and(|since| since.elapsed() >= BUSY_MAX);
        is_late || state.heard.elapsed() >= heartbeat_interval * SILENT_INTERVALS
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn view_is_stale_while_its_session_is_busy_for_long_or_its_agent_is_silent() {
        let shown = Shown::default();
        let interval = Duration::from_secs(5);
        for (seconds, is_reading, hears, is_stale) in [
            (1, false, false, true),
            (0, true, false, false),
            (8, true, false, false),
            (1, true, false, true),
            (0, false, true, false),
            (1, false, false, true),
        ] {
            advance(Duration::from_secs(seconds)).await;
            if hears {
                shown.hear();
            }
            if is_reading || hears {
                shown.set_reading(is_reading);
            }
            let found = shown.is_stale(interval);
            assert_eq!(found, is_stale, "{seconds} {is_reading} {hears}");
        }
        assert_eq!(shown.age(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn oldest_sync_grows_older_until_it_ends() {
        let shown = Shown::default();
        shown.set_longest_sync(Some(Span::seconds(4)));
        advance(Duration::from_secs(10)).await;
        assert!((14.0..14.1).contains(&shown.longest_sync()));
        shown.set_longest_sync(None);
        assert!(shown.longest_sync() <= 0.0);
    }
}
