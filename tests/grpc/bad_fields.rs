//! What is wrong with one object: the object is refused or quarantined by the path of its field, and its session goes on.

use decree::v1::{self, event, reconcile_request::Frame, reconcile_response::Frame as Answer};
use prost_types::Timestamp;
use tests::objects::{pod, replica_set};

use crate::{agent::Agent, running::Running};

/// A row of the table: what is done to a sound object, and which field is named with which reason.
type Row<T> = (fn(&mut T), &'static str, &'static str);

const BAD_TIME: Timestamp = Timestamp {
    seconds: 0,
    nanos: 1_000_000_000,
};

const PODS: [Row<v1::Pod>; 30] = [
    (|pod| pod.namespace.clear(), "namespace", "REQUIRED"),
    (
        |pod| pod.namespace = "a.b".into(),
        "namespace",
        "INVALID_NAMESPACE",
    ),
    (
        |pod| pod.namespace = "n".repeat(64),
        "namespace",
        "INVALID_NAMESPACE",
    ),
    (
        |pod| pod.namespace = "../etc".into(),
        "namespace",
        "INVALID_NAMESPACE",
    ),
    (|pod| pod.name.clear(), "name", "REQUIRED"),
    (|pod| pod.name = "Web".into(), "name", "INVALID_NAME"),
    (|pod| pod.name = "a..b".into(), "name", "INVALID_NAME"),
    (|pod| pod.name = "n".repeat(254), "name", "INVALID_NAME"),
    (|pod| pod.name = "w\0b".into(), "name", "INVALID_NAME"),
    (|pod| pod.name = "wéb".into(), "name", "INVALID_NAME"),
    (|pod| pod.uid.clear(), "uid", "REQUIRED"),
    (|pod| pod.uid = "u".repeat(129), "uid", "INVALID_UID"),
    (|pod| pod.uid = "u\n".into(), "uid", "INVALID_UID"),
    (
        |pod| pod.resource_version = "0".into(),
        "resource_version",
        "INVALID_VERSION",
    ),
    (
        |pod| pod.resource_version = "-5".into(),
        "resource_version",
        "INVALID_VERSION",
    ),
    (
        |pod| pod.resource_version = "18446744073709551616".into(),
        "resource_version",
        "INVALID_VERSION",
    ),
    (
        |pod| drop(pod.labels.insert("a b".into(), "x".into())),
        "labels[a b]",
        "INVALID_LABEL_KEY",
    ),
    (
        |pod| drop(pod.labels.insert("tier".into(), "-x".into())),
        "labels[tier]",
        "INVALID_LABEL_VALUE",
    ),
    (
        |pod| pod.created = Some(BAD_TIME),
        "created",
        "INVALID_TIME",
    ),
    (
        |pod| pod.max_regular_restarts = -1,
        "max_regular_restarts",
        "OUT_OF_RANGE",
    ),
    (
        |pod| pod.max_sidecar_restarts = i32::MIN,
        "max_sidecar_restarts",
        "OUT_OF_RANGE",
    ),
    (
        |pod| {
            pod.controller
                .iter_mut()
                .for_each(|owner| owner.uid.clear())
        },
        "controller.uid",
        "REQUIRED",
    ),
    (
        |pod| pod.node_name = "n".repeat(254),
        "node_name",
        "INVALID_TEXT",
    ),
    (
        |pod| pod.deletion_cost = Some("1".repeat((256 << 10) + 1)),
        "deletion_cost",
        "INVALID_TEXT",
    ),
    (
        |pod| owner(pod).api_version = "v".repeat(318),
        "controller.api_version",
        "INVALID_TEXT",
    ),
    (
        |pod| owner(pod).kind = "K".repeat(64),
        "controller.kind",
        "INVALID_TEXT",
    ),
    (
        |pod| owner(pod).name = "n".repeat(254),
        "controller.name",
        "INVALID_TEXT",
    ),
    (
        |pod| drop(pod.labels.insert("tier".into(), "x".repeat(64))),
        "labels[tier]",
        "INVALID_LABEL_VALUE",
    ),
    (
        |pod| {
            pod.labels = (0..1_001)
                .map(|n| (format!("l{n}"), String::new()))
                .collect()
        },
        "labels",
        "OUT_OF_RANGE",
    ),
    (
        |pod| {
            pod.labels = (0..600)
                .map(|n| (format!("{}/l{n}", "p".repeat(200)), String::new()))
                .collect()
        },
        "labels",
        "OUT_OF_RANGE",
    ),
];

