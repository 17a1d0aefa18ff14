//! The contract's fields, one by one and at random.

use decree_core::ResourceVersion;
use proptest::prelude::*;
use prost_types::Timestamp as Time;

use super::*;

fn pod() -> v1::Pod {
    v1::Pod {
        namespace: "default".into(),
        name: "web-1".into(),
        uid: "u1".into(),
        resource_version: "7".into(),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        ..v1::Pod::default()
    }
}

fn replica_set() -> v1::ReplicaSet {
    v1::ReplicaSet {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u0".into(),
        selector: Some(v1::LabelSelector {
            match_labels: [("app".to_owned(), "web".to_owned())].into(),
            ..v1::LabelSelector::default()
        }),
        template_labels: [("app".to_owned(), "web".to_owned())].into(),
        ..v1::ReplicaSet::default()
    }
}

/// The pod with a change, which is valid.
fn changed(change: impl FnOnce(&mut v1::Pod)) -> decree_core::Pod {
    let mut pod = pod();
    change(&mut pod);
    decode::pod(&pod).expect("valid")
}

fn named(set: &v1::ReplicaSet) -> decree_core::ReplicaSet {
    decode::replica_set(set).expect("it can be named")
}

#[test]
fn options_that_are_absent_keep_the_default_and_others_count() {
    let base = decree_core::Config::default();
    let chosen = v1::Options {
        burst_replicas: Some(7),
        slow_start_initial: Some(3),
        delete_by_version: Some(true),
        create_back_off: Some(false),
        unassigned_pods_max: Some(50),
        unassigned_creates_per_second: None,
    };
    for (options, expected) in [
        (chosen, ((7, 3), (true, false), Some((50, 20)))),
        (v1::Options::default(), ((500, 1), (false, true), None)),
    ] {
        let config = report::options(Some(&options), base.clone()).expect("all are in range");
        let replicas = (config.burst_replicas, config.slow_start_initial);
        let switches = (config.delete_by_version, config.create_back_off);
        let brake = config.brake.map(|it| (it.pods, it.per_second));
        assert_eq!((replicas, switches, brake), expected);
    }
}

#[test]
fn whole_pod_is_read() {
    let time = |seconds, nanos| Some(Time { seconds, nanos });
    let pod = changed(|pod| {
        pod.creation_timestamp = time(-1, 0);
        pod.deletion_timestamp = time(0, 0);
        pod.node_name = "node-a".into();
        pod.set_phase(v1::PodPhase::Running);
        pod.ready = Some(v1::ReadyCondition {
            ready: true,
            last_transition_time: time(5, 1),
        });
        pod.deletion_cost = Some("-10".into());
        pod.max_regular_restarts = 2;
        pod.max_sidecar_restarts = 3;
        pod.disruption_target = true;
        pod.waiting_reason = "é".repeat(65);
    });
    assert_eq!(pod.version, Some(ResourceVersion(7)));
    assert_eq!(pod.node.as_deref(), Some("node-a"));
    assert_eq!(pod.waiting.as_deref(), Some(&*"é".repeat(64)), "it is cut");
    let (state, time) = (pod.state, decree_core::Timestamp);
    assert_eq!(state.created, Some(time(-1_000_000_000)));
    assert_eq!(state.ready.since, Some(time(5_000_000_001)));
    assert_eq!(state.deletion_cost, -10);
    assert_eq!((state.restarts, state.sidecar_restarts), (2, 3));
    assert!(state.deleting && state.ready.ready && state.disruption_target);
}

#[test]
fn cost_is_of_others_unless_it_is_marked_as_advice() {
    for (cost, advised, of_others) in [
        (None, None, false),
        (Some("7"), None, true),
        (Some("7"), Some("7"), false),
        (Some("7"), Some("8"), true),
        (None, Some("8"), false),
    ] {
        let pod = changed(|pod| {
            pod.deletion_cost = cost.map(Into::into);
            pod.advised_cost = advised.map(Into::into);
        });
        assert_eq!(pod.state.foreign_cost, of_others, "{cost:?} {advised:?}");
    }
}

#[test]
fn absent_fields_of_a_pod_have_their_meaning() {
    let pod = changed(|pod| {
        pod.resource_version.clear();
        pod.phase = 77;
    });
    assert_eq!(
        (pod.version, pod.node, pod.waiting, pod.controller),
        (None, None, None, None)
    );
    assert_eq!(pod.state.phase, decree_core::Phase::Other);
    assert_eq!((pod.state.deletion_cost, pod.state.created), (0, None));
    assert!(!pod.state.ready.ready && !pod.state.deleting);
}

