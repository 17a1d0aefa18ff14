//! The rules of a session's frames, without a stream.

use proptest::prelude::*;
use prost::Message;

use super::*;

/// Notes what arrived, in short.
#[derive(Default)]
struct Notes(Vec<&'static str>, Vec<Kind>);

impl Sink for Notes {
    fn is_listed(&self, kind: Kind) -> bool {
        self.1.contains(&kind)
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

    fn outcome(&mut self, _: Outcome, _: Option<TraceContext>) {
        self.0.push("outcome");
    }

    fn rejected(&mut self, _: Rejected) {
        self.0.push("rejected");
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
            .read(frame, Extent::Last, &mut notes)
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
            .read(request, Extent::Last, &mut Notes::default())
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
                drop(reader.read(damaged, Extent::Last, &mut notes));
            }
        }
    }
}
