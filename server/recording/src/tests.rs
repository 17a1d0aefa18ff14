//! A recording made by hand of a real session: whole, torn, tampered with, foreign, and as wild bytes.

use std::time::Duration;

use decree::v1::{self, reconcile_request::Frame};
use proptest::prelude::*;
use server_core::Timestamp;
use server_session::{Config, Now, Session};

use super::*;

fn config(burst_bytes: usize) -> Config {
    Config {
        server_version: "0".into(),
        frame_bytes_max: burst_bytes,
        objects_max: 1_000,
        operations_in_flight_max: 1_000,
        bytes_max: usize::MAX,
        backoff_max: Duration::from_secs(30),
        work_per_poll: Config::WORK_PER_POLL,
        heartbeat_interval: Duration::from_secs(5),
        drain_deadline: Duration::from_secs(20),
        reconnect_after: Duration::from_secs(1),
    }
}

fn at(seconds: u64) -> Now {
    Now {
        wall: Timestamp::from_seconds(1_700_000_000 + i64::try_from(seconds).expect("small")),
        monotonic: Duration::from_secs(seconds),
    }
}

fn frames() -> Vec<Frame> {
    let labels = || [("app".to_owned(), "web".to_owned())].into();
    let set = v1::ReplicaSet {
        namespace: "default".into(),
        name: "web".into(),
        uid: "uid-of-web".into(),
        resource_version: "5".into(),
        generation: 1,
        replicas: Some(3),
        selector: Some(v1::LabelSelector {
            match_labels: labels(),
            match_expressions: Vec::new(),
        }),
        template_labels: labels(),
        ..v1::ReplicaSet::default()
    };
    let begin = |kind: v1::Kind| Frame::SnapshotBegin(v1::SnapshotBegin { kind: kind.into() });
    let end = |kind: v1::Kind, count| {
        Frame::SnapshotEnd(v1::SnapshotEnd {
            kind: kind.into(),
            resource_version: "10".into(),
            count,
        })
    };
    let objects = Frame::SnapshotObjects(v1::SnapshotObjects {
        pods: Vec::new(),
        replica_sets: vec![set],
    });
    let hello = Frame::Hello(v1::Hello {
        protocol_min: 1,
        protocol_max: 1,
        agent_instance: "agent-0".into(),
        cluster_uid: "cluster-0".into(),
        ..v1::Hello::default()
    });
    vec![
        hello,
        begin(v1::Kind::ReplicaSet),
        objects,
        end(v1::Kind::ReplicaSet, 1),
        begin(v1::Kind::Pod),
        end(v1::Kind::Pod, 0),
    ]
}

/// Records a session that lists one ReplicaSet of three pods and is then closed.
fn recording() -> Vec<u8> {
    let mut out = Vec::new();
    let mut requests = (1_u64..).zip(frames()).map(|(sequence, frame)| {
        let frame = Some(frame);
        v1::ReconcileRequest { sequence, frame }
    });
    let hello = requests.next().expect("it is the first");
    let config = config(4 << 20);
    let mut encoder = Encoder::begin(at(0), &config, "session-0", &hello, &mut out);
    let mut session = Session::open(at(0), config, "session-0".into(), hello).expect("valid");
    let mut decided = 0;
    for (second, request) in (1..).zip(requests) {
        assert!(encoder.frame(at(second), &request, &mut out), "it is small");
        session.handle_frame(at(second), request);
        decided += poll(&mut session, &mut encoder, at(second), &mut out);
    }
    assert!(decided > 1, "more than a welcome was sent");
    encoder.timeout(at(10), &mut out);
    session.handle_timeout(at(10));
    poll(&mut session, &mut encoder, at(10), &mut out);
    encoder.closed(at(11), &mut out);
    session.handle_closed(at(11));
    poll(&mut session, &mut encoder, at(11), &mut out);
    end(EndReason::Session, Some(&session), &mut out);
    out
}

fn poll(session: &mut Session, encoder: &mut Encoder, now: Now, out: &mut Vec<u8>) -> usize {
    let mut frames = 0;
    loop {
        let frame = session.poll_outgoing(now);
        assert!(encoder.poll(now, frame.as_ref(), out), "it is small");
        if frame.is_none() {
            return frames;
        }
        frames += 1;
    }
}

/// Replays to the end, and returns the differences and the summary.
fn replay(bytes: &[u8]) -> Result<(Vec<Difference>, Summary), ReadError> {
    let mut replay = Replay::open(bytes)?.keep_inputs();
    let mut differences = Vec::new();
    while let Some(difference) = replay.next_difference()? {
        differences.push(difference);
    }
    Ok((differences, replay.summary()))
}

