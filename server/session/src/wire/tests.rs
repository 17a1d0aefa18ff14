//! The contract's fields, one by one and at random.

use proptest::prelude::*;
use prost::Message;
use prost_types::Timestamp as Time;
use server_core::{Kind, ResourceVersion};

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

#[test]
fn options_that_are_absent_keep_the_default_and_others_count() {
    let base = server_core::Config::default();
    let chosen = v1::Options {
        burst_replicas: Some(7),
        slow_start_initial: Some(3),
        delete_by_version: Some(true),
        create_back_off: Some(false),
        unassigned_pods_max: Some(50),
        unassigned_creates_per_second: None,
    };
    let config = report::options(Some(&chosen), base.clone()).expect("all are in range");
    assert_eq!(
        (
            config.burst_replicas,
            config.slow_start_initial,
            config.delete_by_version,
            config.create_back_off,
            config.brake.map(|it| (it.pods, it.per_second))
        ),
        (7, 3, true, false, Some((50, 20)))
    );
    let config =
        report::options(Some(&v1::Options::default()), base).expect("none is out of range");
    assert_eq!(
        (
            config.burst_replicas,
            config.slow_start_initial,
            config.delete_by_version,
            config.create_back_off,
            config.brake
        ),
        (500, 1, false, true, None)
    );
}

#[test]
fn whole_pod_is_read() {
    let since = Time {
        seconds: 5,
        nanos: 1,
    };
    let pod = decode::pod(&v1::Pod {
        created: Some(Time {
            seconds: -1,
            nanos: 0,
        }),
        deleted: Some(Time::default()),
        node_name: "node-a".into(),
        phase: v1::PodPhase::Running.into(),
        ready: Some(v1::ReadyCondition {
            ready: true,
            since: Some(since),
        }),
        deletion_cost: Some("-10".into()),
        max_regular_restarts: 2,
        max_sidecar_restarts: 3,
        disruption_target: true,
        ..pod()
    })
    .expect("valid");
    assert_eq!(pod.version, Some(ResourceVersion(7)));
    assert_eq!(
        pod.state.created,
        Some(server_core::Timestamp(-1_000_000_000))
    );
    assert_eq!(
        pod.state.ready.since,
        Some(server_core::Timestamp(5_000_000_001))
    );
    assert_eq!(pod.node.as_deref(), Some("node-a"));
    assert_eq!(
        (
            pod.state.deletion_cost,
            pod.state.restarts,
            pod.state.sidecar_restarts
        ),
        (-10, 2, 3)
    );
    assert!(pod.state.deleting && pod.state.ready.ready && pod.state.disruption_target);
}

#[test]
fn absent_fields_of_a_pod_have_their_meaning() {
    let pod = decode::pod(&v1::Pod {
        resource_version: String::new(),
        ..pod()
    })
    .expect("valid");
    assert_eq!(
        (pod.version, pod.node, pod.state.created, pod.controller),
        (None, None, None, None)
    );
    assert_eq!(pod.state.phase, server_core::Phase::Other);
    assert_eq!(pod.state.deletion_cost, 0);
    assert!(!pod.state.ready.ready && !pod.state.deleting);
}

#[test]
fn deletion_cost_that_is_no_number_is_0() {
    for strange in ["", "+1", "008", "1.5", "2147483648", "many"] {
        let pod = decode::pod(&v1::Pod {
            deletion_cost: Some(strange.into()),
            ..pod()
        });
        assert_eq!(pod.expect("valid").state.deletion_cost, 0, "{strange:?}");
    }
}

#[test]
fn all_violations_are_told_at_once_and_labels_in_order() {
    let bad = v1::Pod {
        name: "Web".into(),
        labels: [
            ("b c".to_owned(), "-".to_owned()),
            ("a c".to_owned(), "ok".to_owned()),
        ]
        .into(),
        max_regular_restarts: -1,
        ..pod()
    };
    let violations = decode::pod(&bad).expect_err("four faults");
    let told: Vec<_> = violations
        .iter()
        .map(|told| (told.field.as_str(), told.fault))
        .collect();
    assert_eq!(
        told,
        [
            ("name", Fault::Name),
            ("labels[a c]", Fault::LabelKey),
            ("labels[b c]", Fault::LabelKey),
            ("labels[b c]", Fault::LabelValue),
            ("max_regular_restarts", Fault::Range),
        ]
    );
}

#[test]
fn labels_follow_kubernetes_syntax() {
    let labelled = |key: &str, value: &str| {
        decode::pod(&v1::Pod {
            labels: [(key.to_owned(), value.to_owned())].into(),
            ..pod()
        })
        .is_ok()
    };
    let long = "x".repeat(63);
    for key in ["a", "A-b_c.d", "example.com/app", long.as_str()] {
        assert!(labelled(key, ""), "{key}");
    }
    for key in [
        "",
        "-a",
        "a/",
        "/a",
        "a/b/c",
        "Example.com/app",
        &"x".repeat(64),
    ] {
        assert!(!labelled(key, "x"), "{key}");
    }
    assert!(labelled("a", &long) && labelled("a", "v1.0_x-y"));
    assert!(!labelled("a", &"x".repeat(64)) && !labelled("a", "x ") && !labelled("a", ".x"));
}

#[test]
fn replicas_absent_mean_one() {
    let set = decode::replica_set(&replica_set()).expect("valid");
    assert_eq!(set.replicas, 1);
}