#[test]
fn deletion_cost_that_is_no_number_is_0() {
    for strange in ["", "+1", "008", "1.5", "2147483648", "many"] {
        let pod = changed(|pod| pod.deletion_cost = Some(strange.into()));
        assert_eq!(pod.state.deletion_cost, 0, "{strange:?}");
    }
}

#[test]
fn all_violations_are_told_at_once_and_labels_in_order() {
    let labels = [("b c", "-"), ("a c", "ok")];
    let bad = v1::Pod {
        name: "Web".into(),
        labels: labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        max_regular_restarts: -1,
        ..pod()
    };
    let violations = decode::pod(&bad).expect_err("four faults");
    let told = violations.iter().map(|it| (it.field.as_str(), it.fault));
    let expected = [
        ("name", Fault::Name),
        ("labels[a c]", Fault::LabelKey),
        ("labels[b c]", Fault::LabelKey),
        ("labels[b c]", Fault::LabelValue),
        ("max_regular_restarts", Fault::Range),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn replicas_absent_mean_one() {
    assert_eq!(named(&replica_set()).replicas, 1);
}

#[test]
fn conditions_without_end_are_quarantined() {
    let condition = v1::ReplicaSetCondition {
        r#type: "Noise".into(),
        message: "x".repeat(200_000),
        ..v1::ReplicaSetCondition::default()
    };
    let status = v1::ReplicaSetStatus {
        conditions: vec![condition],
        ..v1::ReplicaSetStatus::default()
    };
    let set = named(&v1::ReplicaSet {
        status: Some(status),
        ..replica_set()
    });
    let quarantine = set.selector.expect_err("too long");
    assert_eq!(quarantine.field, "status.conditions");
    assert!(set.status.conditions.is_empty());
}

/// Reads an outcome that is valid.
fn result_of(outcome: v1::outcome::Outcome) -> decree_core::OperationResult {
    let (outcome, _) = decode::outcome(v1::Outcome {
        batch_id: 1,
        operation: 2,
        outcome: Some(outcome),
    })
    .expect("valid");
    outcome.result
}

fn failed(class: i32, message: String) -> decree_core::OperationResult {
    result_of(v1::outcome::Outcome::Failed(v1::Failed {
        failure_class: class,
        message,
        retry_after: None,
    }))
}

#[test]
fn unknown_failure_is_unavailable_and_unknown_cause_a_guard() {
    use decree_core::{FailureClass, NotStarted, OperationResult};
    let OperationResult::Failed { class, .. } = failed(99, "?".into()) else {
        panic!()
    };
    assert_eq!(class, FailureClass::Unavailable);
    let unknown = v1::outcome::Outcome::NotStarted(v1::NotStarted::default());
    let expected = OperationResult::NotStarted(NotStarted::Guard(String::new()));
    assert_eq!(result_of(unknown), expected);
}

#[test]
fn words_of_the_cluster_are_cut_at_a_character() {
    let message = format!("{}é", "x".repeat(32 * 1024 - 1));
    let decree_core::OperationResult::Failed { message, .. } = failed(4, message) else {
        panic!()
    };
    assert_eq!(message.len(), 32 * 1024 - 1);
}

/// Seconds whose nanoseconds fit into a time of the core.
const KEPT_SECONDS: std::ops::Range<i64> = -9_000_000_000..9_000_000_000;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_time_is_read_or_refused_and_comes_back(
        seconds in prop_oneof![any::<i64>(), KEPT_SECONDS],
        nanos in prop_oneof![any::<i32>(), 0..1_000_000_000_i32],
    ) {
        let read = decode::timestamp("decide_time", Some(&Time { seconds, nanos }));
        prop_assert_eq!(read.is_ok(), (0..1_000_000_000).contains(&nanos));
        if let Ok(Some(time)) = read {
            let same = encode::time(time) == Time { seconds, nanos };
            prop_assert!(same || !KEPT_SECONDS.contains(&seconds));
        }
    }

    #[test]
    fn any_version_is_read_exactly_or_refused(text in "\\PC{0,22}|[0-9]{1,21}") {
        let read = decode::version("v", &text);
        let exact = text.parse::<u64>().is_ok_and(|number| number > 0 && number.to_string() == text);
        prop_assert_eq!(read.is_ok(), exact || text.is_empty());
    }
}
