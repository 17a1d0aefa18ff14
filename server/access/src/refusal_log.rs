//! The refusals to log: one for each peer and minute.

use std::collections::BTreeMap;

/// How long a peer's further refusals are only counted, in seconds.
const SILENCE: i64 = 60;
/// The maximum number of peers that are told apart at a time; all other refusals share one line a minute.
const PEERS_MAX: usize = 1024;

/// Remembers the peers whose refusals were logged in the last minute. It holds at most 1,024 peers.
#[derive(Clone, Debug, Default)]
pub struct RefusalLog {
    logged: BTreeMap<String, PeerRefusals>,
    /// The shared line of all other peers.
    others: PeerRefusals,
    /// The time at which the peers of earlier minutes were last forgotten.
    swept: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct PeerRefusals {
    at: Option<i64>,
    omitted: u64,
}

// === impl RefusalLog ===

impl RefusalLog {
    /// Counts a refusal of a peer at `now`. If it is to be logged, returns the number of earlier refusals that were not.
    pub fn count(&mut self, now: i64, peer: &str) -> Option<u64> {
        if let Some(line) = self.logged.get_mut(peer) {
            return line.count(now);
        }
        if self.logged.len() >= PEERS_MAX && self.swept != Some(now) {
            self.swept = Some(now);
            self.logged.retain(|_, line| !line.is_over(now));
        }
        if self.logged.len() >= PEERS_MAX {
            return self.others.count(now);
        }
        self.logged.entry(peer.to_owned()).or_default().count(now)
    }
}

// === impl PeerRefusals ===

impl PeerRefusals {
    fn is_over(self, now: i64) -> bool {
        self.at.is_none_or(|at| !(at..at + SILENCE).contains(&now))
    }

    fn count(&mut self, now: i64) -> Option<u64> {
        if !self.is_over(now) {
            self.omitted += 1;
            return None;
        }
        self.at = Some(now);
        Some(std::mem::take(&mut self.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_has_one_line_a_minute_with_the_number_left_out() {
        let mut log = RefusalLog::default();
        assert_eq!(log.count(100, "a"), Some(0));
        assert_eq!(log.count(159, "a"), None);
        assert_eq!(log.count(159, "b"), Some(0));
        assert_eq!(log.count(160, "a"), Some(1));
    }

    #[test]
    fn any_number_of_peers_takes_bounded_room_and_lines() {
        let mut log = RefusalLog::default();
        let lines = (0..100_000).filter_map(|peer| log.count(0, &peer.to_string()));
        assert_eq!(lines.count(), PEERS_MAX + 1);
        assert_eq!(log.logged.len(), PEERS_MAX);
        assert_eq!(log.count(60, "new"), Some(0));
    }

    #[test]
    fn clock_that_is_set_back_silences_no_one() {
        let mut log = RefusalLog::default();
        assert_eq!(log.count(1_000, "a"), Some(0));
        assert_eq!(log.count(10, "a"), Some(0));
    }
}
