//! A text of a megabyte in each field of the contract that an agent fills: the server refuses its object and the session
//! continues, or the session ends with a short status. The test reads the fields from the descriptors, so that it covers all
//! fields.

use std::time::Duration;

use decree::v1::{self, event, outcome, reconcile_request::Frame, reconcile_response};
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};
use server_core::Timestamp;
use server_session::{End, Now, Session};
use tests::objects::{pod, pod_ref, replica_set, session_config};

/// The maximum size of all frames that answer one text, in bytes.
const ANSWER_MAX: usize = 4 << 10;
const NOW: Now = Now {
    wall: Timestamp::from_seconds(1_700_000_000),
    monotonic: Duration::from_secs(1),
};

/// The fate of a text of a megabyte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The server rejects its object.
    Rejected,
    /// The server truncates the text, or does not keep it.
    Dropped,
    /// The session ends for this reason.
    Ends(&'static str),
}

/// The exceptions: texts whose object is not rejected.
fn fate(path: &str) -> Fate {
    match path {
        "hello.capabilities" => Fate::Ends("CAPABILITY_UNSUPPORTED"),
        "snapshot_end.resource_version" | "events.events.bookmark.resource_version" => {
            Fate::Ends("INVALID_FIELD")
        }
        "outcomes.outcomes.done.uid"
        | "outcomes.outcomes.failed.message"
        | "outcomes.outcomes.not_started.message" => Fate::Dropped,
        // An outcome may contain a quarantined ReplicaSet; the server does not keep its fault.
        _ => match path.strip_prefix("outcomes.outcomes.done.replica_set.") {
            Some("namespace" | "name" | "uid") => Fate::Rejected,
            Some(_) => Fate::Dropped,
            None if path.starts_with("hello.") => Fate::Ends("INVALID_FIELD"),
            None => Fate::Rejected,
        },
    }
}

/// The path from a frame to a text.
type Path = Vec<FieldDescriptor>;

fn name(path: &Path) -> String {
    let names: Vec<_> = path.iter().map(|field| field.name().to_owned()).collect();
    names.join(".")
}

/// Adds the paths to all texts below a message.
fn texts(message: &MessageDescriptor, path: &Path, found: &mut Vec<Path>) {
    for field in message.fields() {
        let here: Path = path.iter().chain([&field]).cloned().collect();
        match field.kind() {
            Kind::String => found.push(here),
            Kind::Message(below) => texts(&below, &here, found),
            _ => {}
        }
    }
}

/// Sets a text at a path; a list and a map get one more entry.
fn put(message: &mut DynamicMessage, path: &[FieldDescriptor], text: &str) {
    let Some((field, below)) = path.split_first() else {
        return;
    };
    if field.is_map() {
        let (key, value) = match below[0].name() {
            "key" => (text, "b"),
            _ => ("a", text),
        };
        if let Value::Map(map) = message.get_field_mut(field) {
            map.insert(MapKey::String(key.into()), Value::String(value.into()));
        }
        return;
    }
    let value = match field.kind() {
        Kind::Message(descriptor) => {
            let mut inner = match message.get_field(field).as_ref() {
                Value::Message(known) => known.clone(),
                Value::List(known) if !known.is_empty() => {
                    known[0].as_message().expect("a list of messages").clone()
                }
                _ => DynamicMessage::new(descriptor),
            };
            put(&mut inner, below, text);
            Value::Message(inner)
        }
        _ => Value::String(text.to_owned()),
    };
    let value = if field.is_list() {
        Value::List(vec![value])
    } else {
        value
    };
    message.set_field(field, value);
}

/// Valid frames, one for each place of a text.
fn sound() -> Vec<Frame> {
    let (set, pod) = (replica_set("web").build(), pod("a", "web").build());
    let event = |event| {
        let events = vec![v1::Event { event: Some(event) }];
        Frame::Events(v1::Events { events })
    };
    let outcome = |outcome| {
        let outcomes = vec![v1::Outcome {
            batch_id: 1,
            operation: 0,
            outcome: Some(outcome),
        }];
        Frame::Outcomes(v1::Outcomes { outcomes })
    };
    let done = |object| {
        outcome(outcome::Outcome::Done(v1::Done {
            object: Some(object),
            ..v1::Done::default()
        }))
    };
    let deleted = v1::Deleted {
        kind: v1::Kind::Pod.into(),
        object: Some(pod_ref(&pod)),
        resource_version: "12".to_owned(),
    };
    let kind = v1::Kind::Pod.into();
    vec![
        Frame::Hello(hello()),
        Frame::SnapshotBegin(v1::SnapshotBegin { kind }),
        Frame::SnapshotObjects(v1::SnapshotObjects {
            pods: vec![pod.clone()],
            replica_sets: vec![set.clone()],
        }),
        Frame::SnapshotEnd(v1::SnapshotEnd {
            kind,
            ..v1::SnapshotEnd::default()
        }),
        event(event::Event::PodApplied(pod.clone())),
        event(event::Event::ReplicaSetApplied(set.clone())),
        event(event::Event::Deleted(deleted)),
        event(event::Event::Bookmark(v1::Bookmark {
            kind,
            resource_version: "12".to_owned(),
        })),
        done(v1::done::Object::Pod(pod)),
        done(v1::done::Object::ReplicaSet(set)),
        outcome(outcome::Outcome::Failed(v1::Failed::default())),
        outcome(outcome::Outcome::NotStarted(v1::NotStarted::default())),
        Frame::Heartbeat(v1::Heartbeat::default()),
    ]
}

