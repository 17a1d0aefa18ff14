//! What is done to a sound object, and which field is named with which reason.

use decree::v1;
use prost_types::Timestamp;

/// A row of the table: what is done to a sound object, and which field is named with which reason.
type Row<T> = (fn(&mut T), &'static str, &'static str);

const BAD_TIME: Timestamp = Timestamp {
    seconds: 0,
    nanos: 1_000_000_000,
};

pub(super) const PODS: [Row<v1::Pod>; 30] = [
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

pub(super) const NAMELESS: [Row<v1::ReplicaSet>; 3] = [
    (
        |set| set.namespace = "A".into(),
        "namespace",
        "INVALID_NAMESPACE",
    ),
    (|set| set.name = "a_b".into(), "name", "INVALID_NAME"),
    (|set| set.uid = "é".into(), "uid", "INVALID_UID"),
];

pub(super) const QUARANTINED: [Row<v1::ReplicaSet>; 20] = [
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
    (|set| set.selector = None, "selector", "QUARANTINED"),
    (
        |set| set.selector = Some(v1::LabelSelector::default()),
        "selector",
        "QUARANTINED",
    ),
    (
        |set| set.template_labels.clear(),
        "template_labels",
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

pub(super) fn require(set: &mut v1::ReplicaSet, key: &str, operator: &str, values: &[&str]) {
    let selector = set.selector.get_or_insert_default();
    selector
        .match_expressions
        .push(v1::LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.iter().map(|&value| value.to_owned()).collect(),
        });
}
