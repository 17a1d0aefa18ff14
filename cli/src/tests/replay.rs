//! Recordings through the command. The recording of docs/examples is of the session in session.ndjson, with one different
//! decision.

use std::{env, fs, time::Duration};

use decree::v1::{self, batch::Action, reconcile_response::Frame};
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};
use server_core::Timestamp;
use server_session::recording::{Call, Encoder, EndReason};
use server_session::{Config, IncomingFrame, Now, Session};
use tempfile::TempDir;

use super::{Ended, check, decree, path};
use crate::Exit;

const EXAMPLE: &str = "docs/examples/session.recording";

/// The time after `tenths` tenths of a second.
fn at(tenths: u32) -> Now {
    let passed = Duration::from_secs(1) / 10 * tenths;
    let nanos = i64::try_from(passed.as_nanos()).expect("it is short");
    Now {
        wall: Timestamp(Timestamp::from_seconds(1_777_636_800).0 + nanos),
        monotonic: passed,
    }
}

fn config() -> Config {
    Config {
        server_version: "0.1.0".into(),
        frame_bytes_max: 4 << 20,
        objects_max: 1_000_000,
        operations_in_flight_max: 10_000,
        bytes_max: usize::MAX,
        backoff_max: Duration::from_secs(30),
        heartbeat_interval: Duration::from_secs(5),
        drain_deadline: Duration::from_secs(20),
        reconnect_after: Duration::from_secs(1),
    }
}

/// The frames of docs/examples/session.ndjson.
fn requests() -> Vec<v1::ReconcileRequest> {
    let pool = DescriptorPool::decode(decree::FILE_DESCRIPTOR_SET).expect("the contract");
    let request = pool.get_message_by_name("decree.v1.ReconcileRequest");
    let request = request.expect("the contract has it");
    let text = fs::read_to_string(path("docs/examples/session.ndjson")).expect("it is there");
    let read = |line: &str| {
        let mut json = serde_json::Deserializer::from_str(line);
        let message = DynamicMessage::deserialize(request.clone(), &mut json).expect("a frame");
        message.transcode_to().expect("the same message")
    };
    text.lines().map(read).collect()
}

/// Records the session as a version would that decides as `change` says.
fn recording(change: impl Fn(&mut v1::Batch)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut requests = requests().into_iter();
    let hello = requests.next().expect("the session begins");
    let mut encoder = Encoder::begin(at(0), &config(), "example", &hello, &mut out);
    let mut session = Session::open(at(0), config(), "example".into(), hello).expect("valid");
    let poll = |session: &mut Session, encoder: &mut Encoder, now, out: &mut Vec<u8>| {
        loop {
            let mut frame = session.poll_frame(now);
            if let Some(Some(Frame::Batches(batches))) = frame.as_mut().map(|it| &mut it.frame) {
                batches.batches.iter_mut().for_each(&change);
            }
            encoder.call(now, Call::Poll(frame.as_ref()), out);
            if frame.is_none() {
                return;
            }
        }
    };
    poll(&mut session, &mut encoder, at(0), &mut out);
    for (tenth, request) in (1..).zip(requests) {
        let frame = IncomingFrame::from(request);
        encoder.call(at(tenth), Call::Frame(&frame), &mut out);
        session.handle_frame(at(tenth), frame);
        poll(&mut session, &mut encoder, at(tenth), &mut out);
    }
    encoder.call(at(10), Call::Closed, &mut out);
    session.handle_closed(at(10));
    poll(&mut session, &mut encoder, at(10), &mut out);
    server_session::recording::end(EndReason::Session, Some(&session), &mut out);
    out
}

/// Replaces the pending victim by the running pod.
fn other_victim(batch: &mut v1::Batch) {
    if let Some(Action::Delete(delete)) = &mut batch.action {
        let victim = delete.victims[0].pod.as_mut().expect("named");
        victim.name = "api-x".to_owned();
        victim.uid = "api-x-1".to_owned();
    }
}

/// Replays these bytes as the file `session.recording`, and returns the output lines without its path.
fn replay(bytes: &[u8], flags: &[&str]) -> (Ended, Vec<Value>) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("session.recording");
    fs::write(&file, bytes).expect("it can be written");
    let file = file.display().to_string();
    let ended = decree(&[&["replay", "-o", "json"], flags, &[file.as_str()]].concat());
    let out = ended.out.replace(&file, "session.recording");
    let lines = out.lines();
    let lines = lines.map(|line| serde_json::from_str(line).expect("each line is JSON"));
    let lines = lines.collect();
    (ended, lines)
}

fn keys(object: &Value) -> Vec<&str> {
    let object = object.as_object().expect("it is an object");
    object.keys().map(String::as_str).collect()
}

#[test]
fn example_is_the_session_that_is_typed_by_hand() {
    let bytes = recording(other_victim);
    if env::var_os("DECREE_KEEP_RECORDINGS").is_some() {
        fs::write(path(EXAMPLE), &bytes).expect("it can be written");
    }
    let there = fs::read(path(EXAMPLE)).expect("it is in the checkout");
    let is_same = there == bytes;
    assert!(is_same, "record {EXAMPLE} anew: DECREE_KEEP_RECORDINGS=1");
}