fn owner(pod: &mut v1::Pod) -> &mut v1::OwnerReference {
    pod.controller.get_or_insert_default()
}

const NAMELESS: [Row<v1::ReplicaSet>; 3] = [
    (
        |set| set.namespace = "A".into(),
        "namespace",
        "INVALID_NAMESPACE",
    ),
    (|set| set.name = "a_b".into(), "name", "INVALID_NAME"),
    (|set| set.uid = "é".into(), "uid", "INVALID_UID"),
];

const QUARANTINED: [Row<v1::ReplicaSet>; 17] = [
    (|set| set.replicas = Some(-1), "replicas", "QUARANTINED"),
    (
        |set| set.replicas = Some(i32::MIN),
        "replicas",
        "QUARANTINED",
    ),
    (
        |set| set.min_ready_seconds = -1,
        "min_ready_seconds",
        "QUARANTINED",
    ),
    (|set| set.generation = -1, "generation", "QUARANTINED"),
    (
        |set| set.resource_version = "x".into(),
        "resource_version",
        "QUARANTINED",
    ),
    (|set| set.deleted = Some(BAD_TIME), "deleted", "QUARANTINED"),
    (
        |set| drop(set.template_labels.insert("a b".into(), String::new())),
        "template_labels[a b]",
        "QUARANTINED",
    ),
    (
        |set| require(set, "app", "Near", &["x"]),
        "selector.match_expressions[0].operator",
        "QUARANTINED",
    ),
    (
        |set| require(set, "app", "In", &[]),
        "selector.match_expressions[0].values",
        "QUARANTINED",
    ),
    (
        |set| require(set, "app", "Exists", &["x"]),
        "selector.match_expressions[0].values",
        "QUARANTINED",
    ),
    (
        |set| require(set, "a b", "Exists", &[]),
        "selector.match_expressions[0].key",
        "QUARANTINED",
    ),
    (
        |set| (0..1_001).for_each(|_| require(set, "app", "Exists", &[])),
        "selector",
        "QUARANTINED",
    ),
    (
        |set| (0..101).for_each(|_| require(set, "app", "In", &["x"; 100])),
        "selector",
        "QUARANTINED",
    ),
    (
        |set| spoil_condition(set, |condition| condition.r#type = "t".repeat(318)),
        "status.conditions[0].type",
        "QUARANTINED",
    ),
    (
        |set| spoil_condition(set, |condition| condition.reason = "r".repeat(1_025)),
        "status.conditions[0].reason",
        "QUARANTINED",
    ),
    (
        |set| {
            spoil_condition(set, |condition| {
                condition.message = "m".repeat((32 << 10) + 1)
            })
        },
        "status.conditions[0].message",
        "QUARANTINED",
    ),
    (
        |set| (0..101).for_each(|_| spoil_condition(set, |_| {})),
        "status.conditions",
        "QUARANTINED",
    ),
];

fn spoil_condition(set: &mut v1::ReplicaSet, spoil: impl Fn(&mut v1::ReplicaSetCondition)) {
    let mut condition = v1::ReplicaSetCondition::default();
    spoil(&mut condition);
    let status = set.status.get_or_insert_default();
    status.conditions.push(condition);
}

fn require(set: &mut v1::ReplicaSet, key: &str, operator: &str, values: &[&str]) {
    let selector = set.selector.get_or_insert_default();
    selector
        .match_expressions
        .push(v1::LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.iter().map(|&value| value.to_owned()).collect(),
        });
}

/// Opens a session on an empty cluster.
async fn session(server: &Running) -> Agent {
    Agent::open_on(server, "c1", vec![], vec![]).await
}

