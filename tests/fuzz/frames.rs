//! Frames of a session, from bytes through the contract to the state machine.
//!
//! An input is a sequence of `Record`s, each after its length, as in a recording without a header: frames of the agent, and times.
//! The first frame opens the session.

use std::collections::{BTreeMap, BTreeSet};

use decree_api::{
    recording::v1::{Record, record::Step},
    v1::{self, reconcile_request::Frame, reconcile_response::Frame as Answer},
};
use prost::Message;
use server_session::{End, Now, Session};
use tests::{oracle::operations, rng::Rng};

use crate::author::{
    self, FRAME_BYTES_MAX, OBJECTS_MAX, OPERATIONS_MAX, SESSION, START, config, later,
};

/// The maximum number of polls for one input: the batches of all ReplicaSets, with many pauses.
const ANSWERS_MAX: usize = 20_000;
/// The maximum size of the text of a refusal, which must fit into headers.
const REFUSAL_BYTES_MAX: usize = 4 << 10;

/// A separate account of the sent and received frames.
#[derive(Default)]
struct Account {
    answers: Vec<u8>,
    sequence: u64,
    batch: u64,
    epoch: i64,
    /// Operations without an outcome, by batch. The ReplicaSet is absent if it may have been deleted: a new one with the same name is a different object.
    in_flight: BTreeMap<u64, (Option<v1::ObjectRef>, BTreeSet<u32>)>,
    open: BTreeSet<i32>,
    listed: BTreeSet<i32>,
    drained: bool,
}

pub(crate) fn generate(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in author::session(rng).0 {
        record
            .encode_length_delimited(&mut bytes)
            .expect("a vector takes all");
    }
    bytes
}

/// Checks the properties of all sessions.
pub(crate) fn check(bytes: &[u8]) {
    let records = read(bytes);
    let first = run(&records);
    assert!(first == run(&records), "the same frames, other answers");
}

fn read(mut bytes: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while !bytes.is_empty()
        && let Ok(record) = Record::decode_length_delimited(&mut bytes)
    {
        records.push(record);
    }
    records
}

/// Returns the whole output of the session.
fn run(records: &[Record]) -> Vec<u8> {
    let Some((hello, rest)) = records.split_first() else {
        return Vec::new();
    };
    let Some(Step::Frame(first)) = &hello.step else {
        return Vec::new();
    };
    let mut account = Account::default();
    let opened = Session::open(START, config(), SESSION.to_owned(), first.clone());
    let mut session = match opened {
        Ok(session) => session,
        Err(refusal) => {
            let text = refusal.to_string();
            assert!(text.len() <= REFUSAL_BYTES_MAX, "{} bytes", text.len());
            return text.into_bytes();
        }
    };
    if let Some(Frame::Hello(hello)) = &first.frame {
        account.epoch = hello.epoch;
    }
    let mut now = START;
    account.drain(&mut session, now);
    for record in rest {
        now = later(now, record);
        account.give(&mut session, now, record);
        account.drain(&mut session, now);
        if session.poll_end().is_some() {
            break;
        }
    }
    account.end(&session)
}

impl Account {
    fn give(&mut self, session: &mut Session, now: Now, record: &Record) {
        match &record.step {
            Some(Step::Frame(frame)) => {
                session.handle_frame(now, frame.clone());
                let went_on = !matches!(session.poll_end(), Some(End::Refused(_)));
                if went_on && let Some(frame) = &frame.frame {
                    self.read(frame);
                }
            }
            Some(Step::Drain(_)) => session.handle_drain(now),
            Some(Step::Closed(_)) => session.handle_closed(now),
            Some(Step::Timeout(_) | Step::Poll(_) | Step::End(_) | Step::Inherited(_)) | None => {
                session.handle_timeout(now);
            }
        }
        let stats = session.stats();
        let held = stats.sizes.pods + stats.sizes.replica_sets;
        let over = held > OBJECTS_MAX;
        let ended = session.poll_end().is_some();
        assert!(!over || ended, "{held} objects are held");
    }

