//! Random objects of the contract. There are few names, so that objects refer to each other, and sometimes an illegal value.

use std::collections::HashMap;

use decree_api::v1;
use prost_types::Timestamp;
use tests::rng::Rng;

const LEGAL: [&str; 5] = ["web", "api", "db", "a", "web-1"];
const ILLEGAL: [&str; 8] = [
    "",
    "Web",
    "../etc",
    "a/b/c",
    "w\u{0435}b",
    "\u{202e}bew",
    "a\u{0}b",
    "-",
];
const KEYS: [&str; 4] = ["app", "tier", "example.com/track", "a"];
const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];
/// The number of illegal values per thousand.
const ILLEGAL_PER_MILLE: u64 = 8;

/// Returns one of the choices, or rarely another text.
fn text(rng: &mut Rng, choices: &[&str]) -> String {
    if rng.chance(ILLEGAL_PER_MILLE) {
        let illegal = *rng.pick(&ILLEGAL);
        let times = *rng.pick(&[1, 1, 1, 64, 300]);
        return illegal.repeat(times);
    }
    (*rng.pick(choices)).to_owned()
}

pub(crate) fn name(rng: &mut Rng) -> String {
    text(rng, &LEGAL)
}

/// Returns a namespace; most objects share one.
pub(crate) fn namespace(rng: &mut Rng) -> String {
    text(rng, &["default", "default", "default", "other"])
}

/// Returns a version, usually a valid one.
pub(crate) fn version(rng: &mut Rng) -> String {
    if rng.chance(ILLEGAL_PER_MILLE) {
        return (*rng.pick(&["0", "01", "-1", "x", "18446744073709551616"])).to_owned();
    }
    if rng.chance(50) {
        String::new()
    } else {
        rng.between(1, 200).to_string()
    }
}

/// Returns labels with few keys and values.
fn labels(rng: &mut Rng) -> HashMap<String, String> {
    let count = rng.between(0, 3);
    (0..count)
        .map(|_| (text(rng, &KEYS), text(rng, &LEGAL)))
        .collect()
}

/// Returns a selector; most have one requirement.
fn selector(rng: &mut Rng) -> v1::LabelSelector {
    let match_labels = if rng.chance(700) {
        [("app".to_owned(), text(rng, &LEGAL))].into()
    } else {
        labels(rng)
    };
    let expressions = if rng.chance(300) {
        rng.between(1, 3)
    } else {
        0
    };
    v1::LabelSelector {
        match_labels,
        match_expressions: (0..expressions).map(|_| requirement(rng)).collect(),
    }
}

fn requirement(rng: &mut Rng) -> v1::LabelSelectorRequirement {
    let operator = text(rng, &OPERATORS);
    let fits = !rng.chance(20);
    let values = if (operator.starts_with('I') || operator.starts_with('N')) == fits {
        rng.between(1, 3)
    } else {
        0
    };
    v1::LabelSelectorRequirement {
        key: text(rng, &KEYS),
        operator,
        values: (0..values).map(|_| text(rng, &LEGAL)).collect(),
    }
}

/// Returns a number that is usually small.
pub(crate) fn count(rng: &mut Rng) -> i32 {
    if rng.chance(ILLEGAL_PER_MILLE) {
        *rng.pick(&[-1, i32::MIN, i32::MAX, 5_001])
    } else {
        i32::try_from(rng.between(0, 6)).expect("small")
    }
}

/// Returns a time around the start of the sessions.
pub(crate) fn time(rng: &mut Rng) -> Timestamp {
    let nanos = if rng.chance(ILLEGAL_PER_MILLE) {
        *rng.pick(&[-1, i32::MAX])
    } else {
        0
    };
    let seconds = if rng.chance(ILLEGAL_PER_MILLE) {
        *rng.pick(&[i64::MIN, i64::MAX, 0])
    } else {
        1_700_000_000 + i64::try_from(rng.between(0, 100_000)).expect("small")
    };
    Timestamp { seconds, nanos }
}

/// Returns a ReplicaSet; its UID follows from its name. Its template usually has the labels of its selector: others are quarantined.
pub(crate) fn replica_set(rng: &mut Rng) -> v1::ReplicaSet {
    let (namespace, name) = (namespace(rng), name(rng));
    let uid = uid(rng, &name);
    let selector = (!rng.chance(20)).then(|| selector(rng));
    let mut template_labels = labels(rng);
    if let Some(selector) = &selector
        && rng.chance(900)
    {
        template_labels.extend(selector.match_labels.clone());
    }
    v1::ReplicaSet {
        namespace,
        uid,
        name,
        resource_version: version(rng),
        generation: count(rng).into(),
        deletion_timestamp: rng.chance(50).then(|| time(rng)),
        controller: rng.chance(300).then(|| owner(rng, "Deployment")),
        replicas: (!rng.chance(30)).then(|| count(rng)),
        min_ready_seconds: if rng.chance(200) { count(rng) } else { 0 },
        selector,
        template_labels,
        status: rng.chance(700).then(|| status(rng)),
        resume: text(rng, &["", "", "", "now", "namespace now", "all now"]),
        preferences: rng.chance(250).then(|| preferences(rng)),
        ignored_annotations: Vec::new(),
        replicas_manager: text(rng, &["", "", "kubectl-scale"]),
    }
}

