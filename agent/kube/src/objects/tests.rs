//! The fields of objects on the wire.

use std::time::Duration;

use agent_core::{
    lease::Record,
    recorder::{Event, Reason},
};
use prost_types::Timestamp;
use serde_json::json;

use super::*;

fn pod_with(metadata: Value, spec: Value, status: Value) -> Value {
    let mut object = json!({"metadata": {"namespace": "default", "name": "web-1", "uid": "u1"}, "spec": spec, "status": status});
    for (key, value) in metadata.as_object().expect("metadata is an object") {
        object["metadata"][key] = value.clone();
    }
    object
}

fn with_metadata(metadata: Value) -> v1::Pod {
    pod(&pod_with(metadata, json!({}), json!({}))).expect("valid")
}

fn with_status(status: Value) -> v1::Pod {
    pod(&pod_with(json!({}), json!({}), status)).expect("valid")
}

fn seconds(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos: 0 })
}

#[test]
fn bare_pod_is_an_unassigned_orphan_of_unknown_phase() {
    let pod = with_metadata(json!({}));
    let expected = v1::Pod {
        namespace: "default".into(),
        name: "web-1".into(),
        uid: "u1".into(),
        ..v1::Pod::default()
    };
    assert_eq!(pod, expected);
}

#[test]
fn first_owner_with_controller_true_is_the_controller() {
    let owner = |uid: &str, controller: Value| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": uid, "uid": uid, "controller": controller});
    let owners = json!([
        owner("a", Value::Null),
        owner("b", json!(false)),
        owner("c", json!(true)),
        owner("d", json!(true))
    ]);
    let pod = with_metadata(json!({"ownerReferences": owners}));
    let controller = pod.controller.expect("has a controller");
    assert_eq!(
        (controller.uid.as_str(), controller.block_owner_deletion),
        ("c", None)
    );
    let pod = with_metadata(json!({"ownerReferences": [owner("a", json!(false))]}));
    assert_eq!(pod.controller, None);
}

#[test]
fn ready_looks_at_the_first_entry_and_since_at_the_first_true_one() {
    let entry = |status: &str, time: &str| json!({"type": "Ready", "status": status, "lastTransitionTime": time});
    let ready = |conditions: Value| with_status(json!({"conditions": conditions})).ready;
    let is = |ready, since| {
        Some(v1::ReadyCondition {
            ready,
            last_transition_time: since,
        })
    };
    let is_no = json!([entry("False", "2026-01-01T00:00:00Z")]);
    let becomes_true = json!([
        entry("False", "2026-01-01T00:00:00Z"),
        entry("True", "1970-01-01T00:00:09Z")
    ]);
    let becomes_false = json!([
        entry("True", "1970-01-01T00:00:07Z"),
        entry("False", "1970-01-01T00:00:09Z")
    ]);
    let timeless = json!([{"type": "Ready", "status": "True", "lastTransitionTime": null}]);
    for (conditions, expected) in [
        (json!([]), None),
        (json!([{"type": "Initialized", "status": "True"}]), None),
        (is_no, is(false, None)),
        (becomes_true, is(false, seconds(9))),
        (becomes_false, is(true, seconds(7))),
        (timeless, is(true, None)),
    ] {
        assert_eq!(ready(conditions.clone()), expected, "{conditions}");
    }
}

#[test]
fn times_lose_their_fraction_and_the_zero_time_is_absent() {
    let created =
        |time: Value| with_metadata(json!({"creationTimestamp": time})).creation_timestamp;
    assert_eq!(created(json!("1970-01-01T00:00:01.999999999Z")), seconds(1));
    assert_eq!(created(json!("1969-12-31T23:59:58.5Z")), seconds(-2));
    assert_eq!(created(json!("1970-01-01T01:00:01+01:00")), seconds(1));
    assert_eq!(created(json!("0001-01-01T00:00:00Z")), None);
    assert_eq!(created(Value::Null), None);
}

#[test]
fn pod_is_a_target_of_disruption_where_that_condition_is_true() {
    let target = |status: &str| {
        let condition = json!({"type": "DisruptionTarget", "status": status});
        let status = json!({"conditions": [{"type": "Ready", "status": "True"}, condition]});
        with_status(status).disruption_target
    };
    assert!(target("True"));
    assert!(!target("False"));
}