#[track_caller]
fn assert_names(rejection: &v1::Rejection, field: &str, reason: &str) {
    let [violation] = rejection.violations.as_slice() else {
        panic!("{field}: {rejection:?}")
    };
    assert_eq!(
        (violation.field.as_str(), violation.reason.as_str()),
        (field, reason)
    );
    assert!(!violation.description.is_empty());
}

#[tokio::test]
async fn bad_pods_are_rejected_by_field_and_the_session_goes_on() {
    let server = Running::start().await;
    let mut agent = session(&server).await;
    for (spoil, field, reason) in PODS {
        let mut bad = pod("a", "web").build();
        spoil(&mut bad);
        agent.event(event::Event::PodApplied(bad.clone())).await;
        let rejection = agent.rejection().await;
        assert_eq!(rejection.kind(), v1::Kind::Pod);
        assert_names(&rejection, field, reason);
        let object = rejection.object.expect("as far as it could be read");
        assert_eq!(object.name, bad.name[..bad.name.len().min(253)]);
    }
    agent.prove_alive().await;
    assert!(
        (server
            .metric("decree_rejected_objects_total{kind=\"KIND_POD\"}")
            .await
            - 30.0)
            .abs()
            < 0.1
    );
}

#[tokio::test]
async fn replica_sets_that_cannot_be_named_are_rejected() {
    let server = Running::start().await;
    let mut agent = session(&server).await;
    for (spoil, field, reason) in NAMELESS {
        let mut bad = replica_set("web").build();
        spoil(&mut bad);
        agent.event(event::Event::ReplicaSetApplied(bad)).await;
        assert_names(&agent.rejection().await, field, reason);
    }
    agent.prove_alive().await;
}

#[tokio::test]
async fn replica_sets_out_of_range_are_quarantined_visibly() {
    let server = Running::start().await;
    let mut inspection = server.inspection().await;
    let mut agent = session(&server).await;
    for (spoil, field, reason) in QUARANTINED {
        let mut bad = replica_set("web").replicas(3).build();
        spoil(&mut bad);
        agent.event(event::Event::ReplicaSetApplied(bad)).await;
        let rejection = agent.rejection().await;
        assert_names(&rejection, field, reason);
        assert_eq!(rejection.object.expect("a name").uid, "web-uid");
        let request = v1::GetReplicaSetRequest {
            namespace: "default".into(),
            name: "web".into(),
            cluster: String::new(),
        };
        let found = inspection
            .get_replica_set(request)
            .await
            .expect("it is known")
            .into_inner();
        let summary = found.summary.expect("a summary");
        assert_eq!(summary.state(), v1::ReplicaSetState::Quarantined, "{field}");
        assert_eq!(
            summary.reasons.first().map(v1::Reason::rule),
            Some(v1::Rule::Quarantined)
        );
        let deleted = v1::Deleted {
            kind: v1::Kind::ReplicaSet.into(),
            object: summary.replica_set,
            resource_version: String::new(),
        };
        agent.event(event::Event::Deleted(deleted)).await;
    }
    agent.prove_alive().await;
}

#[tokio::test]
async fn repaired_replica_set_is_served() {
    let server = Running::start().await;
    let mut agent = session(&server).await;
    let mut bad = replica_set("web").replicas(1).build();
    require(&mut bad, "app", "Near", &["x"]);
    agent.event(event::Event::ReplicaSetApplied(bad)).await;
    agent.rejection().await;
    let mut good = replica_set("web").replicas(1).build();
    good.resource_version = "101".to_owned();
    agent.event(event::Event::ReplicaSetApplied(good)).await;
    assert!(matches!(
        agent.batch().await.action,
        Some(v1::batch::Action::Create(_))
    ));
}

#[tokio::test]
async fn bad_object_leaves_the_rest_of_its_frame_alone() {
    let server = Running::start().await;
    let mut agent = session(&server).await;
    let bad = v1::Pod {
        uid: String::new(),
        ..pod("a", "web").build()
    };
    let events = [
        event::Event::PodApplied(bad),
        event::Event::ReplicaSetApplied(replica_set("web").replicas(1).build()),
    ];
    let events = events
        .map(|event| v1::Event {
            event: Some(event),
            ..v1::Event::default()
        })
        .into();
    agent.send(Frame::Events(v1::Events { events })).await;
    agent.rejection().await;
    assert!(matches!(
        agent.batch().await.action,
        Some(v1::batch::Action::Create(_))
    ));
}

