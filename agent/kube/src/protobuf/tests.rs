//! Documents as the API server writes them, made here by the numbers of their fields.

use std::time::Duration;

use agent_core::{
    api::{CreatePod, Kind, Object, ReplicaSet, Reply, Template},
    watch::{Items, List, WatchEvent},
};
use decree_api::v1;
use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::{Value, json};

use super::*;
use crate::{
    codec,
    evictions::RESPONDER,
    objects::{self, PodMessage, Projected as _, ReplicaSetMessage},
};

/// Wraps an object in a document, as the API server does.
fn document(kind: &str, raw: Vec<u8>) -> Bytes {
    let unknown = Unknown {
        type_meta: Some(TypeMeta {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
        }),
        raw: raw.into(),
    };
    [MAGIC.to_vec(), unknown.encode_to_vec()].concat().into()
}

/// An event of a watch, without its length.
fn event(verb: &str, object: Bytes) -> Bytes {
    let event = WatchFrame {
        r#type: verb.to_owned(),
        object: Some(RawExtension { raw: object }),
    };
    event.encode_to_vec().into()
}

/// One field of bytes: its number, length and content.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    encode_varint(content.len() as u64, &mut bytes);
    [&bytes, content].concat()
}

/// A template with a field that no released Kubernetes knows.
const STRANGE_SPEC: &[u8] = &[0xfa, 0x7f, 0x03, 0xff, 0x00, 0x80];

fn replica_set_document() -> Bytes {
    let labels = field(11, &[field(1, b"app"), field(2, b"web")].concat());
    let template = [field(1, &labels), field(2, STRANGE_SPEC)].concat();
    let spec = [vec![0x08, 0x03], field(3, &template), vec![0x20, 0x00]].concat();
    let managed = [
        field(1, b"scaler"),
        field(4, &[0x08, 0x01]),
        field(7, &field(1, br#"{"f:spec":{"f:replicas":{}}}"#)),
        field(8, b"scale"),
    ]
    .concat();
    let metadata = [
        field(1, b"web"),
        field(3, b"default"),
        field(5, b"u-1"),
        field(12, b""),
        field(17, &managed),
        field(17, &field(1, b"without a time")),
    ]
    .concat();
    let status = [vec![0x08, 0x02], vec![0x38, 0x00]].concat();
    let set = [field(1, &metadata), field(2, &spec), field(3, &status)].concat();
    document("ReplicaSet", set)
}

fn replica_set() -> ReplicaSet {
    let set = message::<ReplicaSetMessage>(&replica_set_document()).expect("it is one");
    set.project().expect("it has all that it must have")
}

#[test]
fn replica_set_reads_as_json_would() {
    let managed = json!([{
        "manager": "scaler", "operation": "Update", "time": "1970-01-01T00:00:01Z",
        "fieldsV1": {"f:spec": {"f:replicas": {}}}, "subresource": "scale",
    }]);
    let in_json = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u-1", "managedFields": managed},
        "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}},
        "status": {"replicas": 2, "terminatingReplicas": 0},
    });
    let in_json = objects::replica_set(&in_json).expect("it is one");
    assert_eq!(replica_set().projected, in_json.projected);
    assert_eq!(in_json.projected.replicas_manager, "scaler");
}

fn create(template: Template, responds: bool) -> CreatePod {
    CreatePod {
        namespace: "default".into(),
        name: "web-1".into(),
        generate_name: "web-".into(),
        controller: v1::OwnerReference {
            kind: "ReplicaSet".into(),
            uid: "u-1".into(),
            ..v1::OwnerReference::default()
        },
        template,
        responds,
        timeout: Duration::MAX,
    }
}

