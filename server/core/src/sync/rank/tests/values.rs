//! The values of pods next to the cut, as people read them.

use super::*;

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
