//! The rules of a session's frames, without a stream.

use proptest::prelude::*;
use prost::Message;

use server_core::{After, Effect, Outcome, PodView, ResourceVersion, Span};

use super::*;
use crate::{
    incoming::{IncomingFrame, MalformedFrame},
    wire::{Rejected, raw_tests},
};

/// Notes what arrived, in short.
#[derive(Default)]
struct Notes(Vec<&'static str>, Vec<Kind>);

impl Sink for Notes {
    fn is_listed(&self, kind: Kind) -> bool {
        self.1.contains(&kind)
    }

    fn last_list(&self, _: Kind) -> Option<ResourceVersion> {
        None
    }

    fn event(&mut self, event: Event, _: Option<TraceContext>) {
        if let Event::SnapshotEnd { kind, .. } = &event {
            self.1.push(*kind);
        }
        self.0.push(match event {
            Event::SnapshotBegin(_) => "begin",
            Event::SnapshotEnd { .. } => "end",
            Event::PodApplied(_) | Event::ReplicaSetApplied(_) => "applied",
            Event::PodDeleted { .. } | Event::ReplicaSetDeleted { .. } => "deleted",
            Event::Bookmark { .. } => "bookmark",
        });
    }

    fn pod(&mut self, _: &PodView<'_>, _: Option<TraceContext>) {
        self.0.push("applied");
    }

    fn outcome(&mut self, _: Outcome, _: Option<TraceContext>) {
        self.0.push("outcome");
    }

    fn outcome_of_pod(&mut self, _: Outcome, _: &PodView<'_>, _: Option<TraceContext>) {
        self.0.push("outcome");
    }

    fn rejected(&mut self, _: Rejected) {
        self.0.push("rejected");
    }

    fn check(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn view_age(&mut self, _: Span) {
        self.0.push("view age");
    }
}

fn request(frame: Frame) -> v1::ReconcileRequest {
    v1::ReconcileRequest {
        sequence: 0,
        frame: Some(frame),
    }
}

fn begin(kind: v1::Kind) -> v1::ReconcileRequest {
    request(Frame::SnapshotBegin(v1::SnapshotBegin {
        kind: kind.into(),
    }))
}

fn end(kind: v1::Kind, count: i64) -> v1::ReconcileRequest {
    let resource_version = "5".to_owned();
    request(Frame::SnapshotEnd(v1::SnapshotEnd {
        kind: kind.into(),
        resource_version,
        count,
    }))
}

fn bookmark() -> v1::ReconcileRequest {
    let bookmark = v1::Bookmark {
        kind: v1::Kind::Pod.into(),
        resource_version: "6".to_owned(),
    };
    let event = Some(v1::event::Event::Bookmark(bookmark));
    request(Frame::Events(v1::Events {
        events: vec![v1::Event {
            event,
            ..v1::Event::default()
        }],
    }))
}

/// Reads frames and returns the notes, or the reason of the refusal.
fn take(
    frames: impl IntoIterator<Item = v1::ReconcileRequest>,
) -> Result<Vec<&'static str>, &'static str> {
    let (mut reader, mut notes) = (FrameReader::default(), Notes::default());
    for frame in frames {
        reader
            .read(frame.into(), &mut notes)
            .map_err(|refusal| refusal.reason())?;
    }
    Ok(notes.0)
}

#[test]
fn change_is_legal_once_its_kind_was_listed() {
    let listed = [begin(v1::Kind::Pod), end(v1::Kind::Pod, 0), bookmark()];
    assert_eq!(take(listed), Ok(vec!["begin", "end", "bookmark"]));
}

#[test]
fn change_is_not_legal_because_the_other_kind_was_listed() {
    let listed = [
        begin(v1::Kind::ReplicaSet),
        end(v1::Kind::ReplicaSet, 0),
        bookmark(),
    ];
    assert_eq!(take(listed), Err("EVENT_BEFORE_SNAPSHOT"));
}

#[test]
fn change_is_legal_between_a_later_begin_and_its_end() {
    let relisted = [
        begin(v1::Kind::Pod),
        end(v1::Kind::Pod, 0),
        begin(v1::Kind::Pod),
        bookmark(),
    ];
    assert_eq!(
        take(relisted),
        Ok(vec!["begin", "end", "begin", "bookmark"])
    );
}

#[test]
fn list_ends_once() {
    let twice = [
        begin(v1::Kind::Pod),
        end(v1::Kind::Pod, 0),
        end(v1::Kind::Pod, 0),
    ];
    assert_eq!(take(twice), Err("SNAPSHOT_NOT_OPEN"));
}

#[test]
fn unnumbered_frames_do_not_count() {
    let mut reader = FrameReader::default();
    let mut at = |sequence| {
        let heartbeat = Frame::Heartbeat(v1::Heartbeat::default());
        let request = v1::ReconcileRequest {
            sequence,
            frame: Some(heartbeat),
        };
        reader
            .read(request.into(), &mut Notes::default())
            .map_err(|refusal| refusal.reason())
    };
    assert_eq!(
        [at(1), at(0), at(2), at(4)],
        [Ok(()), Ok(()), Ok(()), Err("SEQUENCE_GAP")]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_with_any_damage_never_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        order in prop::collection::vec(0_usize..4, 1..12),
    ) {
        let sound = [begin(v1::Kind::Pod), end(v1::Kind::Pod, 0), bookmark(), begin(v1::Kind::ReplicaSet)];
        let (mut reader, mut notes) = (FrameReader::default(), Notes::default());
        for frame in order.into_iter().map(|place| &sound[place]) {
            let mut bytes = frame.encode_to_vec();
            for (place, byte) in &damage {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            if let Ok(damaged) = v1::ReconcileRequest::decode(bytes.as_slice()) {
                drop(reader.read(damaged.into(), &mut notes));
            }
        }
    }
}

/// Notes what arrived, in full.
#[derive(Default)]
struct Log(Vec<String>);

impl Sink for Log {
    fn is_listed(&self, _: Kind) -> bool {
        true
    }

    fn last_list(&self, _: Kind) -> Option<ResourceVersion> {
        None
    }

    fn event(&mut self, event: Event, trace: Option<TraceContext>) {
        self.0.push(format!("{event:?} {trace:?}"));
    }

    fn pod(&mut self, pod: &PodView<'_>, trace: Option<TraceContext>) {
        self.event(Event::PodApplied(pod.to_pod()), trace);
    }

    fn outcome(&mut self, outcome: Outcome, trace: Option<TraceContext>) {
        self.0.push(format!("{outcome:?} {trace:?}"));
    }

    fn outcome_of_pod(
        &mut self,
        mut outcome: Outcome,
        pod: &PodView<'_>,
        trace: Option<TraceContext>,
    ) {
        if let Effect::Done { after, .. } = &mut outcome.result {
            *after = Some(After::Pod(Box::new(pod.to_pod())));
        }
        self.outcome(outcome, trace);
    }

    fn rejected(&mut self, rejected: Rejected) {
        self.0.push(format!("{rejected:?}"));
    }

    fn check(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn view_age(&mut self, age: Span) {
        self.0.push(format!("{age:?}"));
    }
}

/// Returns a valid pod.
fn valid() -> v1::Pod {
    let text = |text: &str| text.to_owned();
    let label = |key: &str| (key.to_owned(), "x".to_owned());
    v1::Pod {
        namespace: text("default"),
        name: text("web-x"),
        uid: text("u1"),
        resource_version: text("7"),
        labels: ["app", "tier"].map(label).into(),
        controller: Some(v1::OwnerReference {
            kind: text("ReplicaSet"),
            name: text("web"),
            uid: text("u2"),
            ..v1::OwnerReference::default()
        }),
        node_name: text("node-1"),
        ..v1::Pod::default()
    }
}

/// A valid place in a trace.
const TRACED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn items_of(pods: Vec<v1::Pod>, which: usize, traceparent: &str) -> Frame {
    let event = |pod| v1::Event {
        event: Some(v1::event::Event::PodApplied(pod)),
        traceparent: traceparent.to_owned(),
    };
    let outcome = |(operation, pod)| v1::Outcome {
        batch_id: 7,
        traceparent: traceparent.to_owned(),
        operation,
        outcome: Some(v1::outcome::Outcome::Done(v1::Done {
            object: Some(v1::done::Object::Pod(pod)),
            ..v1::Done::default()
        })),
    };
    match which {
        0 => Frame::SnapshotObjects(v1::SnapshotObjects {
            pods,
            replica_sets: vec![v1::ReplicaSet::default()],
        }),
        1 => Frame::Events(v1::Events {
            events: pods.into_iter().map(event).collect(),
        }),
        _ => Frame::Outcomes(v1::Outcomes {
            outcomes: (0..).zip(pods).map(outcome).collect(),
        }),
    }
}

fn reader_with_open_lists() -> FrameReader {
    let mut reader = FrameReader::default();
    for kind in [v1::Kind::Pod, v1::Kind::ReplicaSet] {
        let frame = begin(kind).into();
        assert_eq!(reader.read(frame, &mut Log::default()), Ok(()));
    }
    reader
}

proptest! {
    #[test]
    fn items_are_taken_where_they_stand_as_messages_are(
        any in proptest::collection::vec(proptest::option::of(raw_tests::pods()), 1..5),
        which in 0_usize..3,
        traceparent in prop_oneof![Just(""), Just("none"), Just(TRACED)],
        damage in raw_tests::damage(),
    ) {
        let pods = any.into_iter().map(|pod| pod.unwrap_or_else(valid)).collect();
        let bytes = raw_tests::damaged(request(items_of(pods, which, traceparent)).encode_to_vec(), damage);
        let (mut here, mut elsewhere) = (Log::default(), Log::default());
        let mut reader = reader_with_open_lists();
        let frame = IncomingFrame::new(bytes.clone().into()).map_err(Refusal::from);
        let taken = frame.and_then(|frame| reader.read(frame, &mut here));
        let whole = v1::ReconcileRequest::decode(&*bytes);
        let whole = whole.map_err(|error| Refusal::from(MalformedFrame::from(error)));
        let expected = whole.and_then(|whole| {
            reader_with_open_lists().read(whole.into(), &mut elsewhere)
        });
        if matches!(taken, Err(Refusal::Malformed(_))) || matches!(expected, Err(Refusal::Malformed(_))) {
            prop_assert_eq!(taken.is_err(), expected.is_err());
        } else {
            prop_assert_eq!(taken, expected);
            prop_assert_eq!(here.0, elsewhere.0);
        }
    }
}