    /// Records a frame that the session accepted.
    fn read(&mut self, frame: &Frame) {
        match frame {
            Frame::SnapshotBegin(begin) => {
                self.open.insert(begin.kind);
            }
            Frame::SnapshotEnd(end) => {
                self.open.remove(&end.kind);
                self.listed.insert(end.kind);
                if end.kind() == v1::Kind::ReplicaSet {
                    self.forget(|_| true);
                }
            }
            Frame::Events(events) => {
                let gone = events.events.iter().filter_map(|event| match &event.event {
                    Some(v1::event::Event::Deleted(deleted)) => deleted.object.as_ref(),
                    _ => None,
                });
                gone.for_each(|gone| self.forget(|set| set == gone));
            }
            Frame::Outcomes(outcomes) => {
                for outcome in &outcomes.outcomes {
                    if let Some((_, operations)) = self.in_flight.get_mut(&outcome.batch_id) {
                        operations.remove(&outcome.operation);
                    }
                }
                self.in_flight.retain(|_, (_, left)| !left.is_empty());
            }
            Frame::Hello(_)
            | Frame::SnapshotObjects(_)
            | Frame::Nodes(_)
            | Frame::Costs(_)
            | Frame::Heartbeat(_) => {}
        }
    }

    /// Notes that ReplicaSets may have been deleted.
    fn forget(&mut self, is_gone: impl Fn(&v1::ObjectRef) -> bool) {
        for (set, _) in self.in_flight.values_mut() {
            *set = set.take().filter(|set| !is_gone(set));
        }
    }

    /// Polls the session until it has no more output.
    fn drain(&mut self, session: &mut Session, now: Now) {
        for _ in 0..ANSWERS_MAX {
            match session.poll_frame(now) {
                Some(answer) => self.take(&answer),
                None => return,
            }
            while session.poll_report().is_some() {}
        }
        panic!("more than {ANSWERS_MAX} polls for one input");
    }

    fn take(&mut self, answer: &v1::ReconcileResponse) {
        self.sequence += 1;
        assert_eq!(answer.sequence, self.sequence, "frames are numbered");
        assert!(answer.encoded_len() <= FRAME_BYTES_MAX, "a frame fits");
        answer
            .encode_length_delimited(&mut self.answers)
            .expect("a vector takes all");
        match answer.frame.as_ref().expect("a frame has content") {
            Answer::Batches(batches) => {
                assert!(!batches.batches.is_empty(), "batches are not empty");
                batches.batches.iter().for_each(|batch| self.decide(batch));
            }
            Answer::Drain(_) => self.drained = true,
            Answer::Welcome(_) => assert_eq!(self.sequence, 1, "a welcome comes first"),
            Answer::Resync(_)
            | Answer::Heartbeat(_)
            | Answer::Rejection(_)
            | Answer::CostsWanted(_) => {}
        }
    }

    fn decide(&mut self, batch: &v1::Batch) {
        assert!(!self.drained, "no batch follows a drain");
        assert!(self.open.is_empty(), "nothing is decided amid a list");
        assert_eq!(self.listed.len(), 2, "both kinds are listed");
        let guard = batch.guard.as_ref().expect("a batch has a guard");
        assert_eq!(
            (guard.session_id.as_str(), guard.epoch),
            (SESSION, self.epoch)
        );
        assert!(batch.id > self.batch, "numbers of batches grow");
        self.batch = batch.id;
        let set = batch.replica_set.clone().expect("a batch names its own");
        let other = self
            .in_flight
            .values()
            .find(|(of, _)| of.as_ref() == Some(&set));
        assert!(other.is_none(), "two batches of {set:?} are in flight");
        let before = self.operations();
        let operations = u32::try_from(operations(batch)).expect("bursts are small");
        assert!(operations > 0, "a batch has an operation");
        self.in_flight
            .insert(batch.id, (Some(set), (0..operations).collect()));
        let fits = self.operations() <= OPERATIONS_MAX || before == 0;
        assert!(fits, "{} operations are in flight", self.operations());
    }

    fn operations(&self) -> usize {
        self.in_flight.values().map(|(_, left)| left.len()).sum()
    }

    fn end(mut self, session: &Session) -> Vec<u8> {
        if let Some(End::Refused(refusal)) = session.poll_end() {
            let text = refusal.to_string();
            assert!(text.len() <= REFUSAL_BYTES_MAX, "{} bytes", text.len());
            self.answers.extend_from_slice(text.as_bytes());
        }
        self.answers
    }
}