#[test]
fn template_reaches_the_pod_byte_for_byte() {
    let create = create(replica_set().template.expect("it has one"), false);
    let (content_type, written) = codec::new_pod(&create).expect("it can be written");
    assert_eq!(content_type, "application/vnd.kubernetes.protobuf");
    let unknown = unwrap(&written.into()).expect("it is a document");
    assert_eq!(unknown.type_meta.expect("it says its kind").kind, "Pod");
    assert!(unknown.raw.ends_with(&field(2, STRANGE_SPEC)));
    let metadata = field(11, &[field(1, b"app"), field(2, b"web")].concat());
    let contains = |part: &[u8]| unknown.raw.windows(part.len()).any(|it| it == part);
    assert!(contains(&metadata), "labels are copied as they are");
    for part in [
        field(1, b"web-1"),
        field(2, b"web-"),
        field(3, b"default"),
        field(4, b"u-1"),
    ] {
        assert!(contains(&part));
    }
}

#[test]
fn template_whose_texts_are_not_utf_8_reaches_the_pod_byte_for_byte() {
    let note = field(12, &[field(1, b"note"), field(2, b"\xff")].concat());
    let template = field(1, &[field(1, b"\xff"), note.clone()].concat());
    let set = [named("web", b""), field(2, &field(3, &template))].concat();
    let set = message::<ReplicaSetMessage>(&document("ReplicaSet", set)).expect("it is one");
    let set = set.project().expect("it has all that it must have");
    let create = create(set.template.expect("it has one"), false);
    let (_, written) = codec::new_pod(&create).expect("it can be written");
    assert!(written.windows(note.len()).any(|it| it == note));
}

/// A pod that responds has the responder beside the fields of its template, unless the template names others or a group.
#[test]
fn responder_is_added_to_a_template_without_one() {
    let own = field(
        44,
        &[field(1, RESPONDER.as_bytes()), vec![0x10, 0x90, 0x4e]].concat(),
    );
    let (other, group) = (field(44, &field(1, b"a.io/b")), field(43, b""));
    for (spec, added) in [
        (STRANGE_SPEC.to_vec(), &*own),
        ([STRANGE_SPEC, &other].concat(), b""),
        ([STRANGE_SPEC, &group].concat(), b""),
    ] {
        let template = Template::new(field(2, &spec));
        let (_, written) = codec::new_pod(&create(template, true)).expect("it can be written");
        let unknown = unwrap(&written.into()).expect("it is a document");
        let expected = field(2, &[&spec, added].concat());
        assert!(unknown.raw.ends_with(&expected), "{spec:?}");
    }
    let own = json!([{"name": RESPONDER, "priority": 10_000}]);
    for (responders, group, expected) in [
        (json!(null), json!(null), own.clone()),
        (json!([]), json!(null), own),
        (
            json!([{"name": "a.io/b"}]),
            json!(null),
            json!([{"name": "a.io/b"}]),
        ),
        (json!([]), json!({"podGroupName": "g"}), json!([])),
    ] {
        let spec = json!({"tomorrow": [1, null], "evictionResponders": responders, "schedulingGroup": group});
        let template = json!({"spec": spec}).to_string().into_bytes();
        let (_, written) =
            codec::new_pod(&create(Template::new(template), true)).expect("it can be written");
        let written: Value = serde_json::from_slice(&written).expect("it is JSON");
        let mut changed = spec;
        changed["evictionResponders"] = expected;
        assert_eq!(written["spec"], changed);
    }
}

#[test]
fn template_that_is_cut_off_makes_no_pod() {
    let template = Template::new([0x0a, 0x7f]);
    let create = create(template, false);
    assert!(codec::new_pod(&create).is_err());
}

#[test]
fn bookmark_of_any_kind_has_its_version() {
    let metadata = field(1, &field(6, b"12"));
    let status = field(3, &[0x08, 0x00]);
    let set = document("ReplicaSet", [metadata, status].concat());
    let event = codec::frame(Kind::ReplicaSet, event("BOOKMARK", set));
    assert_eq!(event, WatchEvent::Bookmark("12".into()));
}

