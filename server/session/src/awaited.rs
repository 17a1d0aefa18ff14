//! Since when outcomes are awaited and none comes.

use std::time::Duration;

/// How long an agent may leave all operations in flight without an outcome. Each has a time limit of its own, well below a minute with the
/// agents of this project, after which it is reported as a timeout.
pub(crate) const OUTCOMES_PATIENCE: Duration = Duration::from_secs(300);

/// The outcomes that a session waits for. Times are of the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Awaited {
    since: Option<Duration>,
    /// How many outcomes had come then.
    outcomes: u64,
}

// === impl Awaited ===

impl Awaited {
    /// Notes at `now` whether any are due, and how many have come.
    pub(crate) const fn note(&mut self, now: Duration, are_due: bool, outcomes: u64) {
        if !are_due {
            self.since = None;
        } else if self.since.is_none() || self.outcomes != outcomes {
            self.since = Some(now);
        }
        self.outcomes = outcomes;
    }

    /// Returns when the agent is given up if none comes until then.
    pub(crate) fn missing_at(&self) -> Option<Duration> {
        self.since.map(|since| since + OUTCOMES_PATIENCE)
    }
}
