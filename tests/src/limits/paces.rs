//! The frequency at which an agent follows requests of a server, and the time for which a server can block the agent.

use std::collections::{BTreeMap, VecDeque};

use agent_core::api::Kind;
use jiff::{SignedDuration, Timestamp};

use super::verdict::{SLACK, Verdict, limit};

/// The maximum number of sessions that begin within [`SESSIONS_WITHIN`]: the first three, and then one each.
const SESSIONS_MAX: usize = 3;
const SESSIONS_WITHIN: SignedDuration = SignedDuration::from_secs(1);
/// The maximum number of lists of a kind that begin within [`LISTS_WITHIN`]: the first, one that repeats a list which the agent's own write
/// has overtaken, and then one each.
const LISTS_MAX: usize = 3;
const LISTS_WITHIN: SignedDuration = SignedDuration::from_secs(10);
/// How much later a list of pods can begin than its pace allows: when the first page of ReplicaSets has come.
const LATE: SignedDuration = SignedDuration::from_millis(200);
/// The maximum time for which an agent neither hears a server nor opens a connection. The longest wait that a server can request
/// is five minutes, and four silent intervals of a minute end a session.
const AWAY_MAX: SignedDuration = SignedDuration::from_mins(5);

/// The acts of each agent, as far back as the limits need.
#[derive(Debug, Default)]
pub(super) struct Paces {
    sessions: BTreeMap<u64, VecDeque<Timestamp>>,
    lists: BTreeMap<(u64, Kind), VecDeque<Timestamp>>,
    /// The last time at which each agent was heard or seen.
    last: BTreeMap<u64, Timestamp>,
}

impl Paces {
    /// Judges a new connection of an agent.
    pub(super) fn dialed(&mut self, life: u64, now: Timestamp) -> Verdict {
        self.heard(life, now);
        let times = self.sessions.entry(life).or_default();
        let within = note(times, now, SESSIONS_MAX);
        limit("sessions_are_paced", within >= SESSIONS_WITHIN, || {
            format!("{} sessions within {within:#}", SESSIONS_MAX + 1)
        })
    }

    /// Judges a new list of an agent.
    pub(super) fn listed(&mut self, life: u64, kind: Kind, now: Timestamp) -> Verdict {
        let times = self.lists.entry((life, kind)).or_default();
        let within = note(times, now, LISTS_MAX);
        limit("lists_are_paced", within >= LISTS_WITHIN - LATE, || {
            format!("{} lists of {kind:?} within {within:#}", LISTS_MAX + 1)
        })
    }

    /// Notes input of an agent.
    pub(super) fn heard(&mut self, life: u64, now: Timestamp) {
        self.last.insert(life, now);
    }

    /// Judges the waits of agents.
    pub(super) fn judge_silence(&self, now: Timestamp) -> Verdict {
        let longest = self.last.values().map(|last| now.duration_since(*last));
        let longest = longest.max().unwrap_or_default();
        limit("comes_back", longest <= AWAY_MAX + SLACK, || {
            format!("an agent has been away for {longest:#}")
        })
    }
}

/// Notes a time. Returns the time since the one `before` entries earlier; the maximum if there is none.
fn note(times: &mut VecDeque<Timestamp>, now: Timestamp, before: usize) -> SignedDuration {
    times.push_back(now);
    if times.len() > before {
        times
            .pop_front()
            .map_or(SignedDuration::MAX, |first| now.duration_since(first))
    } else {
        SignedDuration::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    #[test]
    fn fourth_list_within_ten_seconds_is_too_many() {
        let mut paces = Paces::default();
        for seconds in [0, 9, 9, 10, 20, 20] {
            assert_eq!(paces.listed(1, Kind::Pod, at(seconds)), Ok(()));
        }
        assert_eq!(paces.listed(2, Kind::Pod, at(20)), Ok(()), "another agent");
        let verdict = paces.listed(1, Kind::Pod, at(20));
        assert_eq!(verdict, Ok(()), "ten seconds after the third before it");
        let verdict = paces.listed(1, Kind::Pod, at(29));
        assert!(matches!(verdict, Err(("lists_are_paced", _))));
    }

    #[test]
    fn fourth_session_within_a_second_is_too_many_and_absence_has_an_end() {
        let mut paces = Paces::default();
        for seconds in [0, 0, 0, 1, 2] {
            assert_eq!(paces.dialed(1, at(seconds)), Ok(()));
        }
        assert_eq!(paces.judge_silence(at(300)), Ok(()));
        let verdict = paces.judge_silence(at(400));
        assert!(matches!(verdict, Err(("comes_back", _))));
        paces.heard(1, at(400));
        assert_eq!(paces.judge_silence(at(400)), Ok(()));
        (0..3).for_each(|_| drop(paces.dialed(1, at(400))));
        let verdict = paces.dialed(1, at(400));
        assert!(matches!(verdict, Err(("sessions_are_paced", _))));
    }
}