fn hello() -> v1::Hello {
    crate::agent::hello("c1")
}

fn request(frame: Frame) -> v1::ReconcileRequest {
    v1::ReconcileRequest {
        sequence: 0,
        frame: Some(frame),
    }
}

/// Opens a session with both lists open.
fn open(first: v1::ReconcileRequest) -> Result<Session, server_session::Refusal> {
    let mut session = Session::open(NOW, session_config(), "s1".to_owned(), first)?;
    for kind in [v1::Kind::Pod, v1::Kind::ReplicaSet] {
        let kind = kind.into();
        let begin = request(Frame::SnapshotBegin(v1::SnapshotBegin { kind }));
        session.handle_frame(NOW, begin);
    }
    while session.poll_frame(NOW).is_some() {}
    Ok(session)
}

/// Gives a frame to a separate session; returns its fate, and the number of bytes in the answers.
fn give(frame: v1::ReconcileRequest) -> (Fate, usize) {
    let ended = |refusal: server_session::Refusal| {
        (Fate::Ends(refusal.reason()), refusal.to_string().len())
    };
    if matches!(frame.frame, Some(Frame::Hello(_))) {
        return open(frame).map_or_else(ended, |_| (Fate::Dropped, 0));
    }
    let mut session = open(request(Frame::Hello(hello()))).expect("a sound hello");
    session.handle_frame(NOW, frame);
    let (mut bytes, mut fate) = (0, Fate::Dropped);
    while let Some(answer) = session.poll_frame(NOW) {
        bytes += answer.encoded_len();
        if let Some(reconcile_response::Frame::Rejection(_)) = answer.frame {
            fate = Fate::Rejected;
        }
    }
    match session.poll_end() {
        Some(End::Refused(refusal)) => ended(refusal),
        Some(End::Closed) | None => (fate, bytes),
    }
}

#[test]
fn text_of_a_megabyte_in_any_field_harms_its_object_alone_and_has_a_small_answer() {
    let pool = DescriptorPool::decode(decree::FILE_DESCRIPTOR_SET).expect("the contract");
    let descriptor = pool
        .get_message_by_name("decree.v1.ReconcileRequest")
        .expect("a frame");
    let mut paths = Vec::new();
    texts(&descriptor, &Vec::new(), &mut paths);
    assert!(paths.len() > 80, "{}", paths.len());
    let long = "a".repeat(1 << 20);
    for path in paths {
        let shape = name(&path);
        // The valid frame that has the longest part of the path gets the text.
        let frames = sound().into_iter().map(|frame| {
            let bytes = request(frame).encode_to_vec();
            DynamicMessage::decode(descriptor.clone(), bytes.as_slice()).expect("a frame")
        });
        let mut frame = frames
            .max_by_key(|frame| shared(frame, &path))
            .expect("there are frames");
        put(&mut frame, &path, &long);
        let frame = v1::ReconcileRequest::decode(frame.encode_to_vec().as_slice());
        let (became, bytes) = give(frame.expect("still a frame"));
        assert_eq!(became, fate(&shape), "{shape}");
        assert!(bytes <= ANSWER_MAX, "{shape}: {bytes} bytes are said");
    }
}

/// The length of the part of a path that a message has.
fn shared(message: &DynamicMessage, path: &[FieldDescriptor]) -> usize {
    let Some((field, below)) = path.split_first() else {
        return 0;
    };
    if !message.has_field(field) {
        return 0;
    }
    let value = message.get_field(field);
    let inner = match value.as_ref() {
        Value::List(list) => list.first().and_then(Value::as_message),
        value => value.as_message(),
    };
    1 + inner.map_or(0, |inner| shared(inner, below))
}