/// Replaces a text by another of the same length wherever it stands.
fn tampered(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let places: Vec<_> = (0..bytes.len())
        .filter(|place| bytes[*place..].starts_with(from.as_bytes()))
        .collect();
    assert!(!places.is_empty(), "{from} is in it");
    for place in places {
        bytes[place..place + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

#[test]
fn whole_recording_replays_to_the_same_frames() {
    let (differences, summary) = replay(&recording()).expect("it is whole");
    assert_eq!(differences, []);
    assert_eq!(summary.ending, Ending::Marked(EndReason::Session));
    assert_eq!(summary.frames_in, 6);
    let three_pods = Decisions {
        batches: 1,
        creates: 3,
        ..Decisions::default()
    };
    assert_eq!(summary.decisions, three_pods);
}

#[test]
fn recording_torn_at_any_byte_replays_up_to_the_tear() {
    let whole = recording();
    for length in 0..whole.len() {
        match replay(&whole[..length]) {
            Ok((differences, summary)) => {
                assert_eq!(differences, [], "torn at {length}");
                assert_ne!(summary.ending, Ending::Marked(EndReason::Session));
            }
            Err(ReadError::Foreign | ReadError::Empty(_)) => {}
            Err(error) => panic!("torn at {length}: {error}"),
        }
    }
}

#[test]
fn tampered_frame_is_found_with_what_came_before_it() {
    // Another uid gives the pods other names.
    let bytes = tampered(&recording(), "uid-of-web", "uid-of-wet");
    let (differences, _) = replay(&bytes).expect("it can be read");
    let [
        Difference::Frame {
            recorded: Some(_),
            decided: Some(_),
            after,
            ..
        },
        ..,
    ] = &differences[..]
    else {
        panic!("{differences:?}")
    };
    assert!(matches!(after.last(), Some(Input::Frame(_, frame)) if frame.sequence == 6));
}

#[test]
fn other_limit_in_the_header_is_found() {
    let mut bytes = recording();
    let interval = prost_varint(5_000_000_000);
    let place = bytes
        .windows(interval.len())
        .position(|window| window == interval)
        .expect("the heartbeat interval is in the header");
    bytes[place] ^= 1;
    let (differences, _) = replay(&bytes).expect("it can be read");
    assert!(!differences.is_empty(), "the welcome names the interval");
}

fn prost_varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).expect("7 bits") | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).expect("7 bits"));
    bytes
}

#[test]
fn files_that_are_none_are_told_from_damaged_ones() {
    assert!(matches!(replay(b""), Err(ReadError::Foreign)));
    assert!(matches!(
        replay(b"{\"kind\": \"List\"}"),
        Err(ReadError::Foreign)
    ));
    let mut lies = recording();
    lies.truncate(19);
    lies.extend(prost_varint(1 << 40));
    assert!(matches!(
        replay(&lies),
        Err(ReadError::TooLarge { at: 19, claimed }) if claimed == 1 << 40
    ));
    lies.truncate(19);
    lies.extend([0xff; 11]);
    assert!(matches!(replay(&lies), Err(ReadError::Length(19))));
    let mut more = recording();
    more.push(0);
    assert!(matches!(replay(&more), Err(ReadError::AfterEnd(_))));
}

#[test]
fn frame_that_is_too_large_leaves_no_trace() {
    let mut requests = frames().into_iter().map(|frame| v1::ReconcileRequest {
        sequence: 1,
        frame: Some(frame),
    });
    let mut out = Vec::new();
    let hello = requests.next().expect("it is the first");
    let mut encoder = Encoder::begin(at(0), &config(4 << 20), "session-0", &hello, &mut out);
    let before = out.clone();
    let large = Frame::Hello(v1::Hello {
        cluster_name: "x".repeat(FRAME_BYTES_MAX),
        ..v1::Hello::default()
    });
    let large = v1::ReconcileRequest {
        sequence: 2,
        frame: Some(large),
    };
    assert!(!encoder.frame(at(1), &large, &mut out));
    let large = v1::ReconcileResponse {
        sequence: 1,
        frame: Some(v1::reconcile_response::Frame::Resync(v1::Resync {
            kind: v1::Kind::Pod.into(),
            cause: "x".repeat(FRAME_BYTES_MAX),
        })),
    };
    assert!(!encoder.poll(at(1), Some(&large.into()), &mut out));
    assert!(out == before, "{} bytes more", out.len() - before.len());
}

proptest! {
    #[test]
    fn no_bytes_make_a_replay_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = recording();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        drop(replay(&bytes));
    }
}
