//! Recordings through the command. The recording of docs/examples is of the session in session.ndjson, with one different
//! decision.

use std::{env, fs, time::Duration};

use decree_api::v1::{self, batch::Action, reconcile_response::Frame};
use decree_core::Timestamp;
use prost_reflect::{DescriptorPool, DynamicMessage};
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
    let pool = DescriptorPool::decode(decree_api::FILE_DESCRIPTOR_SET).expect("the contract");
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

/// Replays these bytes as the file `session.recording`; the output is without its path.
fn replay(bytes: &[u8]) -> Ended {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("session.recording");
    fs::write(&file, bytes).expect("it can be written");
    let file = file.display().to_string();
    let mut ended = decree(&["replay", &file]);
    ended.out = ended.out.replace(&file, "session.recording");
    ended
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
    let ended = replay(&recording(|_| {}));
    assert_eq!((ended.exit, ended.err.as_str()), (Exit::Done, ""));
    let summary = "session.recording: all agree (2 decisions: create 3, delete 1, adopt 0, release 0, status 0; 7 frames in, 2 out)\n  \
         cluster laptop, session example, server 0.1.0\n";
    assert_eq!(ended.out, summary);
}

#[test]
fn what_differs_or_is_damaged_is_told() {
    let ended = replay(&recording(other_victim));
    assert_eq!(ended.exit, Exit::No);
    let difference = "2026-05-01T12:00:00.600Z  default/api\n  recorded  delete 1: api-x\n  decided   delete 1: api-y\n\
         session.recording: 1 difference (";
    assert!(ended.out.starts_with(difference), "{}", ended.out);

    let mut otherwise = recording(|_| {});
    let place = otherwise.windows(6).rposition(|it| it == b"CLOSED");
    let place = place.expect("the session was closed");
    otherwise[place..place + 6].copy_from_slice(b"BROKEN");
    let ended = replay(&otherwise);
    assert_eq!(ended.exit, Exit::No);
    let ends = "  recorded  the session ends: BROKEN_BY_AGENT\n  decided   the session ends: CLOSED_BY_AGENT\n";
    assert!(ended.out.contains(ends), "{}", ended.out);

    let torn = recording(|_| {});
    let ended = replay(&torn[..torn.len() - 1]);
    assert_eq!(ended.exit, Exit::Done);
    let said = "is torn in the record at byte ";
    assert!(ended.err.contains(said), "{}", ended.err);

    let mut damaged = recording(other_victim);
    damaged.push(0);
    let ended = replay(&damaged);
    assert_eq!(ended.exit, Exit::Usage);
    assert!(ended.err.contains("is damaged"), "{}", ended.err);
    assert!(!ended.out.contains("cluster laptop"), "{}", ended.out);
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
