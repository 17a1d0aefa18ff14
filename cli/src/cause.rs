//! The cause of a ReplicaSet's state in the words of the server, and its format in sentences and tables.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use decree_api::v1::{self, FailureClass, Rule, Severity, timeline_entry::Entry};
use decree_core::wording::count;
use jiff::Timestamp;

use crate::{age, page::STATES, table::NONE};

/// The minimum number of ReplicaSets for one line about a cause that they share.
const GROUP_MIN: usize = 4;

/// The uid and the name of a cluster, and a cause in it.
type Group<'a> = (&'a str, &'a str, &'a str);

/// The causes that at least [`GROUP_MIN`] ReplicaSets of a cluster share, the most frequent first, each with their number.
pub(crate) struct Groups<'a> {
    shared: Vec<(Group<'a>, usize)>,
    has_clusters: bool,
}

/// The word of the console for how much a ReplicaSet needs a person.
pub(crate) fn state(set: &v1::ReplicaSetSummary) -> &'static str {
    let known = STATES.iter().find(|(it, _)| *it == severity(set));
    known.map_or("Unknown", |(_, word)| word)
}

/// The cause and the time of the next attempt; empty without a cause.
pub(crate) fn sentence(set: &v1::ReplicaSetSummary, now: Timestamp) -> String {
    let Some(cause) = &set.cause else {
        return String::new();
    };
    match retry(set, now) {
        Some(retry) => format!("{}, {retry}", cause.text),
        None => cause.text.clone(),
    }
}

/// The cause for a table with a column for the state.
pub(crate) fn cell(set: &v1::ReplicaSetSummary, now: Timestamp) -> String {
    match sentence(set, now) {
        said if said == state(set) => NONE.to_owned(),
        said => said,
    }
}

/// The command that shows more. `None` for `decree explain`, because this is for the output of that command.
pub(crate) fn next_command(set: &v1::ReplicaSetSummary) -> Option<&str> {
    let command = set.cause.as_ref().map(|cause| cause.next_command.as_str());
    command.filter(|it| !it.is_empty() && !it.starts_with("decree explain "))
}

/// The words of the cluster, or of the component that held the last attempt back.
pub(crate) fn words(set: &v1::ReplicaSetSummary) -> &str {
    if !set.failure.is_empty() {
        return &set.failure;
    }
    let is_obstacle =
        |it: &&v1::Reason| [Rule::RefusedByAgent, Rule::Throttled].contains(&it.rule());
    let obstacle = set.reasons.iter().find(is_obstacle);
    obstacle.map_or("", |reason| &reason.detail)
}

/// The reasons why pods are not ready, or have ended, each with its number of pods; `None` without any.
pub(crate) fn not_ready(set: &v1::ReplicaSetSummary, ended: bool) -> Option<String> {
    let groups = set.not_ready.iter().filter(|it| it.ended == ended);
    let groups = groups.map(|it| match it.reason.as_str() {
        "" => count(it.pods, "other").to_string(),
        reason => format!("{} {reason}", it.pods),
    });
    let groups: Vec<_> = groups.collect();
    (!groups.is_empty()).then(|| groups.join(", "))
}

/// Whether a ReplicaSet has not converged, so that its last refusal is current.
pub(crate) fn is_open(set: &v1::ReplicaSetSummary) -> bool {
    severity(set) != Severity::InSync
}

/// The sort key that puts the ReplicaSets first that most need a person, and among them those that have not converged for longest. The
/// sort keeps the order of equal ones.
pub(crate) fn rank(set: &v1::ReplicaSetSummary) -> (i32, i64) {
    let severity = Some(severity(set)).filter(|it| *it != Severity::Unspecified);
    let severity = severity.map_or(i32::MAX, i32::from);
    let since = set.diverge_time.as_ref();
    (severity, since.map_or(i64::MAX, |since| since.seconds))
}

