//! Version skew: this server works with each released agent, and this agent reads each released server. Both also accept a future version,
//! with unknown fields.
//!
//! `tests/contract` has recorded sessions for each contract. docs/internals/releasing.md describes how to record them.

use std::{fs, path::PathBuf};

use agent_core::link::frame;
use decree_api::{
    recording::v1::record::Step,
    v1::{self, reconcile_response as response},
};
use decree_core::Timestamp;
use prost::{
    Message,
    bytes::{Buf, Bytes},
    encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field},
};
use prost_reflect::{DescriptorPool, MessageDescriptor};
use server_session::{Config, End, IncomingFrame, Now, Refusal, Session};
use std::time::Duration;
use tests::{
    binaries,
    objects::session_config,
    recordings::{self, Recording},
};

const NOW: Now = Now {
    wall: Timestamp::from_seconds(1_700_000_000),
    monotonic: Duration::from_secs(1),
};
/// Field numbers that no version uses.
const FUTURE: [u32; 3] = [1_000, 1_001, 1_002];

/// The version of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    /// The version of the recording.
    Released,
    /// A version with more fields in every message.
    Future,
}

struct Release {
    version: String,
    contract: DescriptorPool,
    sessions: Vec<(String, Recording)>,
}

fn releases() -> Vec<Release> {
    let folder = binaries::checkout().join("tests/contract");
    let entries = fs::read_dir(&folder).expect("it is in the checkout");
    let mut contracts: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "binpb"))
        .collect();
    contracts.sort();
    let read = |path: &PathBuf| {
        let version = path.file_stem().expect("it has a name");
        let version = version.to_str().expect("it is ASCII").to_owned();
        let contract = fs::read(path).expect("it can be read");
        let sessions = recordings::kept_in(&path.with_extension(""));
        let sessions = sessions.into_iter();
        Release {
            version,
            contract: DescriptorPool::decode(&*contract).expect("it is a contract"),
            sessions: sessions
                .map(|(name, bytes)| (name, Recording::decode(&bytes)))
                .collect(),
        }
    };
    contracts.iter().map(read).collect()
}

/// Runs a check for each session of each release, with both versions of the other side.
fn for_each(check: impl Fn(&Recording, &DescriptorPool, Other)) {
    let releases = releases();
    assert!(!releases.is_empty());
    for Release {
        version,
        contract,
        sessions,
    } in releases
    {
        for (name, session) in sessions {
            for other in [Other::Released, Other::Future] {
                eprintln!("{version}: {name}, {other:?}");
                check(&session, &contract, other);
            }
        }
    }
}

fn answers(session: &Recording) -> impl Iterator<Item = &v1::ReconcileResponse> {
    session
        .records
        .iter()
        .filter_map(|record| match &record.step {
            Some(Step::Poll(poll)) => poll.frame.as_ref(),
            _ => None,
        })
}

/// Encodes a message like the other version.
fn written(message: &impl Message, contract: &DescriptorPool, name: &str, other: Other) -> Bytes {
    let bytes = Bytes::from(message.encode_to_vec());
    let descriptor = contract.get_message_by_name(name);
    let descriptor = descriptor.expect("it has frames");
    match other {
        Other::Released => bytes,
        Other::Future => Bytes::from(with_future(bytes, &descriptor)),
    }
}