#[test]
fn recording_that_agrees_is_a_summary_alone() {
    let (ended, lines) = replay(&recording(|_| {}), &[]);
    assert_eq!((ended.exit, ended.err.as_str()), (Exit::Done, ""));
    let summary = json!({"summary": {
        "file": "session.recording", "cluster": "laptop", "session": "example", "serverVersion": "0.1.0",
        "differences": 0,
        "decisions": {
            "batches": 2, "creates": 3, "deletes": 1, "adopts": 0, "releases": 0, "statusWrites": 0,
        },
        "framesIn": 7, "framesOut": 2, "ending": "SESSION", "tornAt": null,
    }});
    assert_eq!(lines, [summary]);
}

#[test]
fn difference_is_an_object_with_both_frames_and_what_came_before() {
    let (ended, lines) = replay(&recording(other_victim), &["--explain"]);
    assert_eq!(ended.exit, Exit::No);
    let [first, last] = &lines[..] else {
        panic!("{lines:#?}")
    };
    assert_eq!(last["summary"]["differences"], 1);
    let difference = &first["difference"];
    assert_eq!(
        keys(difference),
        ["file", "time", "recorded", "decided", "after"]
    );
    assert_eq!(difference["file"], "session.recording");
    assert_eq!(difference["time"], "2026-05-01T12:00:00.600Z");
    for (side, name) in [("recorded", "api-x"), ("decided", "api-y")] {
        let batches = &difference[side]["frame"]["batches"]["batches"];
        let batches = batches.as_array().expect("they are frames of batches");
        let mut deletes = batches.iter().filter_map(|it| it.get("delete"));
        let delete = deletes.next().expect("a pod goes");
        assert_eq!(delete["victims"][0]["pod"]["name"], name);
    }
    let after = difference["after"].as_array().expect("it is a list");
    assert_eq!(after.len(), 6, "all frames since the welcome");
    for input in after {
        assert_eq!(keys(input), ["time", "input", "frame"]);
        assert_eq!(input["input"], "FRAME");
    }
    assert_eq!(after[0]["time"], "2026-05-01T12:00:00.100Z");
    let kind = &after[0]["frame"]["snapshotBegin"]["kind"];
    assert_eq!(*kind, "KIND_REPLICA_SET");
}

#[test]
fn what_is_missing_or_damaged_is_told() {
    let (_, lines) = replay(&recording(other_victim), &[]);
    assert_eq!(lines[0]["difference"]["after"], json!([]));

    let mut otherwise = recording(|_| {});
    let place = otherwise.windows(6).rposition(|it| it == b"CLOSED");
    let place = place.expect("the session was closed");
    otherwise[place..place + 6].copy_from_slice(b"BROKEN");
    let (ended, lines) = replay(&otherwise, &[]);
    assert_eq!(ended.exit, Exit::No);
    let difference = &lines[0]["difference"];
    assert_eq!(difference["recorded"], json!({"end": "BROKEN_BY_AGENT"}));
    assert_eq!(difference["decided"], json!({"end": "CLOSED_BY_AGENT"}));

    let torn = recording(|_| {});
    let (ended, lines) = replay(&torn[..torn.len() - 1], &[]);
    assert_eq!(ended.exit, Exit::Done);
    assert!(ended.err.contains("is torn"), "{}", ended.err);
    let summary = &lines[0]["summary"];
    assert_eq!(summary["ending"], "TORN");
    let at = summary["tornAt"].as_u64().expect("it is a place");
    assert!(at < torn.len() as u64, "{at}");

    let mut damaged = recording(other_victim);
    damaged.push(0);
    let (ended, lines) = replay(&damaged, &[]);
    assert_eq!(ended.exit, Exit::Usage);
    assert!(ended.err.contains("is damaged"), "{}", ended.err);
    assert!(lines.iter().all(|line| line.get("summary").is_none()));
}

#[test]
fn console_shows_one_whole_recording() {
    check(
        "[2] replay --console session.recording other.recording
error: --console shows one recording
hint: name one file
[2] replay --console none.recording
error: none.recording: cannot be read: …
hint: name files that decree-server --record has written
[2] replay --console Cargo.toml
error: Cargo.toml: is not a recording: its first line is not \"decree recording 1\"
hint: name files that decree-server --record has written
[2] replay --console --explain session.recording
[2] replay --console -o json session.recording
[2] replay --no-browser session.recording",
    );
    let packed = fs::read(path("tests/golden/recordings/1-agent-stopped.recording.gz"));
    let packed = packed.expect("it is in the checkout");
    let whole = recording(|_| {});
    for (bytes, cause) in [
        (&packed[..packed.len() / 2], "cannot be read: "),
        (&whole[..20], "ends at byte 20, before its session begins"),
        (&[&whole[..], &[0]].concat()[..], "is damaged: "),
    ] {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("session.recording");
        fs::write(&file, bytes).expect("it can be written");
        let ended = decree(&["replay", "--console", &file.display().to_string()]);
        assert_eq!((ended.exit, ended.out.as_str()), (Exit::Usage, ""));
        assert!(ended.err.contains(cause), "{}", ended.err);
    }
}
