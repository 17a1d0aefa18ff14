//! The time since which a session waits for outcomes and gets none.

use std::time::Duration;

/// How long an agent may leave all operations in flight without an outcome. Each operation has its own time limit, well below a minute with
/// the agents of this project, after which the agent reports a timeout.
pub(crate) const OUTCOMES_PATIENCE: Duration = Duration::from_secs(300);

/// The interval between searches for a batch that the agent overlooks while others get their outcomes.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The outcomes that a session waits for. Times are of the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Awaited {
    since: Option<Duration>,
    /// The number of outcomes by then.
    outcomes: u64,
    /// When the next search for an overlooked batch is due; `None` if no batch is in flight.
    look_at: Option<Duration>,
}

// === impl Awaited ===

impl Awaited {
    /// Records at `now` whether outcomes are due, and how many have come.
    pub(crate) fn note(&mut self, now: Duration, are_due: bool, outcomes: u64) {
        if !are_due {
            *self = Self::default();
        } else if self.since.is_none() || self.outcomes != outcomes {
            self.since = Some(now);
            self.look_at.get_or_insert(now + LOOK_EVERY);
        }
        self.outcomes = outcomes;
    }

    /// Returns whether a search for an overlooked batch is due, and postpones the next one.
    pub(crate) fn take_look(&mut self, now: Duration) -> bool {
        let is_due = self.look_at.is_some_and(|at| at <= now);
        if is_due {
            self.look_at = Some(now + LOOK_EVERY);
        }
        is_due
    }

    /// Returns whether the agent has reported no outcome of any operation for too long.
    pub(crate) fn are_all_missing(&self, now: Duration) -> bool {
        self.missing_at().is_some_and(|at| at <= now)
    }

    /// Returns when [`are_all_missing`](Self::are_all_missing) or [`take_look`](Self::take_look) is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.missing_at().into_iter().chain(self.look_at).min()
    }

    fn missing_at(&self) -> Option<Duration> {
        self.since.map(|since| since + OUTCOMES_PATIENCE)
    }
}