#[test]
fn pod_says_what_it_waits_for() {
    let waits = |reason: &str| json!({"state": {"waiting": {"reason": reason}}});
    let scheduled = |status: &str, reason: &str, message: &str| json!([{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": status, "reason": reason, "message": message}]);
    let no_node = scheduled("False", "Unschedulable", "0/3 nodes are available");
    let long = format!("Unschedulable: {}…", "é".repeat(55));
    for (status, expected) in [
        (json!({}), ""),
        (
            json!({"containerStatuses": [waits("ContainerCreating"), waits("ErrImagePull"), waits("CrashLoopBackOff")]}),
            "ErrImagePull",
        ),
        (
            json!({"containerStatuses": [waits("PodInitializing"), {"state": {}}, waits("")],
                "initContainerStatuses": [waits("CrashLoopBackOff")], "conditions": no_node}),
            "CrashLoopBackOff",
        ),
        (
            json!({"phase": "Pending", "conditions": no_node}),
            "Unschedulable: 0/3 nodes are available",
        ),
        (
            json!({"conditions": scheduled("False", "SchedulingGated", "gate")}),
            "",
        ),
        (
            json!({"conditions": scheduled("True", "Unschedulable", "")}),
            "",
        ),
        (
            json!({"conditions": scheduled("False", "Unschedulable", "")}),
            "Unschedulable",
        ),
        (
            json!({"conditions": scheduled("False", "Unschedulable", &"é".repeat(100))}),
            &long,
        ),
        (
            json!({"phase": "Failed", "reason": "Evicted", "containerStatuses": [waits("ErrImagePull")]}),
            "Evicted",
        ),
        (json!({"phase": "Running", "reason": "NodeLost"}), ""),
    ] {
        let object = pod_with(json!({}), json!({"nodeName": ""}), status.clone());
        let read = pod(&object).expect("valid");
        assert_eq!(read.waiting_reason, expected, "{status}");
    }
    let assigned = json!({"nodeName": "node-a"});
    let pod = pod(&pod_with(
        json!({}),
        assigned,
        json!({"conditions": no_node}),
    ));
    assert_eq!(pod.expect("valid").waiting_reason, "");
}

#[test]
fn restarts_of_sidecars_count_apart_from_those_of_containers() {
    let spec = json!({"initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}]});
    let status = json!({
        "containerStatuses": [{"name": "a", "restartCount": 2}, {"name": "b", "restartCount": 5}],
        "initContainerStatuses": [{"name": "setup", "restartCount": 9}, {"name": "proxy", "restartCount": 3}],
    });
    let pod = pod(&pod_with(json!({}), spec, status)).expect("valid");
    assert_eq!((pod.max_regular_restarts, pod.max_sidecar_restarts), (5, 3));
    // Negative restarts count as none.
    let status = json!({"containerStatuses": [{"name": "a", "restartCount": -4}]});
    assert_eq!(with_status(status).max_regular_restarts, 0);
}

#[test]
fn deletion_cost_travels_as_it_is_written() {
    let annotations = json!({"controller.kubernetes.io/pod-deletion-cost": "+0010 ", "other": "x"});
    let pod = with_metadata(json!({"annotations": annotations}));
    assert_eq!(pod.deletion_cost.as_deref(), Some("+0010 "));
}

#[test]
fn unknown_phase_is_unspecified_and_known_ones_are_kept() {
    let phase = |text: &str| with_status(json!({"phase": text})).phase();
    assert_eq!(phase("Hibernating"), v1::PodPhase::Unspecified);
    assert_eq!(phase("Unknown"), v1::PodPhase::Unknown);
    assert_eq!(phase("Failed"), v1::PodPhase::Failed);
}

#[test]
fn error_names_object_and_field() {
    let labels = pod_with(json!({"labels": {"app": 7}}), json!({}), json!({}));
    let error = pod(&labels).expect_err("a label is a string");
    let expected =
        "pod default/web-1: metadata.labels.app: invalid type: integer `7`, expected a string";
    assert_eq!(error.to_string(), expected);

    let status =
        json!({"containerStatuses": [{"restartCount": 1}, {"restartCount": 3_000_000_000_u32}]});
    let error = pod(&pod_with(json!({}), json!({}), status)).expect_err("too large");
    assert_eq!(error.field, "status.containerStatuses[1].restartCount");

    let error = pod(&json!({"metadata": {"name": "web-1"}})).expect_err("no namespace");
    let expected = "pod ?/web-1: metadata.namespace: is required";
    assert_eq!(error.to_string(), expected);

    let error = pod(&json!([])).expect_err("not an object");
    assert_eq!(
        (error.object.as_str(), error.detail.as_str()),
        ("pod ?/?", "is required")
    );
}

fn replica_set_with(spec: Value, status: Value) -> v1::ReplicaSet {
    let metadata = json!({"namespace": "default", "name": "web", "uid": "r1", "resourceVersion": "7", "generation": 3});
    replica_set(&json!({"metadata": metadata, "spec": spec, "status": status}))
        .expect("valid")
        .projected
}

#[test]
fn absent_fields_differ_from_empty_ones() {
    for absent in [json!({}), json!({"selector": null, "replicas": null})] {
        let set = replica_set_with(absent, json!({}));
        assert_eq!((set.selector, set.replicas), (None, None));
    }
    let empty = replica_set_with(json!({"selector": {}, "replicas": 0}), json!({}));
    assert_eq!(empty.selector, Some(v1::LabelSelector::default()));
    assert_eq!(empty.replicas, Some(0));
}

#[test]
fn error_of_an_odd_object_quotes_little_of_it() {
    let long = "x".repeat(100_000);
    for metadata in [json!({"generation": long}), json!({"labels": {&long: 7}})] {
        let odd = pod_with(metadata, json!({}), json!({}));
        let error = pod(&odd).expect_err("a number is no text");
        let length = error.field.len() + error.detail.len();
        assert!(length <= 512, "{length} bytes");
    }
}

#[test]
fn selector_travels_even_if_it_is_invalid() {
    let spec = json!({"selector": {"matchExpressions": [{"key": "a b", "operator": "Near"}]}});
    let selector = replica_set_with(spec, json!({}))
        .selector
        .expect("is there");
    assert_eq!(selector.match_expressions[0].key, "a b");
    assert_eq!(selector.match_expressions[0].operator, "Near");
}

#[test]
fn replica_set_carries_template_labels_and_no_template() {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}});
    let replica_set = replica_set_with(json!({"template": template}), json!({}));
    assert_eq!(
        replica_set.template_labels.get("app").map(String::as_str),
        Some("web")
    );
    assert_eq!(
        (
            replica_set.generation,
            replica_set.resource_version.as_str()
        ),
        (3, "7")
    );
}

#[test]
fn status_survives_the_round_trip() {
    let written = json!({
        "replicas": 4, "readyReplicas": 2, "terminatingReplicas": 0, "observedGeneration": 3,
        "conditions": [{"type": "ReplicaFailure", "status": "True", "lastTransitionTime": "2026-11-21T07:00:24Z",
            "reason": "FailedCreate", "message": "quota"}, {"type": "X", "status": "False", "lastTransitionTime": null}],
    });
    let status = replica_set_with(json!({}), written.clone())
        .status
        .expect("is there");
    assert_eq!(status_to_json(&status), written);
    let status = v1::ReplicaSetStatus::default();
    assert_eq!(status_to_json(&status), json!({"replicas": 0}));
}

#[test]
fn lease_that_is_replaced_keeps_what_is_not_known_of_it() {
    let mut stored = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "decree-agent", "uid": "l1",
            "resourceVersion": "7", "labels": {"team": "web"}},
        "spec": {"holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "acquireTime": "2026-05-01T12:00:00.000000Z", "renewTime": "2026-05-01T12:00:02.500000Z",
            "strategy": "OldestEmulationVersion"},
    });
    let record = lease(stored.to_string().as_bytes()).expect("it is a Lease");
    let time = |text: &str| Some(text.parse().expect("it is a time"));
    assert_eq!(
        (record.holder.as_str(), record.resource_version.as_str()),
        ("one", "7")
    );
    assert_eq!((record.duration.as_secs(), record.transitions), (15, 3));
    assert_eq!(record.acquired, time("2026-05-01T12:00:00Z"));
    assert_eq!(record.renewed, time("2026-05-01T12:00:02.5Z"));

    let taken = Record {
        holder: "two".into(),
        renewed: time("2026-05-01T12:00:30Z"),
        transitions: 4,
        ..record
    };
    let written = lease_to_json("kube-system", "decree-agent", &taken);
    stored["spec"]["holderIdentity"] = "two".into();
    stored["spec"]["renewTime"] = "2026-05-01T12:00:30.000000Z".into();
    stored["spec"]["leaseTransitions"] = 4.into();
    assert_eq!(written.expect("the object is JSON"), stored);
}

