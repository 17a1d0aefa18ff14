//! A hand-made recording of a real session: whole, torn, modified, of another format, and as random bytes.

use std::time::Duration;

use crate::{
    Config, IncomingFrame, Now, Session,
    session::{
        self,
        tests::{begin, end as end_of, hello, request, set},
    },
};
use decree_api::{
    recording::v1::{Closed, Drain, End, Header, Poll, Record, Timeout, record::Step},
    v1::{self, reconcile_request::Frame, reconcile_response::Frame as Answer},
};
use decree_core::{Ledger, Timestamp};
use prost::Message as _;

use super::*;
use crate::recording::{encoder::MAGIC, output::is_same_end};

mod successor;

fn config(frame_bytes_max: usize) -> Config {
    Config {
        frame_bytes_max,
        objects_max: 1_000,
        operations_in_flight_max: 1_000,
        ..session::tests::config()
    }
}

fn at(seconds: u64) -> Now {
    Now {
        wall: Timestamp::from_seconds(1_700_000_000 + i64::try_from(seconds).expect("small")),
        monotonic: Duration::from_secs(seconds),
    }
}

/// The frames of an agent that lists ReplicaSets of three pods, and no pod.
fn requests(names: &[&str]) -> Vec<v1::ReconcileRequest> {
    let objects = v1::SnapshotObjects {
        pods: Vec::new(),
        replica_sets: names.iter().map(|name| set(name, 3, "5")).collect(),
    };
    let count = i64::try_from(names.len()).expect("few");
    vec![
        hello(),
        begin(v1::Kind::ReplicaSet),
        request(Frame::SnapshotObjects(objects)),
        end_of(v1::Kind::ReplicaSet, count, "10"),
        begin(v1::Kind::Pod),
        end_of(v1::Kind::Pod, 0, "10"),
    ]
}

/// Records a session that lists one ReplicaSet of three pods and is then closed.
fn recording() -> Vec<u8> {
    recording_after(&Ledger::default(), &["web"])
}

/// The same, of a session that inherits lost creates.
fn recording_after(left: &Ledger, names: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let numbered = (1_u64..).zip(requests(names));
    let mut requests = numbered.map(|(sequence, request)| v1::ReconcileRequest {
        sequence,
        ..request
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
