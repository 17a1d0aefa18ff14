//! The steps of a responder, by the Eviction, the pod and its ReplicaSet.

use agent_kube::{Expected, RESPONDER, objects};
use serde_json::{Value, json};

use super::*;

/// Ten seconds after the responder has become active.
const NOW: &str = "2026-11-30T12:00:10Z";

fn eviction(state: &str, report: Value) -> Eviction {
    let other = "imperative-eviction.k8s.io/evictor";
    let mut own = json!({"name": RESPONDER, "startTime": "2026-11-30T12:00:00Z"});
    own["heartbeatTime"] = report;
    let eviction = json!({
        "metadata": {"namespace": "shop", "name": "web-1", "resourceVersion": "7"},
        "spec": {"target": {"pod": {"name": "web-1", "uid": "u1"}}},
        "status": {
            "targetResponders": [
                {"name": other, "state": "Inactive"}, {"name": RESPONDER, "state": state},
            ],
            "responders": [{"name": other}, own],
        },
    });
    serde_json::from_value(eviction).expect("it is one")
}

/// A pod that was ready after half a minute.
fn pod(changes: &[(&str, Value)]) -> v1::Pod {
    let mut pod = json!({
        "metadata": {"namespace": "shop", "name": "web-1", "uid": "u1", "annotations": {}, "creationTimestamp": "2026-11-30T11:00:00Z"},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T11:00:30Z"},
        ]},
    });
    for (path, value) in changes {
        *pod.pointer_mut(path).expect("it is there") = value.clone();
    }
    objects::pod(&pod).expect("it is one")
}

fn set(surge: i32) -> v1::ReplicaSet {
    v1::ReplicaSet {
        min_ready_seconds: 5,
        preferences: Some(v1::Preferences {
            surge: Some(surge),
            ..v1::Preferences::default()
        }),
        ..v1::ReplicaSet::default()
    }
}

#[test]
fn steps_follow_from_the_eviction_the_pod_and_its_replica_set() {
    let time = |text: &str| text.parse::<Timestamp>().expect("it is one");
    let works = |until: Option<&str>| Some(Progress::Works(until.map(time)));
    let ready = pod(&[]);
    let leaving = pod(&[("/metadata/annotations", json!({"decree.dev/leaving": ""}))]);
    let waiting = pod(&[("/status/conditions", json!([]))]);
    let mut odd = ready.clone();
    let since = odd.ready.as_mut();
    let since = since.and_then(|it| it.last_transition_time.as_mut());
    since.expect("it is there").seconds = i64::MIN;
    let (surging, bare) = (set(1), set(0));
    let (first, later) = (Value::Null, json!("2026-11-30T12:00:00Z"));
    let estimate = Some("2026-11-30T12:00:35Z");
    let replaced = |pod| (Some(pod), Some(&surging));
    let (soon, late) = ("2026-11-30T12:00:20Z", "2026-11-30T12:01:00Z");
    let ended = Some(Progress::Completed(ENDED));
    let not_ours = Some(Progress::Completed(NOT_OURS));
    for (report, found, now, announces, reports) in [
        (&first, replaced(&ready), NOW, true, works(estimate)),
        (&first, replaced(&leaving), NOW, false, works(estimate)),
        (&first, replaced(&waiting), NOW, true, works(None)),
        (&first, replaced(&odd), NOW, true, works(None)),
        (&later, replaced(&leaving), NOW, false, None),
        (&later, replaced(&leaving), soon, false, works(estimate)),
        (&later, replaced(&leaving), late, false, works(None)),
        (&later, (None, None), NOW, false, ended),
        (&first, (Some(&ready), Some(&bare)), NOW, false, not_ours),
        (&first, (Some(&ready), None), NOW, false, not_ours),
    ] {
        let expected = Step { announces, reports };
        let eviction = eviction("Active", report.clone());
        assert_eq!(step(&eviction, found, time(now)), expected, "{found:?}");
    }
}

#[test]
fn work_is_expected_of_an_active_responder_alone() {
    for (state, expected) in [
        ("Inactive", Expected::Nothing),
        ("Active", Expected::Work),
        ("Interrupted", Expected::End),
        ("Canceled", Expected::End),
        ("Completed", Expected::Nothing),
        ("Tomorrow", Expected::Nothing),
    ] {
        assert_eq!(eviction(state, Value::Null).expected(), expected, "{state}");
    }
}