#[tokio::test]
async fn thousands_of_bad_objects_have_one_small_answer_and_are_counted() {
    let server = Running::start().await;
    let mut agent = session(&server).await;
    let bad = v1::Pod {
        name: "N".repeat(1_000),
        ..v1::Pod::default()
    };
    let events = (0..2_000).map(|_| v1::Event {
        event: Some(event::Event::PodApplied(bad.clone())),
        ..v1::Event::default()
    });
    let events = events.collect();
    agent.send(Frame::Events(v1::Events { events })).await;
    let Answer::Rejection(rejection) = agent.next().await else {
        panic!("a rejection was expected")
    };
    let all = rejection.others.iter().chain([&rejection]);
    let named: usize = all.map(|one| one.violations.len()).sum();
    assert_eq!((named, rejection.omitted), (100, 3 * 2_000 - 100));
    assert!(prost::Message::encoded_len(&rejection) < 64 << 10);
    agent.prove_alive().await;
    let series = "decree_rejected_objects_total{kind=\"KIND_POD\"}";
    let counted = server.metric(series).await;
    assert!((counted - 2_000.0).abs() < 0.1, "{counted}");
}

#[tokio::test]
async fn deletion_of_what_cannot_be_named_is_rejected() {
    let server = Running::start().await;
    let mut agent = session(&server).await;
    let object = v1::ObjectRef {
        namespace: "default".into(),
        name: "a".into(),
        uid: String::new(),
    };
    let deleted = v1::Deleted {
        kind: v1::Kind::Pod.into(),
        object: Some(object),
        resource_version: String::new(),
    };
    agent.event(event::Event::Deleted(deleted)).await;
    assert_names(&agent.rejection().await, "uid", "REQUIRED");
    agent.prove_alive().await;
}

#[tokio::test]
async fn values_of_a_later_version_are_taken_conservatively() {
    let server = Running::start().await;
    let mut agent = session(&server).await;
    let strange = v1::Pod {
        phase: 77,
        ..pod("a", "web").build()
    };
    agent.event(event::Event::PodApplied(strange)).await;
    let set = replica_set("web").replicas(2).build();
    agent.event(event::Event::ReplicaSetApplied(set)).await;
    let Some(v1::batch::Action::Create(create)) = agent.batch().await.action else {
        panic!()
    };
    assert_eq!(create.names.len(), 1, "a pod of an unknown phase is active");
}

#[tokio::test]
async fn years_beyond_what_is_kept_saturate() {
    let server = Running::start().await;
    let mut agent = session(&server).await;
    let far = Timestamp {
        seconds: i64::MAX,
        nanos: 999_999_999,
    };
    let old = Timestamp {
        seconds: i64::MIN,
        nanos: 0,
    };
    for created in [far, old] {
        let pod = v1::Pod {
            created: Some(created),
            ..pod("a", "web").build()
        };
        agent.event(event::Event::PodApplied(pod)).await;
    }
    agent.prove_alive().await;
}

#[tokio::test]
async fn unreadable_object_of_an_outcome_is_told_and_the_batch_is_done() {
    let server = Running::start().await;
    let sets = vec![replica_set("web").replicas(1).build()];
    let mut agent = Agent::open_on(&server, "c1", sets, vec![]).await;
    let batch = agent.batch().await;
    let Some(v1::batch::Action::Create(create)) = &batch.action else {
        panic!("{batch:?}")
    };
    let good = pod(&create.names[0], "web").version(101).build();
    let bad = v1::Pod {
        labels: [("a b".into(), String::new())].into(),
        ..good.clone()
    };
    agent.created(&batch, vec![bad]).await;
    assert_names(&agent.rejection().await, "labels[a b]", "INVALID_LABEL_KEY");
    let Answer::Resync(_) = agent.next().await else {
        panic!("a list is asked for")
    };
    agent.list_pods(vec![good]).await;
    let status = agent.batch().await;
    assert!(
        matches!(status.action, Some(v1::batch::Action::WriteStatus(_))),
        "{status:?}"
    );
}