#[test]
fn lease_that_is_new_is_all_that_its_record_says() {
    let record = Record {
        holder: "one".into(),
        duration: Duration::from_secs(15),
        acquired: Some(jiff::Timestamp::UNIX_EPOCH),
        renewed: Some(jiff::Timestamp::UNIX_EPOCH),
        ..Record::default()
    };
    let written = lease_to_json("kube-system", "decree-agent", &record);
    let expected = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "decree-agent"},
        "spec": {"holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "1970-01-01T00:00:00.000000Z", "renewTime": "1970-01-01T00:00:00.000000Z"},
    });
    assert_eq!(written.expect("nothing is read"), expected);
}

#[test]
fn event_says_what_upstream_says() {
    let event = Event {
        name: "web.1".into(),
        api_version: "apps/v1".into(),
        object: v1::ObjectRef {
            namespace: "default".into(),
            name: "web".into(),
            uid: "u1".into(),
        },
        reason: Reason::FailedCreate,
        message: "Error creating: exceeded quota".into(),
        first: jiff::Timestamp::UNIX_EPOCH,
        last: jiff::Timestamp::UNIX_EPOCH + Duration::from_millis(5_700),
        count: 2,
        instance: "agent-1".into(),
    };
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "default", "name": "web.1"},
        "involvedObject": {"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "namespace": "default", "name": "web", "uid": "u1"},
        "reason": "FailedCreate",
        "message": "Error creating: exceeded quota",
        "source": {"component": "replicaset-controller"},
        "firstTimestamp": "1970-01-01T00:00:00Z",
        "lastTimestamp": "1970-01-01T00:00:05Z",
        "count": 2,
        "type": "Warning",
        "reportingComponent": "replicaset-controller",
        "reportingInstance": "agent-1",
    });
    assert_eq!(event_to_json(&event), expected);
    let patch = json!({"count": 2, "message": "Error creating: exceeded quota",
        "lastTimestamp": "1970-01-01T00:00:05Z"});
    assert_eq!(event_patch(&event), patch);
}