#[test]
fn replica_set_that_no_api_server_would_admit_is_quarantined() {
    let why = |selector: Option<v1::LabelSelector>, labels: &[(&str, &str)]| {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let set = decode::replica_set(&v1::ReplicaSet {
            selector,
            template_labels: labels.collect(),
            ..replica_set()
        });
        let set = set.expect("it can be named");
        set.selector.expect_err("it is left alone").to_string()
    };
    let app = [("app", "web")];
    assert_eq!(why(None, &app), "selector: is required");
    let empty = why(Some(v1::LabelSelector::default()), &app);
    assert!(empty.starts_with("selector: is empty"), "{empty}");
    let unmet = why(replica_set().selector, &[("app", "wbe")]);
    assert_eq!(
        unmet,
        "template_labels: do not match the selector: the label app must be web"
    );
}

#[test]
fn replica_set_out_of_range_is_quarantined_and_keeps_its_name() {
    let negative = v1::ReplicaSet {
        replicas: Some(-1),
        ..replica_set()
    };
    let set = decode::replica_set(&negative).expect("it can be named");
    let quarantine = set.selector.expect_err("it is out of range");
    assert_eq!(quarantine.field, "replicas");
    assert_eq!(set.key.to_string(), "default/web");
    assert_eq!(set.replicas, 0);
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
    let set = decode::replica_set(&v1::ReplicaSet {
        status: Some(status),
        ..replica_set()
    });
    let set = set.expect("it can be named");
    assert_eq!(
        set.selector.expect_err("too long").field,
        "status.conditions"
    );
    assert!(set.status.conditions.is_empty());
}

#[test]
fn unknown_failure_is_unavailable_and_unknown_cause_a_guard() {
    let outcome = |outcome| {
        decode::outcome(v1::Outcome {
            batch_id: 1,
            operation: 2,
            outcome: Some(outcome),
        })
    };
    let failed = v1::Failed {
        class: 99,
        message: "?".into(),
        retry_after: None,
    };
    let (failed, _) = outcome(v1::outcome::Outcome::Failed(failed)).expect("valid");
    assert!(matches!(
        failed.result,
        server_core::OperationResult::Failed {
            class: server_core::FailureClass::Unavailable,
            ..
        }
    ));
    let (not_started, _) =
        outcome(v1::outcome::Outcome::NotStarted(v1::NotStarted::default())).expect("valid");
    assert_eq!(
        not_started.result,
        server_core::OperationResult::NotStarted(server_core::NotStarted::Guard(String::new()))
    );
}

#[test]
fn words_of_the_cluster_are_cut_at_a_character() {
    let message = format!("{}é", "x".repeat(32 * 1024 - 1));
    let failed = v1::Failed {
        class: 4,
        message,
        retry_after: None,
    };
    let outcome = Some(v1::outcome::Outcome::Failed(failed));
    let (outcome, _) = decode::outcome(v1::Outcome {
        batch_id: 1,
        operation: 0,
        outcome,
    })
    .expect("valid");
    let server_core::OperationResult::Failed { message, .. } = outcome.result else {
        panic!()
    };
    assert_eq!(message.len(), 32 * 1024 - 1);
}

#[test]
fn every_kind_of_field_fault_has_a_word_of_its_own() {
    let faults = [
        Fault::Required,
        Fault::Namespace,
        Fault::Name,
        Fault::Uid,
        Fault::Version,
        Fault::LabelKey,
        Fault::LabelValue,
        Fault::Time,
        Fault::Range,
        Fault::Enum,
        Fault::Text,
        Fault::Quarantined,
    ];
    let mut words: Vec<_> = faults.iter().map(|fault| fault.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), faults.len());
}

#[test]
fn kinds_that_are_not_known_are_refused() {
    assert_eq!(decode::kind("kind", 1), Ok(Kind::Pod));
    assert_eq!(
        decode::kind("kind", 0).map_err(|told| told.fault),
        Err(Fault::Required)
    );
    assert_eq!(
        decode::kind("kind", 9).map_err(|told| told.fault),
        Err(Fault::Enum)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_time_is_read_or_refused_and_comes_back(seconds: i64, nanos: i32) {
        let read = decode::timestamp("now", Some(&Time { seconds, nanos }));
        prop_assert_eq!(read.is_ok(), (0..1_000_000_000).contains(&nanos));
        if let Ok(Some(time)) = read {
            let kept = (-9_000_000_000..9_000_000_000).contains(&seconds);
            let same = encode::time(time) == Time { seconds, nanos };
            prop_assert!(!kept || same);
        }
    }

    #[test]
    fn any_version_is_read_exactly_or_refused(text in "\\PC{0,22}|[0-9]{1,21}") {
        let read = decode::version("v", &text);
        let exact = text.parse::<u64>().is_ok_and(|number| number > 0 && number.to_string() == text);
        prop_assert_eq!(read.is_ok(), exact || text.is_empty());
    }

    #[test]
    fn bytes_of_a_pod_with_any_damage_never_panic(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = pod().encode_to_vec();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(damaged) = v1::Pod::decode(bytes.as_slice()) {
            let refused = decode::pod(&damaged).err();
            prop_assert!(refused.is_none_or(|violations| !violations.is_empty()));
        }
    }

    #[test]
    fn names_are_read_or_refused_whatever_they_are(text in "\\PC{0,300}") {
        let read = decode::pod(&v1::Pod { name: text.clone(), ..pod() });
        if let Ok(read) = read {
            prop_assert_eq!(&*read.name, text.as_str());
            prop_assert!(text.len() <= 253 && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.'));
        }
    }
}
