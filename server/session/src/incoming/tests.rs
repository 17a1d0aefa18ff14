//! The items of a frame are the items that prost reads, for any bytes.

use decree_api::v1::{event::Event, outcome::Outcome, reconcile_request::Frame};
use proptest::prelude::*;

use super::*;

fn pod(number: usize) -> v1::Pod {
    v1::Pod {
        name: format!("pod-{number}"),
        ..v1::Pod::default()
    }
}

fn frames(items: usize) -> Vec<v1::ReconcileRequest> {
    let pods = (0..items).map(pod);
    let event = |pod| v1::Event {
        event: Some(Event::PodApplied(pod)),
    };
    let outcome = |operation| v1::Outcome {
        batch_id: 7,
        operation,
        outcome: Some(Outcome::NotStarted(v1::NotStarted::default())),
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
        Frame::Nodes(v1::Nodes {
            applied: vec![v1::Node::default(); items],
            deleted: (0..items).map(|number| format!("node-{number}")).collect(),
            complete: items > 0,
        }),
    ];
    let number = |frame| v1::ReconcileRequest {
        sequence: 9,
        frame: Some(frame),
    };
    frames.map(number).into()
}

/// Reads a frame item by item, and puts the items together again.
fn read(bytes: Vec<u8>) -> Result<v1::ReconcileRequest, MalformedFrame> {
    let frame = IncomingFrame::from(Bytes::from(bytes));
    let Head { sequence, list } = frame.head()?;
    let Some(list) = list else {
        return Ok(v1::ReconcileRequest::decode(&**frame.as_bytes())?);
    };
    let (mut objects, mut events) = (v1::SnapshotObjects::default(), v1::Events::default());
    let (mut outcomes, mut nodes) = (v1::Outcomes::default(), v1::Nodes::default());
    for item in frame.items(list) {
        match item? {
            Item::Pod(pod) => objects.pods.push(v1::Pod::decode(pod)?),
            Item::ReplicaSet(set) => objects.replica_sets.push(v1::ReplicaSet::decode(set)?),
            Item::Event(event) => events.events.push(v1::Event::decode(event)?),
            Item::Outcome(outcome) => outcomes.outcomes.push(v1::Outcome::decode(outcome)?),
            Item::Node(node) => nodes.applied.push(v1::Node::decode(node)?),
            Item::DeletedNode(name) => {
                nodes
                    .deleted
                    .push(String::from_utf8_lossy(name).into_owned());
            }
            Item::NodesComplete => nodes.complete = true,
        }
    }
    let frame = Some(match list {
        List::Objects => Frame::SnapshotObjects(objects),
        List::Events => Frame::Events(events),
        List::Outcomes => Frame::Outcomes(outcomes),
        List::Nodes => Frame::Nodes(nodes),
    });
    Ok(v1::ReconcileRequest { sequence, frame })
}

#[test]
fn items_together_are_the_frame() {
    for items in [0, 1, 300] {
        for request in frames(items) {
            assert_eq!(read(request.encode_to_vec()), Ok(request));
        }
    }
}

#[test]
fn list_in_pieces_is_one_list() {
    for request in frames(20) {
        let bytes = request.encode_to_vec();
        let mut twice = request.clone();
        twice.merge(&*bytes).expect("it is a frame");
        assert_eq!(read(bytes.repeat(2)), Ok(twice));
    }
}

#[test]
fn frame_with_two_contents_is_malformed() {
    let [objects, events, ..] = &frames(3)[..] else {
        unreachable!("there are more");
    };
    let bytes = [objects.encode_to_vec(), events.encode_to_vec()].concat();
    assert_eq!(read(bytes), Err(MalformedFrame::Twice));
}

#[test]
fn frame_without_a_list_has_the_bound_of_an_object() {
    let frame_of = |bytes: usize| {
        let frame = Some(Frame::Hello(v1::Hello {
            cluster_name: "x".repeat(bytes),
            ..v1::Hello::default()
        }));
        IncomingFrame::from(v1::ReconcileRequest { sequence: 1, frame })
    };
    assert!(frame_of(OBJECT_BYTES_MAX - 64).to_message().is_ok());
    let refused = frame_of(OBJECT_BYTES_MAX).to_message();
    let refused = refused.expect_err("it is too large");
    assert_eq!(refused.reason(), "INVALID_FIELD");
}

#[test]
fn frame_with_a_list_is_never_read_whole() {
    let empty = v1::SnapshotObjects {
        pods: vec![v1::Pod::default(); 100_000],
        ..v1::SnapshotObjects::default()
    };
    let frame = Some(Frame::SnapshotObjects(empty));
    let request = v1::ReconcileRequest { sequence: 1, frame };
    for request in frames(3).into_iter().chain([request]) {
        let refused = IncomingFrame::from(request).to_message();
        let refused = refused.expect_err("it has a list");
        assert_eq!(refused.reason(), "HELLO_EXPECTED");
    }
}

proptest! {
    #[test]
    fn damaged_bytes_are_read_as_prost_reads_them(
        which in 0_usize..3,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = frames(60)[which].encode_to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let expected = v1::ReconcileRequest::decode(&*bytes);
        match (read(bytes), expected) {
            (Ok(read), expected) => prop_assert_eq!(Ok(read), expected),
            // Of several contents, prost takes the last.
            (Err(MalformedFrame::Twice), _) => {}
            (Err(error), expected) => prop_assert!(expected.is_err(), "{}", error),
        }
    }
}
