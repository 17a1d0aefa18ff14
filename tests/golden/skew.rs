//! Version skew: this server works with each released agent, and this agent with each released server. Both also accept a future version, with
//! unknown fields, and the server also unknown frames.
//!
//! `tests/contract` has recorded sessions for each contract. docs/internals/releasing.md describes how to record them.

use std::{collections::BTreeSet, fs, path::PathBuf};

use agent_core::{
    agent::{Agent, AgentCommand, AgentConfig},
    api::{ApiError, Kind, Object, ReplicaSet},
    link::{Disconnect, frame},
    refusal::Rule,
    report::{Refused, Report},
    watch::{Items, List, Part, WatchCommand, WatchEvent, WatchId},
};
use decree_api::{
    recording::v1::{Record, record::Step},
    v1::{self, event::Event, reconcile_request as request, reconcile_response as response},
};
use decree_core::Timestamp as CoreTimestamp;
use jiff::Timestamp;
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
    wall: CoreTimestamp::from_seconds(1_700_000_000),
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

/// This agent, in the cluster that a recorded agent reported.
struct Told {
    agent: Agent,
    now: Timestamp,
    sequence: u64,
    watching: [Option<WatchId>; 2],
    /// The batches with an outcome.
    taken: BTreeSet<u64>,
    /// The objects of open lists.
    pods: Vec<v1::Pod>,
    replica_sets: Vec<ReplicaSet>,
}

impl Told {
    fn new(hello: &v1::Hello) -> Self {
        let agent = Agent::new(AgentConfig {
            instance: hello.agent_instance.clone(),
            cluster_uid: hello.cluster_uid.clone(),
            epoch: hello.epoch,
            mode: hello.mode(),
            ..AgentConfig::default()
        });
        let mut told = Self {
            agent,
            now: Timestamp::UNIX_EPOCH,
            sequence: 0,
            watching: [None; 2],
            taken: BTreeSet::new(),
            pods: Vec::new(),
            replica_sets: Vec::new(),
        };
        told.perform();
        told.agent.handle_connected(told.now);
        told.perform();
        told
    }

    /// Performs the calls of the agent, in a cluster that finds nothing.
    fn perform(&mut self) {
        while let Some(effect) = self.agent.poll_command(self.now) {
            match effect {
                AgentCommand::Call(call) => {
                    let error = ApiError {
                        code: Some(404),
                        reason: "NotFound".to_owned(),
                        ..ApiError::default()
                    };
                    self.agent.handle_reply(self.now, call.id, Err(error));
                }
                AgentCommand::Watch(
                    kind,
                    WatchCommand::List(id) | WatchCommand::Watch { id, .. },
                ) => {
                    self.watching[kind as usize] = Some(id);
                }
                AgentCommand::Watch(_, WatchCommand::Stop)
                | AgentCommand::AskVersion(..)
                | AgentCommand::WatchNodes
                | AgentCommand::AskCost(_)
                | AgentCommand::Link(_) => {}
            }
        }
        while self.agent.poll_frame(self.now).is_some() {}
        while let Some(report) = self.agent.poll_report() {
            if let Report::Finished { batch_id, .. } = &report {
                self.taken.insert(*batch_id);
            }
            let is_refusal = matches!(
                report,
                Report::Refused(Refused {
                    rule: Rule::Session | Rule::Limit | Rule::Reference | Rule::View,
                    ..
                }) | Report::Disconnected(Disconnect::Refused { .. })
            );
            assert!(!is_refusal, "{report:?}");
        }
    }

    fn hear(&mut self, bytes: Bytes) {
        let mut frame = frame::read(bytes).expect("it is read");
        self.sequence += 1;
        frame.sequence = self.sequence;
        self.agent.handle_frame(self.now, frame);
        self.perform();
    }

    /// Shows the agent the cluster that the recorded agent reported.
    fn see(&mut self, frame: &v1::ReconcileRequest) {
        match &frame.frame {
            Some(request::Frame::SnapshotObjects(objects)) => {
                self.pods.extend(objects.pods.iter().cloned());
                let sets = objects.replica_sets.iter().cloned().map(seen);
                self.replica_sets.extend(sets);
            }
            Some(request::Frame::SnapshotEnd(end)) => {
                let (kind, items) = if end.kind() == v1::Kind::Pod {
                    (Kind::Pod, Items::Pods(self.pods.drain(..).collect()))
                } else {
                    let sets = std::mem::take(&mut self.replica_sets);
                    (Kind::ReplicaSet, Items::ReplicaSets(sets))
                };
                let list = List {
                    part: Part::WHOLE,
                    items,
                    invalid: Vec::new(),
                    resource_version: end.resource_version.clone(),
                };
                let id = self.watching[kind as usize].expect("it lists");
                self.agent.handle_listed(self.now, kind, id, Ok(list));
            }
            Some(request::Frame::Events(events)) => {
                for event in &events.events {
                    self.see_event(event.event.as_ref().expect("it is set"));
                }
            }
            _ => {}
        }
        self.perform();
    }

    fn see_event(&mut self, event: &Event) {
        let (kind, event) = match event {
            Event::PodApplied(pod) => {
                let pod = Object::Pod(Box::new(pod.clone()));
                (Kind::Pod, WatchEvent::Applied(pod))
            }
            Event::ReplicaSetApplied(set) => {
                let set = Object::ReplicaSet(Box::new(seen(set.clone())));
                (Kind::ReplicaSet, WatchEvent::Applied(set))
            }
            Event::Deleted(_) | Event::Bookmark(_) => return,
        };
        let id = self.watching[kind as usize].expect("it watches");
        self.agent.handle_watch_event(self.now, kind, id, event);
    }
}

fn seen(projected: v1::ReplicaSet) -> ReplicaSet {
    ReplicaSet {
        projected,
        ..ReplicaSet::default()
    }
}

#[test]
fn this_agent_takes_the_frames_of_each_released_server_and_of_a_later_one() {
    for_each(|session, contract, other| {
        let hello = session
            .header
            .hello
            .as_ref()
            .and_then(|it| it.frame.as_ref());
        let Some(request::Frame::Hello(hello)) = hello else {
            panic!("it begins with a Hello")
        };
        let mut told = Told::new(hello);
        let mut sent = 0;
        for Record { step, .. } in &session.records {
            match step {
                Some(Step::Frame(frame)) => told.see(frame),
                Some(Step::Poll(poll)) => {
                    let Some(frame) = &poll.frame else { continue };
                    sent += batches_of(frame).map_or(0, Vec::len);
                    told.hear(written(frame, contract, RESPONSE, other));
                    if other == Other::Future {
                        // A frame of an unknown kind.
                        let unknown = v1::ReconcileResponse::default();
                        told.hear(written(&unknown, contract, RESPONSE, other));
                    }
                }
                _ => {}
            }
        }
        assert!(sent > 3, "there is something to take");
        assert_eq!(told.taken.len(), sent);
    });
}