/// Adds unknown fields to a message and to all messages in it.
fn with_future(mut bytes: Bytes, descriptor: &MessageDescriptor) -> Vec<u8> {
    let mut written = Vec::new();
    while bytes.has_remaining() {
        let before = bytes.clone();
        let (number, wire) = decode_key(&mut bytes).expect("it is a field");
        let field = descriptor.get_field(number);
        let below = field.and_then(|field| field.kind().as_message().cloned());
        if let (Some(below), WireType::LengthDelimited) = (below, wire) {
            let length = decode_varint(&mut bytes).expect("it has a length");
            let length = usize::try_from(length).expect("it is short");
            let inner = with_future(bytes.split_to(length), &below);
            encode_key(number, wire, &mut written);
            encode_varint(inner.len() as u64, &mut written);
            written.extend(inner);
        } else {
            skip_field(wire, number, &mut bytes, Default::default()).expect("it is whole");
            written.extend(&before[..before.len() - bytes.len()]);
        }
    }
    let [number, text, fixed] = FUTURE;
    encode_key(number, WireType::Varint, &mut written);
    encode_varint(7, &mut written);
    encode_key(text, WireType::LengthDelimited, &mut written);
    encode_varint(5, &mut written);
    written.extend(b"later");
    encode_key(fixed, WireType::SixtyFourBit, &mut written);
    written.extend([7; 8]);
    written
}

fn open(hello: &v1::ReconcileRequest, session_id: &str) -> Result<Session, Refusal> {
    let config = Config {
        bytes_max: 64 << 20,
        ..session_config()
    };
    Session::open(NOW, config, session_id.to_owned(), hello.clone())
}

/// Decodes the frame that opens a session of this server.
fn read(bytes: Bytes) -> v1::ReconcileRequest {
    let first = IncomingFrame::from(bytes).to_message();
    first.expect("it is read")
}

const REQUEST: &str = "decree.v1.ReconcileRequest";
const RESPONSE: &str = "decree.v1.ReconcileResponse";

#[test]
fn each_released_contract_has_its_frames() {
    for Release {
        version, sessions, ..
    } in releases()
    {
        let folder = format!("tests/contract/{version}");
        assert!(
            !sessions.is_empty(),
            "{folder}: see docs/internals/releasing.md"
        );
        let batches = sessions.iter().flat_map(|(_, session)| answers(session));
        let batches = batches.filter(|frame| batches_of(frame).is_some());
        assert!(batches.count() > 20, "{folder} has too little to say");
    }
}

#[test]
fn this_server_takes_the_frames_of_each_released_agent_and_of_a_later_one() {
    for_each(|session, contract, other| {
        let hello = session.header.hello.as_ref().expect("it begins with one");
        let hello = read(written(hello, contract, REQUEST, other));
        let mut live = open(&hello, &session.header.session_id).expect("it is accepted");
        let mut said = Vec::new();
        for record in &session.records {
            let Some(Step::Frame(frame)) = &record.step else {
                continue;
            };
            let bytes = written(frame, contract, REQUEST, other);
            live.handle_frame(NOW, bytes);
            said.extend(std::iter::from_fn(|| live.poll_frame(NOW)));
            assert_eq!(live.poll_end(), None);
        }
        live.handle_closed(NOW);
        assert_eq!(live.poll_end(), Some(End::Closed));
        let rejected = |frame: &&v1::ReconcileResponse| {
            matches!(frame.frame, Some(response::Frame::Rejection(_)))
        };
        assert_eq!(said.iter().find(rejected), None);
        let decided = said.iter().filter_map(batches_of).flatten();
        assert!(decided.count() > 3, "it decides on what it is told");
    });
}

fn batches_of(frame: &v1::ReconcileResponse) -> Option<&Vec<v1::Batch>> {
    match &frame.frame {
        Some(response::Frame::Batches(batches)) => Some(&batches.batches),
        _ => None,
    }
}

/// What an agent does with a frame of an unknown kind is told in its stories, and `tests/process/skew.rs` runs it beside the last release.
#[test]
fn this_agent_reads_the_frames_of_each_released_server_and_of_a_later_one() {
    for_each(|session, contract, other| {
        let mut batches = 0;
        for sent in answers(session) {
            let read = frame::read(written(sent, contract, RESPONSE, other));
            assert_eq!(read.as_ref().ok(), Some(sent));
            batches += batches_of(sent).map_or(0, Vec::len);
        }
        assert!(batches > 3, "there is something to read");
    });
}