/// The mode of an agent beside another controller or without effect; `None` if it acts.
pub(crate) const fn mode_without_effect(mode: v1::Mode) -> Option<&'static str> {
    match mode {
        v1::Mode::Unspecified | v1::Mode::Enforce => None,
        v1::Mode::Shadow => Some("shadow"),
        v1::Mode::DryRun => Some("dry-run"),
        v1::Mode::Advise => Some("advise"),
    }
}

/// A line for the ReplicaSets of each cluster whose decisions are not executed.
pub(crate) fn watched(sets: &[v1::ReplicaSetSummary]) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for set in sets {
        if let Some(mode) = mode_without_effect(set.mode()) {
            let key = (&*set.cluster_uid, &*set.cluster, mode);
            *counts.entry(key).or_default() += 1;
        }
    }
    let lines = counts.into_iter().map(|((_, cluster, mode), number)| {
        let sets = count(number, "ReplicaSet");
        format!("{sets} of {cluster}: watched only ({mode} mode)")
    });
    lines.collect()
}

/// The time of the next attempt, if one is due.
fn retry(set: &v1::ReplicaSetSummary, now: Timestamp) -> Option<String> {
    let waits = |it: &v1::Reason| {
        [Rule::Backoff, Rule::PodsDoNotLast, Rule::ManyUnassigned].contains(&it.rule())
    };
    if !set.reasons.iter().any(waits) {
        return None;
    }
    let left = age::wire_time(set.next_sync_time.as_ref()?)?.duration_since(now);
    let left = Duration::try_from(left).unwrap_or_default();
    Some(match left.as_secs() + u64::from(left.subsec_nanos() > 0) {
        0 => "retry now".to_owned(),
        seconds => format!("retry in {}", age::human(Duration::from_secs(seconds))),
    })
}

fn severity(set: &v1::ReplicaSetSummary) -> Severity {
    set.cause
        .as_ref()
        .map_or(Severity::Unspecified, v1::Cause::severity)
}

fn group(set: &v1::ReplicaSetSummary) -> Option<Group<'_>> {
    let cause = set.cause.as_ref().filter(|it| !it.group.is_empty())?;
    Some((&*set.cluster_uid, &*set.cluster, &*cause.group))
}

impl<'a> Groups<'a> {
    pub(crate) fn of(sets: &'a [v1::ReplicaSetSummary]) -> Self {
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        for group in sets.iter().filter_map(group) {
            *counts.entry(group).or_default() += 1;
        }
        let clusters = counts.keys().map(|(uid, ..)| uid);
        let has_clusters = clusters.clone().max() != clusters.min();
        let mut shared: Vec<_> = counts.into_iter().collect();
        shared.retain(|(_, count)| *count >= GROUP_MIN);
        shared.sort_by_key(|(_, count)| Reverse(*count));
        Self {
            shared,
            has_clusters,
        }
    }

    pub(crate) fn has(&self, set: &v1::ReplicaSetSummary) -> bool {
        group(set).is_some_and(|group| self.shared.iter().any(|it| it.0 == group))
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.shared.iter().map(|((_, cluster, group), count)| {
            let of = self.has_clusters.then(|| format!(" of {cluster}"));
            format!("{count} ReplicaSets{}: {group}", of.unwrap_or_default())
        })
    }
}

/// Why the cluster refused the newest attempt, in its words, and since when. `None` if it did not refuse.
pub(crate) fn newest_refusal(timeline: &[v1::TimelineEntry]) -> Option<String> {
    let answered = timeline.iter().find_map(|entry| match &entry.entry {
        Some(Entry::Answered(answered)) => Some((entry, answered)),
        _ => None,
    });
    let (entry, answered) = answered?;
    // A failure that is decided again at once is worth a word only if it comes back.
    if answered.failed == 0 || (answered.times < 2 && !is_refusal(answered.failure_class())) {
        return None;
    }
    let mut text = failure_class(answered).to_owned();
    if answered.times > 1 {
        let since = age::time_text(entry.event_time.as_ref());
        text.push_str(&format!(", {} times since {since}", answered.times));
    }
    match answered.message.as_str() {
        "" => Some(text),
        message => Some(format!("{text}: {message}")),
    }
}