#[test]
fn verb_of_an_event_is_read() {
    let pod = json!({"kind": "Pod", "metadata": {"namespace": "n", "name": "a", "uid": "u"}});
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired"});
    let read = |verb: &str, object: &Value| {
        let line = json!({"type": verb, "object": object}).to_string();
        codec::line(Kind::Pod, &Bytes::from(line))
    };
    let mark = json!({"kind": "Pod", "metadata": {"resourceVersion": "8"}});
    assert_eq!(read("BOOKMARK", &mark), WatchEvent::Bookmark("8".into()));
    assert!(matches!(read("ADDED", &pod), WatchEvent::Applied(_)));
    assert!(matches!(read("DELETED", &pod), WatchEvent::Deleted(_)));
    assert!(matches!(read("ERROR", &gone), WatchEvent::Error(it) if it.code == Some(410)));
}

#[test]
fn pod_without_uid_is_refused_as_in_json() {
    let pod = field(1, &[field(1, b"web-1"), field(3, b"default")].concat());
    let pod = message::<PodMessage>(&document("Pod", pod)).expect("it is one");
    let in_json = json!({"metadata": {"name": "web-1", "namespace": "default"}});
    let error = pod.project().expect_err("it lacks its uid");
    let expected = "pod default/web-1: metadata.uid: is required";
    assert_eq!(error.to_string(), expected);
    assert_eq!(Err(error), objects::pod(&in_json));
}

/// An object with this name and further metadata.
fn named(name: &str, metadata: &[u8]) -> Vec<u8> {
    let own = [(1, name), (3, "default"), (5, "u-1"), (6, "6")];
    let own = own.map(|(number, text)| field(number, text.as_bytes()));
    field(1, &[&own.concat(), metadata].concat())
}

/// The list of these pods.
fn list(pods: &[&[u8]]) -> List {
    let pods: Vec<_> = pods.iter().flat_map(|pod| field(2, pod)).collect();
    let list = [field(1, &field(2, b"7")), pods].concat();
    let page = codec::page(Kind::Pod, true, &document("PodList", list));
    page.expect("it is one").list
}

#[test]
fn pod_whose_texts_are_not_utf_8_is_read_in_lists_and_events() {
    let cost = field(1, b"controller.kubernetes.io/pod-deletion-cost");
    let cost = [cost, field(2, b"\xff7")].concat();
    let owner = [field(3, b"w\xffb"), field(4, b"\xff"), vec![0x30, 1]].concat();
    let metadata = [field(12, &cost), field(13, &owner), field(14, b"\xff")].concat();
    let waits = [field(1, b"PodScheduled"), field(5, b"Unschedulable")].concat();
    let waits = [waits, field(6, b"\xe2\x82")].concat();
    let odd = [named("odd", &metadata), field(3, &field(2, &waits))].concat();
    let list = list(&[&odd, &named("a", b"")]);
    assert!(list.invalid.is_empty(), "{list:?}");
    let Items::Pods(pods) = list.items else {
        panic!("these are no pods")
    };
    let pods: Vec<_> = pods.into_pods().collect();
    let [pod, other] = &pods[..] else {
        panic!("{pods:?}")
    };
    let owner = pod.controller.as_ref().expect("it has one");
    let texts = [&owner.name, &owner.uid, &pod.waiting_reason, &other.name];
    let expected = ["w\u{fffd}b", "\u{fffd}", "Unschedulable: \u{fffd}", "a"];
    assert_eq!(texts, expected);
    assert_eq!(pod.deletion_cost.as_deref(), Some("\u{fffd}7"));
    let changed = codec::frame(Kind::Pod, event("MODIFIED", document("Pod", odd)));
    let pod = Object::Pod(Box::new(pod.clone()));
    assert_eq!(changed, WatchEvent::Applied(pod));
}