fn preferences(rng: &mut Rng) -> v1::Preferences {
    let rules = rng.between(0, 3);
    v1::Preferences {
        create_after_termination: rng.chance(500),
        keep_ended: rng.chance(500).then(|| count(rng)),
        scale_in: (0..rules)
            .map(|_| v1::ScaleInPreference {
                rule: *rng.pick(&[0, 1, 1, 2, 3, 4, 5, 99]),
                label_key: text(rng, &["app", "tier"]),
                label_value: text(rng, &["", "idle"]),
            })
            .collect(),
        surge: rng.chance(300).then(|| count(rng)),
        surge_percent: rng.chance(300).then(|| count(rng)),
        scale_in_cost: rng.chance(300).then(|| v1::ScaleInCost {
            source: text(rng, &["", "http://:8080/busy"]),
            on_silence: *rng.pick(&[0, 1, 2, 99]),
        }),
    }
}

fn status(rng: &mut Rng) -> v1::ReplicaSetStatus {
    let conditions = if rng.chance(200) {
        rng.between(1, 3)
    } else {
        0
    };
    v1::ReplicaSetStatus {
        replicas: count(rng),
        fully_labeled_replicas: count(rng),
        ready_replicas: count(rng),
        available_replicas: count(rng),
        terminating_replicas: rng.chance(500).then(|| count(rng)),
        observed_generation: count(rng).into(),
        conditions: (0..conditions).map(|_| condition(rng)).collect(),
    }
}

fn condition(rng: &mut Rng) -> v1::ReplicaSetCondition {
    v1::ReplicaSetCondition {
        r#type: text(rng, &["ReplicaFailure", "Other"]),
        status: text(rng, &["True", "False", "Unknown"]),
        last_transition_time: rng.chance(800).then(|| time(rng)),
        reason: text(rng, &["FailedCreate", "FailedDelete"]),
        message: text(rng, &["", "quota", "webhook"]),
    }
}

/// Returns a pod, usually of one of the ReplicaSets or an orphan that a selector matches.
pub(crate) fn pod(rng: &mut Rng) -> v1::Pod {
    let name = format!("{}-{}", name(rng), rng.between(0, 9));
    v1::Pod {
        namespace: namespace(rng),
        uid: uid(rng, &name),
        name,
        resource_version: version(rng),
        labels: labels(rng),
        controller: rng.chance(700).then(|| owner(rng, "ReplicaSet")),
        creation_timestamp: rng.chance(900).then(|| time(rng)),
        deletion_timestamp: rng.chance(100).then(|| time(rng)),
        node_name: text(rng, &["", "node-a", "node-b"]),
        phase: i32::try_from(rng.between(0, 6)).expect("small"),
        ready: rng.chance(700).then(|| v1::ReadyCondition {
            ready: rng.chance(800),
            last_transition_time: rng.chance(800).then(|| time(rng)),
        }),
        deletion_cost: rng
            .chance(100)
            .then(|| text(rng, &["-5", "0", "7", "2147483648"])),
        max_regular_restarts: count(rng),
        max_sidecar_restarts: count(rng),
        disruption_target: rng.chance(100),
        waiting_reason: text(rng, &["", "ImagePullBackOff"]),
        leaving: rng.chance(100),
        advised_cost: rng.chance(100).then(|| text(rng, &["-5", "7"])),
    }
}

/// Returns a node of pods, usually a valid one.
pub(crate) fn node(rng: &mut Rng) -> v1::Node {
    let zone = ("topology.kubernetes.io/zone".into(), text(rng, &["a", "b"]));
    v1::Node {
        name: text(rng, &["node-a", "node-b"]),
        unschedulable: rng.chance(300),
        leaving: rng.chance(300),
        labels: [zone].into_iter().filter(|_| rng.chance(500)).collect(),
    }
}

fn owner(rng: &mut Rng, kind: &str) -> v1::OwnerReference {
    let name = name(rng);
    v1::OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        uid: uid(rng, &name),
        name,
        block_owner_deletion: Some(true),
    }
}

fn uid(rng: &mut Rng, name: &str) -> String {
    if rng.chance(30) {
        format!("{name}-uid-2")
    } else {
        format!("{name}-uid")
    }
}

/// Returns options for decisions. Small bursts make limits more likely.
pub(crate) fn options(rng: &mut Rng) -> v1::Options {
    v1::Options {
        burst_replicas: rng.chance(500).then(|| count(rng)),
        slow_start_initial: rng.chance(300).then(|| count(rng)),
        delete_by_version: rng.chance(300).then(|| rng.chance(500)),
        create_back_off: rng.chance(300).then(|| rng.chance(500)),
        unassigned_pods_max: rng.chance(500).then(|| count(rng)),
        unassigned_creates_per_second: rng.chance(500).then(|| count(rng)),
    }
}
