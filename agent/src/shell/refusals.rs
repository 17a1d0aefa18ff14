//! Failed lists and watches, such as those that the API server refuses: when people are told, and when the agent is not ready.

use std::time::Duration;

use agent_core::{api::Kind, backoff::since, token_bucket::TokenBucket};
use jiff::Timestamp;

/// How long a kind may be unwatched before the agent is not ready: an older view is unfit for decisions.
const READY_FOR: Duration = Duration::from_mins(1);
const WARN_EVERY: Duration = Duration::from_mins(1);

/// The kinds without a watch, after a failed list or watch.
#[derive(Debug, Default)]
pub(super) struct Refusals([Option<Refused>; 2]);

#[derive(Debug)]
struct Refused {
    since: Timestamp,
    warnings: TokenBucket,
}

// === impl Refusals ===

impl Refusals {
    /// Takes a failure. True if a warning is due: for the first failure, and then once a minute.
    pub(super) fn handle_failed(&mut self, now: Timestamp, kind: Kind) -> bool {
        let refused = self.0[kind as usize].get_or_insert_with(|| Refused {
            since: now,
            warnings: TokenBucket::new(WARN_EVERY, 1),
        });
        refused.warnings.try_take(now)
    }

    /// Takes an opened watch: the kind is seen again.
    pub(super) fn handle_watched(&mut self, kind: Kind) {
        self.0[kind as usize] = None;
    }

    /// Checks that all kinds are watched, or were watched a minute ago.
    ///
    /// # Errors
    /// The reason for `/readyz`.
    pub(super) fn check(&self, now: Timestamp) -> Result<(), &'static str> {
        let is_lasting = |refused: &Refused| since(now, refused.since) >= READY_FOR;
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
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(seconds)
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
