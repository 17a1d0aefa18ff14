//! The values of pods next to the cut, as people read them.

use super::*;

#[test]
fn each_rule_has_a_value_in_the_order_of_the_rules() {
    let pod = RankedPod {
        name: "a".into(),
        uid: Uid("u".into()),
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
        preferred: Box::default(),
        asked: None,
        at: NOW,
        chosen: true,
        reason: None,
    };
    let values = pod.values();
    assert!(values.is_sorted_by_key(|(rule, _)| *rule));
    let said: Vec<_> = values.into_iter().map(|(_, value)| value).collect();
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
    let said = pending.values().into_iter().map(|(_, value)| value);
    let said: Vec<_> = said.collect();
    assert_eq!(said[..3], ["unassigned", "Pending", "not ready"]);
    assert_eq!(said[4..6], ["7 unassigned", "not ready"]);
}

#[test]
fn preferences_have_values_before_the_cost_and_each_rule_once() {
    let values = |pod: &TestPod| {
        let candidates = [pod.candidate()];
        let Choice { near_cut, .. } = choose(&candidates, 1, NOW, &|uid| uid.into());
        let values = near_cut[0].values().into_iter().skip(2).take(5);
        let said = values.map(|(rule, value)| format!("{rule:?} {value}"));
        said.collect::<Vec<_>>().join(", ")
    };
    let mut pod = pod("u label=a:x beside=3 created=7200");
    pod.preferences = preferences("oldest-stays a:y consolidate a:x oldest-stays");
    let said = "NotReady ready, Youngest 2h0m, First a=x, EmptiestNode 3 on n, DeletionCost 0";
    assert_eq!(values(&pod), said);
    pod.labels = Labels::default();
    pod.node = None;
    let said =
        "NotReady ready, Youngest 2h0m, First none, EmptiestNode 3 unassigned, DeletionCost 0";
    assert_eq!(values(&pod), said);
}

#[test]
fn ages_are_said_by_the_bucket_in_which_they_are_equal() {
    let said = |created: Option<Timestamp>| {
        let mut pod = pod("a");
        pod.state.created = created;
        let candidates = [pod.candidate()];
        let Choice { near_cut, .. } = choose(&candidates, 1, NOW, &|uid| uid.into());
        let mut values = near_cut[0].values().into_iter();
        let age = values.find(|(rule, _)| *rule == Rule::CreatedRecently);
        age.expect("each rule has a value").1
    };
    let second = 1_000_000_000;
    for (nanoseconds, expected) in [
        (0, "0 s"),
        (1_000, "under 1 ms"),
        (300_000_000, "268-537 ms"),
        (70 * second, "69-137 s"),
        (137 * second, "69-137 s"),
        (138 * second, "137-275 s"),
        (3_600 * second, "37-73 min"),
        (100_000 * second, "20-39 h"),
        (900_000 * second, "7-13 d"),
        (1 << 62, "53376-106752 d"),
    ] {
        assert_eq!(said(ago_ns(nanoseconds)), expected, "{nanoseconds}");
    }
    assert_eq!(said(None), "unknown");
}
