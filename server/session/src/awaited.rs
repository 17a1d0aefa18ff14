//! The time since which a session waits for outcomes or a list and gets none.

use std::time::Duration;

use decree_core::{ByKind, Kind};

/// How long an agent may leave all operations in flight without an outcome. Each operation has its own time limit, well below a minute with
/// the agents of this project, after which the agent reports a timeout.
pub(crate) const OUTCOMES_PATIENCE: Duration = Duration::from_secs(300);

/// How long an agent may leave a Resync without a list. Agents of this project begin a list within 10 seconds, if their cluster answers.
pub(crate) const LIST_PATIENCE: Duration = Duration::from_secs(300);

/// The interval between searches for a batch that the agent overlooks while others get their outcomes.
const LOOK_EVERY: Duration = Duration::from_secs(30);

pub(crate) const KINDS: [Kind; 2] = [Kind::Pod, Kind::ReplicaSet];

/// The outcomes and lists that a session waits for. Times are of the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Awaited {
    since: Option<Duration>,
    /// The number of outcomes by then.
    outcomes: u64,
    /// When the next search for an overlooked batch is due; `None` if no batch is in flight.
    look_at: Option<Duration>,
    /// When a list was requested that has not begun.
    lists: ByKind<Option<Duration>>,
}

impl Awaited {
    /// Records at `now` whether outcomes are due, and how many have come.
    pub(crate) fn note(&mut self, now: Duration, are_due: bool, outcomes: u64) {
        if !are_due {
            (self.since, self.look_at) = (None, None);
        } else if self.since.is_none() || self.outcomes != outcomes {
            self.since = Some(now);
            self.look_at.get_or_insert(now + LOOK_EVERY);
        }
        self.outcomes = outcomes;
    }

    /// Records at `now` whether a list of a kind is requested and has not begun.
    pub(crate) const fn note_list(&mut self, now: Duration, kind: Kind, is_due: bool) {
        let since = self.lists.of_mut(kind);
        if !is_due {
            *since = None;
        } else if since.is_none() {
            *since = Some(now);
        }
    }

    pub(crate) fn is_list_missing(&self, now: Duration, kind: Kind) -> bool {
        self.list_missing_at(kind).is_some_and(|at| at <= now)
    }

    /// Returns whether a search for an overlooked batch is due, and postpones the next one.
    pub(crate) fn take_look(&mut self, now: Duration) -> bool {
        let is_due = self.look_at.is_some_and(|at| at <= now);
        if is_due {
            self.look_at = Some(now + LOOK_EVERY);
        }
        is_due
    }

    pub(crate) fn are_all_missing(&self, now: Duration) -> bool {
        self.missing_at().is_some_and(|at| at <= now)
    }

    /// Returns when the next of the checks above is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        let lists = KINDS.map(|kind| self.list_missing_at(kind));
        let all = lists.into_iter().chain([self.missing_at(), self.look_at]);
        all.flatten().min()
    }

    fn list_missing_at(&self, kind: Kind) -> Option<Duration> {
        self.lists.of(kind).map(|since| since + LIST_PATIENCE)
    }

    fn missing_at(&self) -> Option<Duration> {
        self.since.map(|since| since + OUTCOMES_PATIENCE)
    }
}
