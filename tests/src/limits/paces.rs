//! How often an agent does what a server makes it do, and how long it is kept from doing anything.

use std::collections::{BTreeMap, VecDeque};

use agent_core::api::Kind;
use jiff::{SignedDuration, Timestamp};

use super::verdict::{SLACK, Verdict, limit};

/// How many sessions may begin within [`SESSIONS_WITHIN`]: the first three, and then one each.
const SESSIONS_MAX: usize = 3;
const SESSIONS_WITHIN: SignedDuration = SignedDuration::from_secs(1);
/// How many lists of a kind may begin within [`LISTS_WITHIN`]: the first, and beyond it one each.
const LISTS_MAX: usize = 2;
const LISTS_WITHIN: SignedDuration = SignedDuration::from_secs(10);
/// How long an agent may neither hear a server nor open a connection, whatever servers have asked for: five minutes is the longest wait, and
/// four intervals of a minute without a word end a session.
const AWAY_MAX: SignedDuration = SignedDuration::from_mins(5);

/// What each agent has done, as far back as it matters.
#[derive(Debug, Default)]
pub(super) struct Paces {
    sessions: BTreeMap<u64, VecDeque<Timestamp>>,
    lists: BTreeMap<(u64, Kind), VecDeque<Timestamp>>,
    /// When each was heard or seen last.
    last: BTreeMap<u64, Timestamp>,
}

// === impl Paces ===

impl Paces {
    /// Judges that an agent opens a connection.
    pub(super) fn dialed(&mut self, life: u64, now: Timestamp) -> Verdict {
        self.heard(life, now);
        let times = self.sessions.entry(life).or_default();
        let within = note(times, now, SESSIONS_MAX);
        limit("sessions_are_paced", within >= SESSIONS_WITHIN, || {
            format!("{} sessions within {within:#}", SESSIONS_MAX + 1)
        })
    }

    /// Judges that an agent begins a list.
    pub(super) fn listed(&mut self, life: u64, kind: Kind, now: Timestamp) -> Verdict {
        let times = self.lists.entry((life, kind)).or_default();
        let within = note(times, now, LISTS_MAX);
        limit("lists_are_paced", within >= LISTS_WITHIN, || {
            format!("{} lists of {kind:?} within {within:#}", LISTS_MAX + 1)
        })
    }

    /// Notes that an agent heard something.
    pub(super) fn heard(&mut self, life: u64, now: Timestamp) {
        self.last.insert(life, now);
    }

    /// Judges how long agents have waited.
    pub(super) fn judge_silence(&self, now: Timestamp) -> Verdict {
        let longest = self.last.values().map(|last| now.duration_since(*last));
        let longest = longest.max().unwrap_or_default();
        limit("comes_back", longest <= AWAY_MAX + SLACK, || {
            format!("an agent has been away for {longest:#}")
        })
    }
}

/// Notes a time. Returns how long ago the one was that is so many before it; for ever, where there is none.
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
    fn third_list_within_ten_seconds_is_too_many() {
        let mut paces = Paces::default();
        for seconds in [0, 9, 10, 20] {
            assert_eq!(paces.listed(1, Kind::Pod, at(seconds)), Ok(()));
        }
        assert_eq!(paces.listed(2, Kind::Pod, at(20)), Ok(()), "another agent");
        let verdict = paces.listed(1, Kind::Pod, at(20));
        assert_eq!(verdict, Ok(()), "ten seconds after the one before the last");
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
