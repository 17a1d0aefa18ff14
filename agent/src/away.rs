//! An unreachable server: each attempt to reach it fails, in each shard of the process, and the agent logs it once a minute.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

const WARN_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// The time of the agent's last log line about the server, and the failures since. Clones share it, so an agent of many shards logs the
/// failures of all of them in one line.
#[derive(Clone, Debug, Default)]
pub struct Away(Arc<Mutex<Failures>>);

#[derive(Debug, Default)]
struct Failures {
    last_reported: Option<Timestamp>,
    /// The failed attempts since the last line.
    unreported: u64,
}

// === impl Away ===

impl Away {
    /// Takes a lost session or a failed attempt. Returns the number of failures since the last line, if the next line is due: the first
    /// failure is logged at once.
    pub(crate) fn handle_lost(&self, now: Timestamp) -> Option<u64> {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failures.unreported += 1;
        let is_due = |last| now.duration_since(last) >= WARN_EVERY;
        if !failures.last_reported.is_none_or(is_due) {
            return None;
        }
        failures.last_reported = Some(now);
        Some(std::mem::take(&mut failures.unreported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    #[test]
    fn ten_minutes_without_a_server_are_told_once_a_minute_by_all_shards_together() {
        let away = Away::default();
        let shards = [away.clone(), away.clone(), away];
        let mut reported = Vec::new();
        for second in 0..=600 {
            let tries = shards.iter().filter_map(|it| it.handle_lost(at(second)));
            reported.extend(tries.map(|tries| (second, tries)));
        }
        let minutes = reported.iter().map(|(second, _)| *second);
        assert!(minutes.eq((0..=600).step_by(60)), "{reported:?}");
        // All attempts but the last two of the last second.
        let tries: u64 = reported.iter().map(|(_, tries)| tries).sum();
        assert_eq!(tries, 601 * 3 - 2);
    }
}
