//! Frames are read as prost reads them, whatever their bytes are, and within their bounds.

use decree::v1::{event::Event, outcome::Outcome, reconcile_request::Frame};
use proptest::prelude::*;
use prost::Message;

use super::*;

fn pod(number: usize, labels: usize) -> v1::Pod {
    v1::Pod {
        name: format!("pod-{number}"),
        labels: (0..labels).map(|n| (format!("l{n}"), "x".into())).collect(),
        ..v1::Pod::default()
    }
}

/// Returns frames with so many items.
fn frames(items: usize) -> Vec<v1::ReconcileRequest> {
    let pods = (0..items).map(|number| pod(number, 3));
    let event = |pod| v1::Event {
        event: Some(Event::PodApplied(pod)),
        ..v1::Event::default()
    };
    let outcome = |operation| v1::Outcome {
        batch_id: 7,
        operation,
        outcome: Some(Outcome::NotStarted(v1::NotStarted::default())),
        ..v1::Outcome::default()
    };
    let operations = 0..u32::try_from(items).expect("few");
    let frames = [
        Frame::SnapshotObjects(v1::SnapshotObjects {
            pods: pods.clone().collect(),
            replica_sets: vec![v1::ReplicaSet::default(); items],
        }),
        Frame::Events(v1::Events {
            events: pods.map(event).collect(),
        }),
        Frame::Outcomes(v1::Outcomes {
            outcomes: operations.map(outcome).collect(),
        }),
    ];
    let number = |frame| v1::ReconcileRequest {
        sequence: 9,
        frame: Some(frame),
    };
    frames.map(number).into()
}

fn read(bytes: Vec<u8>) -> Result<v1::ReconcileRequest, MalformedFrame> {
    IncomingFrame::new(bytes.into())?.into_request()
}

#[test]
fn frame_is_read_as_it_was_written() {
    for items in [0, 1, 16, 300] {
        for request in frames(items) {
            assert_eq!(read(request.encode_to_vec()), Ok(request));
        }
    }
}

#[test]
fn recorded_frame_is_what_is_read() {
    for items in [0, 1, 300] {
        for mut request in frames(items) {
            if let Some(Frame::SnapshotObjects(objects)) = &mut request.frame {
                objects.pods.push(pod(items, 5_000));
            }
            let frame = IncomingFrame::new(request.encode_to_vec().into()).expect("a frame");
            let mut recorded = Vec::new();
            frame.encode(&mut recorded);
            assert_eq!(
                v1::ReconcileRequest::decode(&*recorded),
                Ok(frame.into_request().expect("a frame"))
            );
        }
    }
}

#[test]
fn lists_beyond_their_bound_are_not_read_on() {
    let requirement = v1::LabelSelectorRequirement {
        values: vec!["value".to_owned(); 50_000],
        ..v1::LabelSelectorRequirement::default()
    };
    let set = v1::ReplicaSet {
        name: "web".to_owned(),
        selector: Some(v1::LabelSelector {
            match_expressions: vec![requirement],
            ..v1::LabelSelector::default()
        }),
        status: Some(v1::ReplicaSetStatus {
            conditions: vec![v1::ReplicaSetCondition::default(); 50_000],
            ..v1::ReplicaSetStatus::default()
        }),
        ..v1::ReplicaSet::default()
    };
    let frame = Frame::SnapshotObjects(v1::SnapshotObjects {
        pods: vec![pod(1, 50_000)],
        replica_sets: vec![set],
    });
    let request = v1::ReconcileRequest {
        sequence: 1,
        frame: Some(frame),
    };
    let read = read(request.encode_to_vec()).expect("a frame");
    let Some(Frame::SnapshotObjects(read)) = read.frame else {
        panic!("objects were expected")
    };
    assert_eq!(read.pods[0].labels.len(), 1_001);
    let set = &read.replica_sets[0];
    assert_eq!(set.name, "web");
    let selector = set.selector.as_ref().expect("a selector");
    assert_eq!(selector.match_expressions[0].values.len(), 10_001);
    let status = set.status.as_ref().expect("a status");
    assert_eq!(status.conditions.len(), 101);
}

#[test]
fn frame_list_and_object_of_very_many_fields_are_malformed() {
    let field = [0xf8, 0x07, 0x01];
    let within = |number: u8, inner: &[u8]| {
        let mut bytes = vec![number << 3 | 2];
        prost::encoding::encode_varint(inner.len() as u64, &mut bytes);
        bytes.extend_from_slice(inner);
        bytes
    };
    let many = |count: usize| field.repeat(count);
    let object = within(4, &within(1, &many(20_001)));
    let error = |bytes: Vec<u8>| read(bytes).expect_err("it has too many");
    assert_eq!(error(many(1_001)), MalformedFrame::Fields(1_000));
    let list = error(within(4, &many(1_001)));
    assert_eq!(list, MalformedFrame::Fields(1_000));
    assert_eq!(error(object), MalformedFrame::Fields(20_000));
    let few = within(4, &within(1, &many(6_000)));
    assert!(read(few).is_ok());
}

#[test]
fn values_of_all_requirements_together_have_one_bound() {
    let requirement = v1::LabelSelectorRequirement {
        values: vec!["value".to_owned(); 500],
        ..v1::LabelSelectorRequirement::default()
    };
    let set = v1::ReplicaSet {
        selector: Some(v1::LabelSelector {
            match_expressions: vec![requirement; 100],
            ..v1::LabelSelector::default()
        }),
        ..v1::ReplicaSet::default()
    };
    let frame = Frame::SnapshotObjects(v1::SnapshotObjects {
        replica_sets: vec![set],
        ..v1::SnapshotObjects::default()
    });
    let request = v1::ReconcileRequest {
        sequence: 1,
        frame: Some(frame),
    };
    let read = read(request.encode_to_vec()).expect("a frame");
    let Some(Frame::SnapshotObjects(read)) = read.frame else {
        panic!("objects were expected")
    };
    let selector = read.replica_sets[0].selector.as_ref().expect("a selector");
    let values = selector.match_expressions.iter().map(|it| it.values.len());
    assert_eq!(values.sum::<usize>(), 10_001);
}

#[test]
fn frame_with_two_lists_is_malformed() {
    let bytes: Vec<u8> = frames(100)
        .iter()
        .flat_map(Message::encode_to_vec)
        .collect();
    assert_eq!(
        IncomingFrame::new(bytes.into()).err(),
        Some(MalformedFrame::Twice)
    );
}

proptest! {
    #[test]
    fn damaged_bytes_are_a_frame_here_where_they_are_one_elsewhere(
        which in 0_usize..3,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = frames(60)[which].encode_to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let whole = v1::ReconcileRequest::decode(&*bytes);
        if let (Ok(whole), Ok(here)) = (&whole, read(bytes)) {
            // Of a frame with several contents the list is read, and elsewhere the last.
            if matches!(whole.frame, Some(Frame::SnapshotObjects(_) | Frame::Events(_) | Frame::Outcomes(_))) {
                prop_assert_eq!(&here.frame, &whole.frame);
            }
        }
    }
}
