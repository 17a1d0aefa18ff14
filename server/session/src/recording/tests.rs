//! A hand-made recording of a real session: whole, torn, modified, of another format, and as random bytes.

use std::time::Duration;

use crate::{Config, IncomingFrame, Now, Session};
use decree_api::{
    recording::v1::{Closed, Drain, End, Header, Poll, Record, Timeout, record::Step},
    v1::{self, reconcile_request::Frame, reconcile_response::Frame as Answer},
};
use decree_core::{Ledger, Timestamp};
use prost::Message as _;

use super::*;
use crate::recording::{encoder::MAGIC, output::is_same_end};

mod successor;

fn config(burst_bytes: usize) -> Config {
    Config {
        server_version: "0".into(),
        frame_bytes_max: burst_bytes,
        objects_max: 1_000,
        operations_in_flight_max: 1_000,
        bytes_max: usize::MAX,
        backoff_max: Duration::from_secs(30),
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

fn frames(names: &[&str]) -> Vec<Frame> {
    let labels = || [("app".to_owned(), "web".to_owned())].into();
    let set = |name: &&str| v1::ReplicaSet {
        namespace: "default".into(),
        name: (*name).into(),
        uid: format!("uid-of-{name}"),
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
        replica_sets: names.iter().map(set).collect(),
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
        end(
            v1::Kind::ReplicaSet,
            i64::try_from(names.len()).expect("few"),
        ),
        begin(v1::Kind::Pod),
        end(v1::Kind::Pod, 0),
    ]
}

/// Records a session that lists one ReplicaSet of three pods and is then closed.
fn recording() -> Vec<u8> {
    recording_after(&Ledger::default(), &["web"])
}

/// The same, of a session that inherits lost creates.
fn recording_after(left: &Ledger, names: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut requests = (1_u64..).zip(frames(names)).map(|(sequence, frame)| {
        let frame = Some(frame);
        v1::ReconcileRequest { sequence, frame }
    });
    let hello = requests.next().expect("it is the first");
    let config = config(4 << 20);
    let mut encoder = Encoder::begin(at(0), &config, "session-0", &hello, &mut out);
    let mut session = Session::open(at(0), config, "session-0".into(), hello).expect("valid");
    if !left.is_empty() {
        let ago = Duration::from_secs(1);
        encoder.call(at(0), Call::Inherit(left, ago), &mut out);
        session.inherit(at(0), left.clone(), ago);
    }
    let mut decided = 0;
    for (second, request) in (1..).zip(requests) {
        let frame = IncomingFrame::from(request);
        encoder.call(at(second), Call::Frame(&frame), &mut out);
        session.handle_frame(at(second), frame);
        decided += poll(&mut session, &mut encoder, at(second), &mut out);
    }
    assert!(decided > 1, "more than a welcome was sent");
    encoder.call(at(10), Call::Timeout, &mut out);
    session.handle_timeout(at(10));
    poll(&mut session, &mut encoder, at(10), &mut out);
    encoder.call(at(10), Call::Drain, &mut out);
    session.handle_drain(at(10));
    poll(&mut session, &mut encoder, at(10), &mut out);
    encoder.call(at(11), Call::Closed, &mut out);
    session.handle_closed(at(11));
    poll(&mut session, &mut encoder, at(11), &mut out);
    end(EndReason::Session, Some(&session), &mut out);
    out
}

fn poll(session: &mut Session, encoder: &mut Encoder, now: Now, out: &mut Vec<u8>) -> usize {
    let mut frames = 0;
    loop {
        let frame = session.poll_frame(now);
        encoder.call(now, Call::Poll(frame.as_ref()), out);
        if frame.is_none() {
            return frames;
        }
        frames += 1;
    }
}

/// Replays to the end, and returns the differences and the summary.
fn replay(bytes: &[u8]) -> Result<(Vec<Difference>, Summary), ReadError> {
    let mut replay = Replay::open(bytes)?;
    let mut differences = Vec::new();
    while let Some(difference) = replay.next_difference()? {
        differences.push(difference);
    }
    Ok((differences, replay.summary()))
}

/// Replaces a text by another of the same length, everywhere.
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
fn records_have_the_bytes_of_the_contract() {
    let request = v1::ReconcileRequest {
        sequence: 7,
        frame: Some(Frame::Heartbeat(v1::Heartbeat::default())),
    };
    let response = v1::ReconcileResponse {
        sequence: 8,
        frame: None,
    };
    let mut out = Vec::new();
    let mut encoder = Encoder::begin(at(0), &config(1), "session-0", &request, &mut out);
    let set_back = Now {
        monotonic: Duration::from_secs(3),
        ..at(1)
    };
    let frame = IncomingFrame::from(request.clone());
    encoder.call(set_back, Call::Frame(&frame), &mut out);
    encoder.call(set_back, Call::Timeout, &mut out);
    encoder.call(set_back, Call::Drain, &mut out);
    encoder.call(set_back, Call::Closed, &mut out);
    encoder.call(set_back, Call::Poll(Some(&response)), &mut out);
    encoder.call(set_back, Call::Poll(None), &mut out);
    end(EndReason::Session, None, &mut out);
    let mut rest = &out[MAGIC.len()..];
    Header::decode_length_delimited(&mut rest).expect("a header");
    let mut records = Vec::new();
    while !rest.is_empty() {
        records.push(Record::decode_length_delimited(&mut rest).expect("a record"));
    }
    let times = (records[0].elapsed_nanos, records[0].drift_nanos);
    assert_eq!(times, (3_000_000_000, -2_000_000_000));
    let steps: Vec<_> = records.into_iter().filter_map(|it| it.step).collect();
    let ended = End {
        reason: EndReason::Session.into(),
        session_end: String::new(),
    };
    let polled = Poll {
        frame: Some(response),
    };
    let expected = [
        Step::Frame(request),
        Step::Timeout(Timeout {}),
        Step::Drain(Drain {}),
        Step::Closed(Closed {}),
        Step::Poll(polled),
        Step::Poll(Poll { frame: None }),
        Step::End(ended),
    ];
    assert_eq!(steps, expected);
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
fn tampered_frame_is_found() {
    // With another UID, the pods get other names.
    let bytes = tampered(&recording(), "uid-of-web", "uid-of-wet");
    let (differences, _) = replay(&bytes).expect("it can be read");
    let [
        Difference::Frame {
            recorded: Some(_),
            decided: Some(_),
            ..
        },
        ..,
    ] = &differences[..]
    else {
        panic!("{differences:?}")
    };
}

#[test]
fn recording_with_other_words_has_the_same_decisions() {
    let whole = recording();
    let (other_words, other_rule) = ("0 active pods, 3 desired", v1::Rule::TooManyReplicas);
    let words = tampered(&whole, other_words, "only 0 of 3 pods existed");
    let (differences, summary) = replay(&words).expect("it can be read");
    assert_eq!(differences, []);
    assert_eq!(summary.decisions.creates, 3);
    let rule = changed(&whole, |reason| reason.rule = other_rule.into());
    let (differences, _) = replay(&rule).expect("it can be read");
    assert!(!differences.is_empty(), "another rule decided");
}

#[test]
fn ends_of_sessions_are_compared_by_their_reasons() {
    let ended = "SEQUENCE_GAP: expected 4, got 6";
    assert!(is_same_end(ended, "SEQUENCE_GAP: frame 6 instead of 4"));
    assert!(!is_same_end(ended, "SUPERSEDED: expected 4, got 6"));
    assert!(!is_same_end(ended, "") && is_same_end("", ""));
}

fn changed(bytes: &[u8], change: impl Fn(&mut v1::Reason)) -> Vec<u8> {
    let mut rest = &bytes[MAGIC.len()..];
    let header = Header::decode_length_delimited(&mut rest).expect("a header");
    let mut out = MAGIC.to_vec();
    header.encode_length_delimited(&mut out).expect("a vector");
    while !rest.is_empty() {
        let mut record = Record::decode_length_delimited(&mut rest).expect("a record");
        if let Some(Step::Poll(Poll { frame: Some(frame) })) = &mut record.step
            && let Some(Answer::Batches(v1::Batches { batches })) = &mut frame.frame
        {
            let reasons = batches.iter_mut().flat_map(|batch| &mut batch.reasons);
            reasons.for_each(&change);
        }
        record.encode_length_delimited(&mut out).expect("a vector");
    }
    out
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
    let damaged = |bytes: &[u8]| match replay(bytes) {
        Err(ReadError::Damaged(at, why)) => (at, why),
        other => panic!("{other:?}"),
    };
    let (at, why) = damaged(&lies);
    assert!(at == 19 && why.contains("1099511627776 bytes"), "{why}");
    lies.truncate(19);
    lies.extend([0xff; 11]);
    assert_eq!(damaged(&lies), (19, "no record begins".to_owned()));
    let mut more = recording();
    more.push(0);
    assert_eq!(damaged(&more).1, "something follows the end");
}
