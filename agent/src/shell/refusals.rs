//! Failed lists and watches, such as those that the API server refuses: when the agent is not ready.

use std::time::Duration;

use agent_core::{api::Kind, pace::since};
use jiff::Timestamp;

/// How long a kind may be unwatched before the agent is not ready: an older view is unfit for decisions.
const READY_FOR: Duration = Duration::from_mins(1);

/// The times since which a kind has no watch, after a failed list or watch.
#[derive(Debug, Default)]
pub(super) struct Refusals([Option<Timestamp>; 2]);

impl Refusals {
    pub(super) fn handle_failed(&mut self, now: Timestamp, kind: Kind) {
        self.0[kind as usize].get_or_insert(now);
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
        let is_lasting = |begun: &Timestamp| since(now, *begun) >= READY_FOR;
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
