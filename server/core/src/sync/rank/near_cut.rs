//! The pods on both sides of the cut of a deletion, with all that the order of deletion compares: for people who ask why these went.

use std::sync::Arc;

use super::{
    Head,
    candidate::{Candidate, bucket},
    reason::{explain, name},
};
use crate::{
    compact_uid::CompactUid,
    object::{PodState, Timestamp},
    reason::{Reason, Rule},
};

/// How many of the pods that go are compared, those next to the cut, and how many of those that stay.
const GO_MAX: usize = 20;
pub(super) const STAY_MAX: usize = 5;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A pod next to the cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedPod {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: CompactUid,
    /// Its node; `None` while it is unassigned.
    pub node: Option<Box<str>>,
    /// Its plain values.
    pub state: PodState,
    /// How many active related pods its node has (spec 7.3).
    pub rank: u32,
    /// When it was compared.
    pub at: Timestamp,
    /// Whether it was chosen.
    pub chosen: bool,
    /// What sets it apart from the next one; `None` for the last.
    pub reason: Option<Reason>,
}

/// Compares the pods next to the cut behind the first `count`.
pub(super) fn compare<I: Copy>(
    head: &Head,
    candidates: &[Candidate<'_, I>],
    count: usize,
    (now, name): (Timestamp, &dyn Fn(I) -> Arc<str>),
) -> Vec<RankedPod> {
    let Head { order, holders } = head;
    let near = count.saturating_sub(GO_MAX)..order.len();
    let compared = near.map(|at| {
        let pod = &candidates[order[at]];
        let reason = order.get(at + 1).map(|next| {
            let (rule, detail) = explain(pod, &candidates[*next], &candidates[holders[at]], now);
            Reason { rule, detail }
        });
        RankedPod {
            reason,
            chosen: at < count,
            ..ranked(pod, now, name(pod.id))
        }
    });
    compared.collect()
}

/// Returns the last of pods that all go, which nothing sets apart.
pub(super) fn all<I: Copy>(
    candidates: &[Candidate<'_, I>],
    (now, name): (Timestamp, &dyn Fn(I) -> Arc<str>),
) -> Vec<RankedPod> {
    let last = &candidates[candidates.len().saturating_sub(GO_MAX)..];
    let pods = last.iter().map(|pod| ranked(pod, now, name(pod.id)));
    pods.collect()
}

fn ranked<I>(pod: &Candidate<'_, I>, at: Timestamp, name: Arc<str>) -> RankedPod {
    RankedPod {
        name,
        uid: pod.uid.clone(),
        node: pod.node.map(Into::into),
        state: *pod.state,
        rank: pod.rank,
        at,
        chosen: true,
        reason: None,
    }
}

// === impl RankedPod ===

impl RankedPod {
    /// Returns what each rule compares of it, in the order of the rules.
    #[must_use]
    pub fn values(&self) -> [(Rule, String); 9] {
        let now = self.at;
        let PodState {
            created,
            phase,
            ready,
            deletion_cost,
            restarts,
            sidecar_restarts,
            ..
        } = self.state;
        let node = self.node.as_deref();
        let crowd = match node {
            Some(node) => format!("{} on {node}", self.rank),
            None => format!("{} unassigned", self.rank),
        };
        let ready_for = match ready.ready {
            true => age(bucket(ready.since, now)),
            false => "not ready".to_owned(),
        };
        let restarts = match sidecar_restarts {
            0 => restarts.to_string(),
            sidecars => format!("{restarts}, sidecars {sidecars}"),
        };
        let says = |is: bool, yes: &str, no: &str| if is { yes } else { no }.to_owned();
        [
            (
                Rule::Unassigned,
                says(node.is_some(), "assigned", "unassigned"),
            ),
            (Rule::Phase, name(phase).to_owned()),
            (Rule::NotReady, says(ready.ready, "ready", "not ready")),
            (Rule::DeletionCost, deletion_cost.to_string()),
            (Rule::CrowdedNode, crowd),
            (Rule::ReadyRecently, ready_for),
            (Rule::Restarts, restarts),
            (Rule::CreatedRecently, age(bucket(created, now))),
            (Rule::Uid, self.uid.to_string()),
        ]
    }
}

/// Returns the ages that a bucket holds, which are compared as equal.
fn age(bucket: u8) -> String {
    let Some(log) = bucket.checked_sub(2) else {
        return if bucket == 0 { "unknown" } else { "0 s" }.to_owned();
    };
    let (from, below) = (1_u64 << log, 1_u64 << (log + 1));
    let (unit, word) = match below {
        _ if below < MILLISECOND => return "under 1 ms".to_owned(),
        _ if below < 2 * SECOND => (MILLISECOND, "ms"),
        _ if below < 10 * MINUTE => (SECOND, "s"),
        _ if below < 10 * HOUR => (MINUTE, "min"),
        _ if below < 10 * DAY => (HOUR, "h"),
        _ => (DAY, "d"),
    };
    let rounded = |time: u64| (time + unit / 2) / unit;
    format!("{}-{} {word}", rounded(from), rounded(below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Phase, Ready, Span};

    const NOW: Timestamp = Timestamp::from_seconds(1_000_000);

    #[test]
    fn ages_are_said_by_the_bucket_in_which_they_are_equal() {
        let said = |ago: i64| age(bucket(Some(Timestamp(NOW.0 - ago)), NOW));
        let second = 1_000_000_000;
        for (ago, expected) in [
            (0, "0 s"),
            (1_000, "under 1 ms"),
            (300_000_000, "268-537 ms"),
            (70 * second, "69-137 s"),
            (137 * second, "69-137 s"),
            (138 * second, "137-275 s"),
            (3_600 * second, "37-73 min"),
            (100_000 * second, "20-39 h"),
            (900_000 * second, "7-13 d"),
        ] {
            assert_eq!(said(ago), expected, "{ago}");
        }
        assert_eq!(age(bucket(None, NOW)), "unknown");
        assert_eq!(age(64), "53376-106752 d");
    }

    #[test]
    fn each_rule_has_a_value_in_the_order_of_the_rules() {
        let pod = RankedPod {
            name: "a".into(),
            uid: CompactUid::of("u"),
            node: Some("node-b".into()),
            state: PodState {
                created: Some(NOW),
                phase: Phase::Running,
                ready: Ready {
                    ready: true,
                    since: Some(Timestamp(NOW.0 - Span::seconds(70).0)),
                },
                deletion_cost: -10,
                restarts: 3,
                sidecar_restarts: 1,
                ..PodState::default()
            },
            rank: 7,
            at: NOW,
            chosen: true,
            reason: None,
        };
        let values = pod.values();
        assert!(values.is_sorted_by_key(|(rule, _)| *rule));
        let said = values.map(|(_, value)| value);
        let expected = [
            "assigned",
            "Running",
            "ready",
            "-10",
            "7 on node-b",
            "69-137 s",
            "3, sidecars 1",
            "0 s",
            "u",
        ];
        assert_eq!(said, expected);
        let pending = RankedPod {
            node: None,
            state: PodState::default(),
            ..pod
        };
        let said = pending.values().map(|(_, value)| value);
        assert_eq!(said[..3], ["unassigned", "Pending", "not ready"]);
        assert_eq!(said[4..6], ["7 unassigned", "not ready"]);
    }
}
