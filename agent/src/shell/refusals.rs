//! Failed lists and watches, such as those that the API server refuses: when people are told, and when the agent is not ready.

use agent_core::api::Kind;
use jiff::{SignedDuration, Timestamp};

/// How long a kind may be unwatched before the agent is not ready: an older view is unfit for decisions.
const READY_FOR: SignedDuration = SignedDuration::from_mins(1);
const WARN_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// The kinds without a watch, after a failed list or watch.
#[derive(Debug, Default)]
pub(super) struct Refusals([Option<Refused>; 2]);

#[derive(Clone, Copy, Debug)]
struct Refused {
    since: Timestamp,
    warned: Timestamp,
}

// === impl Refusals ===

impl Refusals {
    /// Takes a failure. True if a warning is due: for the first failure, and then once a minute.
    pub(super) fn handle_failed(&mut self, now: Timestamp, kind: Kind) -> bool {
        let before = &mut self.0[kind as usize];
        let is_due = before.is_none_or(|refused| now.duration_since(refused.warned) >= WARN_EVERY);
        let refused = before.get_or_insert(Refused {
            since: now,
            warned: now,
        });
        if is_due {
            refused.warned = now;
        }
        is_due
    }

    /// Takes an opened watch: the kind is seen again.
    pub(super) const fn handle_watched(&mut self, kind: Kind) {
        self.0[kind as usize] = None;
    }

    /// Checks that all kinds are watched, or were watched a minute ago.
    ///
    /// # Errors
    /// The reason for `/readyz`.
    pub(super) fn check(&self, now: Timestamp) -> Result<(), &'static str> {
        let is_lasting = |refused: &Refused| now.duration_since(refused.since) >= READY_FOR;
        if self.0.iter().flatten().any(is_lasting) {
            return Err("lists or watches have failed for a minute; look at the log");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    #[test]
    fn first_failure_and_one_a_minute_are_worth_a_warning() {
        let mut refusals = Refusals::default();
        let warned = (0..=120).filter(|it| refusals.handle_failed(at(*it), Kind::Pod));
        assert_eq!(warned.collect::<Vec<_>>(), [0, 60, 120]);
        assert!(refusals.handle_failed(at(121), Kind::ReplicaSet));
    }

    #[test]
    fn agent_is_not_ready_a_minute_after_it_could_watch_last() {
        let mut refusals = Refusals::default();
        refusals.handle_failed(at(0), Kind::Pod);
        refusals.handle_failed(at(59), Kind::Pod);
        assert_eq!(refusals.check(at(59)), Ok(()));
        refusals.check(at(60)).expect_err("it has lasted a minute");
        refusals.handle_watched(Kind::ReplicaSet);
        refusals.check(at(60)).expect_err("pods are not watched");
        refusals.handle_watched(Kind::Pod);
        assert_eq!(refusals.check(at(600)), Ok(()));
    }
}