/// The managers of a ReplicaSet, each with its day and its fields; and the manager of its desired pods.
const MANAGERS: &str = r#"
nobody => nobody
kubectl 01 {"f:spec":{"f:replicas":{},"f:selector":{}}}; scaler 02 {"f:spec":{"f:replicas":{}}}; agent 03 {"f:status":{"f:replicas":{}}} => scaler
# An applied entry can have no time, and the order of the entries does not count.
scaler 02 {"f:spec":{"f:replicas":{}}}; kubectl 01 {"f:spec":{"f:replicas":{}}}; gitops - {"f:spec":{"f:replicas":{}}} => scaler
gitops - {"f:spec":{"f:replicas":{}}} => gitops
# Labels, templates and texts with these names.
a 01 {"f:metadata":{"f:labels":{"f:spec":{"f:replicas":{}}}}} => nobody
a 01 {"f:spec":{"f:template":{"f:replicas":{}}},"f:status":{"f:replicas":{}}} => nobody
a 01 {"f:metadata":{"k:{\"f:spec\":\"{\"}":{}},"f:spec":{},"f:x":{"f:replicas":{}}} => nobody
a 01 {"f:metadata":{"k:{\"n\":\"}\\\"\"}":{}}, "f:spec" : { "f:replicas": {} }} => a
a 01 {} => nobody
a 01 null => nobody"#;

#[test]
fn manager_of_the_replicas_is_the_newest_that_wrote_them() {
    let rows = MANAGERS.lines().filter_map(|line| line.split_once(" => "));
    for (entries, expected) in rows {
        let entries = entries.split("; ").filter(|entry| *entry != "nobody");
        let entries = entries.map(|entry| {
            let words: Vec<_> = entry.splitn(3, ' ').collect();
            let [manager, day, fields] = words[..] else {
                panic!("{entry}")
            };
            let fields: Value = serde_json::from_str(fields).expect("JSON");
            let mut entry = json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields});
            if day != "-" {
                entry["time"] = json!(format!("2026-05-{day}T12:00:00Z"));
            }
            entry
        });
        let metadata = json!({"namespace": "default", "name": "web", "uid": "r1", "managedFields": entries.collect::<Vec<_>>()});
        let object = json!({"metadata": metadata, "spec": {}});
        let set = replica_set(&object).expect("valid").projected;
        let expected = expected.replace("nobody", "");
        assert_eq!(set.replicas_manager, expected, "{object}");
    }
    let long = json!([{"manager": "é".repeat(99), "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
    let metadata =
        json!({"namespace": "default", "name": "web", "uid": "r1", "managedFields": long});
    let set = replica_set(&json!({ "metadata": metadata })).expect("valid");
    assert_eq!(set.projected.replicas_manager, "é".repeat(64));
}