#[test]
fn object_that_cannot_be_decoded_harms_no_other() {
    let odd = named("odd", &field(7, b"no number"));
    let list = list(&[&odd, &named("a", b"")]);
    assert_eq!((list.count(), list.invalid.len()), (2, 1));
    let error = list.invalid[0].clone();
    let place = "pod default/odd: protobuf: failed to decode Protobuf message: ObjectMeta.gen";
    assert!(error.to_string().starts_with(place), "{error}");
    let changed = codec::frame(Kind::Pod, event("MODIFIED", document("Pod", odd)));
    let expected = WatchEvent::Invalid {
        error,
        resource_version: "6".into(),
        left_out: None,
    };
    assert_eq!(changed, expected);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let metadata = json!({"namespace": "default", "name": "odd", "labels": 7});
    let odd = format!(r#"{{"metadata": {metadata}, "deep": {deep}}}"#);
    let metadata = json!({"resourceVersion": "7"});
    let list = format!(r#"{{"kind": "PodList", "metadata": {metadata}, "items": [{odd}]}}"#);
    let page = codec::page(Kind::Pod, true, &Bytes::from(list)).expect("it is one");
    let error = page.list.invalid[0].to_string();
    let place = "pod default/odd: JSON: invalid type: integer `7`";
    assert!(error.starts_with(place), "{error}");
    let odd = json!({"kind": "Pod", "metadata": {"namespace": "default", "name": "odd", "uid": "u",
        "resourceVersion": "6", "labels": {"app": 7}}});
    let line = json!({"type": "MODIFIED", "object": odd}).to_string();
    let changed = codec::line(Kind::Pod, &Bytes::from(line));
    let WatchEvent::Invalid {
        error,
        resource_version,
        left_out: None,
    } = changed
    else {
        panic!("{changed:?}")
    };
    let place =
        "pod default/odd: metadata.labels.app: invalid type: integer `7`, expected a string";
    assert_eq!(error.to_string(), place);
    assert_eq!(resource_version, "6");
}

#[test]
fn odd_object_that_is_gone_and_odd_replica_set_are_left_out_by_their_names() {
    let left_out = |kind: Kind, noun: &str, verb: &str| {
        let odd = document(noun, named("odd", &field(7, b"no number")));
        let read = codec::frame(kind, event(verb, odd));
        let WatchEvent::Invalid { left_out, .. } = read else {
            panic!("{read:?} is valid")
        };
        left_out.map(|object| match object {
            Object::Pod(pod) => [pod.namespace, pod.name, pod.uid, pod.resource_version],
            Object::ReplicaSet(set) => {
                let set = set.projected;
                [set.namespace, set.name, set.uid, set.resource_version]
            }
        })
    };
    let names = Some(["default", "odd", "u-1", "6"].map(str::to_owned));
    assert_eq!(left_out(Kind::Pod, "Pod", "DELETED"), names);
    assert_eq!(left_out(Kind::Pod, "Pod", "MODIFIED"), None);
    for verb in ["ADDED", "MODIFIED", "DELETED"] {
        assert_eq!(left_out(Kind::ReplicaSet, "ReplicaSet", verb), names);
    }
}

#[test]
fn deleted_pod_is_gone_where_its_time_is_over_and_nothing_holds_it() {
    let own = [field(1, b"a"), field(3, b"n"), field(5, b"u")].concat();
    let pod = |metadata: &[u8]| document("Pod", field(1, &[&own, metadata].concat()));
    let is_gone = |document: &Bytes| matches!(codec::deletion(document), Ok(Reply::Gone(_)));
    assert!(is_gone(&pod(&[0x50, 0x00])));
    assert!(!is_gone(&pod(&[0x50, 0x1e])), "30 seconds are left");
    assert!(!is_gone(&pod(
        &[&[0x50, 0x00][..], &field(14, b"f/x")].concat()
    )));
    assert!(!is_gone(&pod(b"")), "it was not asked to go");
    assert!(is_gone(&document("Status", field(2, b"Success"))));
    assert!(!is_gone(&document("Status", field(2, b"Failure"))));
    let in_json = |seconds: u64, finalizers: Value| {
        let metadata = json!({"namespace": "n", "name": "a", "uid": "u",
            "deletionGracePeriodSeconds": seconds, "finalizers": finalizers});
        Bytes::from(json!({"kind": "Pod", "metadata": metadata}).to_string())
    };
    assert!(is_gone(&in_json(0, Value::Null)));
    assert!(!is_gone(&in_json(30, Value::Null)));
    assert!(!is_gone(&in_json(0, json!(["f/x"]))));
    let success = json!({"kind": "Status", "status": "Success"});
    assert!(is_gone(&Bytes::from(success.to_string())));
}

#[test]
fn refusal_tells_its_causes_and_when_to_come_again() {
    let cause = field(4, &field(1, b"NamespaceTerminating"));
    let details = [cause, vec![0x28, 0x02]].concat();
    let status = [
        field(3, b"no"),
        field(4, b"Forbidden"),
        field(5, &details),
        vec![0x30, 0x93, 0x03],
    ]
    .concat();
    let error = codec::refusal(Some(403), &document("Status", status));
    let in_json = json!({"kind": "Status", "message": "no", "reason": "Forbidden",
        "details": {"causes": [{"reason": "NamespaceTerminating"}], "retryAfterSeconds": 2}});
    let in_json = Bytes::from(in_json.to_string());
    assert_eq!(codec::refusal(Some(403), &in_json), error);
    assert_eq!(
        (error.code, error.reason.as_str(), error.message.as_str()),
        (Some(403), "Forbidden", "no")
    );
    assert_eq!(
        (error.causes, error.retry_after_seconds),
        (vec!["NamespaceTerminating".to_owned()], Some(2))
    );
}

#[test]
fn what_is_cut_off_never_reads_as_the_whole() {
    let document = replica_set_document();
    let whole = message::<ReplicaSetMessage>(&document).expect("it is one");
    for length in 0..document.len() {
        let part = message::<ReplicaSetMessage>(&document.slice(..length)).ok();
        assert_ne!(part.as_ref(), Some(&whole), "{length}");
    }
}

/// The ADDED event of a pod that a ReplicaSet controls, in protobuf and in JSON, with managed fields by manager and subresource.
fn added(kind: &str, writers: &[(&str, &str)]) -> [WatchEvent; 2] {
    let owner = [field(1, kind.as_bytes()), field(4, b"u-1"), vec![0x30, 1]].concat();
    let named = [field(1, b"web-1"), field(3, b"default"), field(5, b"p-1")].concat();
    let managed = writers.iter().map(|(manager, subresource)| {
        field(
            17,
            &[
                field(1, manager.as_bytes()),
                field(8, subresource.as_bytes()),
            ]
            .concat(),
        )
    });
    let managed = managed.collect::<Vec<_>>().concat();
    let metadata = [named, field(13, &owner), managed].concat();
    let event = event("ADDED", document("Pod", field(1, &metadata)));
    let writers = writers
        .iter()
        .map(|(manager, subresource)| json!({"manager": manager, "subresource": subresource}));
    let in_json = json!({"type": "ADDED", "object": {"kind": "Pod", "metadata": {
        "name": "web-1", "namespace": "default", "uid": "p-1", "managedFields": writers.collect::<Vec<_>>(),
        "ownerReferences": [{"kind": kind, "uid": "u-1", "controller": true}],
    }}});
    let in_json = in_json.to_string();
    [
        codec::frame(Kind::Pod, event),
        codec::line(Kind::Pod, &Bytes::from(in_json)),
    ]
}

#[test]
fn new_pod_of_a_replica_set_says_which_other_writer_made_it() {
    let built_in = ("kube-controller-manager", "");
    for (kind, writers, expected) in [
        (
            "ReplicaSet",
            vec![built_in, ("decree-agent", "")],
            Some(built_in.0),
        ),
        (
            "ReplicaSet",
            vec![("kubelet", "status"), ("decree-agent", ""), built_in],
            None,
        ),
        ("ReplicaSet", vec![], None),
        ("Job", vec![built_in], None),
    ] {
        for event in added(kind, &writers) {
            let writer = if let WatchEvent::MadeByOther { writer, .. } = event {
                Some(writer)
            } else {
                assert!(matches!(event, WatchEvent::Applied(_)), "{event:?}");
                None
            };
            assert_eq!(writer.as_deref(), expected, "{kind} {writers:?}");
        }
    }
}