/// Whether a failure lasts until something changes. Other failures are decided again at once, or after a delay.
fn is_refusal(class: FailureClass) -> bool {
    let others = [
        FailureClass::Unspecified,
        FailureClass::NameTaken,
        FailureClass::Precondition,
        FailureClass::Conflict,
        FailureClass::Throttled,
        FailureClass::OwnerChanged,
    ];
    !others.contains(&class)
}

/// The word of a failure, such as `QUOTA`.
pub(crate) fn failure_class(answered: &v1::Answered) -> &'static str {
    let class = answered.failure_class().as_str_name();
    class.strip_prefix("FAILURE_CLASS_").unwrap_or(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(severity: Severity, text: &str, group: &str) -> v1::ReplicaSetSummary {
        let cause = v1::Cause {
            severity: severity.into(),
            text: text.to_owned(),
            group: group.to_owned(),
            next_command: String::new(),
        };
        v1::ReplicaSetSummary {
            cause: Some(cause),
            ..v1::ReplicaSetSummary::default()
        }
    }

    #[test]
    fn time_of_the_next_attempt_stands_behind_the_cause() {
        let now = Timestamp::from_second(1_000).expect("a time");
        let mut blocked = set(Severity::Blocked, "Quota exceeded", "");
        blocked.next_sync_time = Some(prost_types::Timestamp {
            seconds: 1_007,
            nanos: 1,
        });
        assert_eq!(sentence(&blocked, now), "Quota exceeded");
        blocked.reasons.push(v1::Reason {
            rule: Rule::Backoff.into(),
            ..v1::Reason::default()
        });
        for (second, retry) in [
            (1_000, "retry in 8s"),
            (1_008, "retry now"),
            (700, "retry in 5m8s"),
        ] {
            let now = Timestamp::from_second(second).expect("a time");
            assert_eq!(sentence(&blocked, now), format!("Quota exceeded, {retry}"));
        }
    }

    #[test]
    fn cause_that_says_no_more_than_the_state_is_left_out() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(cell(&set(Severity::InSync, "In sync", ""), now), "-");
        let told = "Creates 1 of 2 pods";
        assert_eq!(cell(&set(Severity::Working, told, ""), now), told);
    }

    #[test]
    fn modes_without_effect_are_told_once_for_each_cluster() {
        let mut sets = vec![set(Severity::InSync, "In sync", ""); 4];
        assert_eq!(watched(&sets), [""; 0]);
        for (set, cluster) in sets.iter_mut().zip(["a", "a", "b"]) {
            set.cluster = cluster.to_owned();
            set.set_mode(v1::Mode::Shadow);
        }
        sets[2].set_mode(v1::Mode::DryRun);
        sets[3].set_mode(v1::Mode::Enforce);
        let lines = [
            "2 ReplicaSets of a: watched only (shadow mode)",
            "1 ReplicaSet of b: watched only (dry-run mode)",
        ];
        assert_eq!(watched(&sets), lines);
    }

    #[test]
    fn cause_of_many_is_told_once() {
        let mut sets = vec![set(Severity::Blocked, "a", "Quota exceeded"); 3];
        sets.extend(vec![set(Severity::Blocked, "b", ""); 9]);
        let lines = |sets: &[_]| Groups::of(sets).lines().collect::<Vec<_>>();
        assert_eq!(lines(&sets), [""; 0]);
        sets.push(sets[0].clone());
        sets.extend(vec![set(Severity::Slow, "c", "Namespace ends"); 5]);
        let (first, second) = (
            "5 ReplicaSets: Namespace ends",
            "4 ReplicaSets: Quota exceeded",
        );
        assert_eq!(lines(&sets), [first, second]);
        sets[0].cluster_uid = "other".to_owned();
        sets[0].cluster = "west".to_owned();
        assert_eq!(lines(&sets), ["5 ReplicaSets of : Namespace ends"]);
    }
}
