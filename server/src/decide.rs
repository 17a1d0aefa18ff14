//! `Decide`: the message is read one object at a time, so that what it holds takes memory only if it is valid, and all of it happens
//! beside the threads that serve sessions, for as long as somebody waits for the answer.

use decree::v1;
use prost::{
    DecodeError, Message,
    bytes::Buf,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};
use server_core::{Config, Decision, Interrupted, Pod, ReplicaSet, decide_while};
use server_session::{
    VIOLATIONS_MAX,
    wire::{Fault, Violation, decode},
};
use tonic::codegen::Bytes;

use crate::{
    args::Limits,
    clock,
    error::{Limit, Refusal},
};

/// The most bytes of an object: more than Kubernetes keeps of what an object here holds.
const OBJECT_BYTES_MAX: usize = 256 << 10;

/// The message of a `Decide` as it came; among the extensions of its request.
#[derive(Clone, Debug)]
pub(crate) struct Asked(pub(crate) Bytes);

/// What a `Decide` is about, as far as it has been read.
struct Question {
    objects_max: usize,
    subject: Option<v1::ReplicaSet>,
    replica_sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    now: Option<prost_types::Timestamp>,
    options: Option<v1::Options>,
    /// How many of each repeated field there have been.
    places: [usize; 2],
    violations: Violations,
}

/// The first violations, and how many there are beside them.
#[derive(Debug, Default)]
struct Violations {
    first: Vec<Violation>,
    more: usize,
}

/// Reads what is asked and decides; what is wrong with any object is wrong with the request.
pub(crate) fn decide(
    Asked(mut message): Asked,
    limits: &Limits,
    go_on: &dyn Fn() -> bool,
) -> Result<Decision, Refusal> {
    let mut question = Question::new(limits.decide_objects_max);
    while let Some((number, field)) = next_field(&mut message)? {
        if !go_on() {
            return Err(Refusal::DeadlineExceeded);
        }
        question.take(number, &field)?;
    }
    let base = Config {
        operations_in_flight_max: limits.operations_in_flight_max,
        ..Config::default()
    };
    question.answer(base, go_on)
}

/// Returns the next field that is a message, with its number; other fields are skipped.
fn next_field(message: &mut Bytes) -> Result<Option<(u32, Bytes)>, Refusal> {
    while message.has_remaining() {
        let (number, kind) = decode_key(message)?;
        if kind != WireType::LengthDelimited {
            if (1..=5).contains(&number) {
                let detail = format!("field {number} of DecideRequest is no message");
                return Err(Refusal::Malformed { detail });
            }
            skip_field(kind, number, message, DecodeContext::default())?;
            continue;
        }
        let length = usize::try_from(decode_varint(message)?).ok();
        let Some(length) = length.filter(|length| *length <= message.remaining()) else {
            let detail = "buffer underflow".to_owned();
            return Err(Refusal::Malformed { detail });
        };
        return Ok(Some((number, message.split_to(length))));
    }
    Ok(None)
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        Self::Malformed {
            detail: error.to_string(),
        }
    }
}

// === impl Question ===

impl Question {
    fn new(objects_max: usize) -> Self {
        Self {
            objects_max,
            subject: None,
            replica_sets: Vec::new(),
            pods: Vec::new(),
            now: None,
            options: None,
            places: [0; 2],
            violations: Violations::default(),
        }
    }

    /// Takes a field by its number in `DecideRequest`. A message that comes in parts is one message, as in any protobuf.
    fn take(&mut self, number: u32, field: &Bytes) -> Result<(), Refusal> {
        match number {
            1 => {
                if fits(field) {
                    self.subject.get_or_insert_default().merge(field.as_ref())?;
                } else {
                    self.violations.add_too_large("replica_set", field);
                }
            }
            2 => self.take_replica_set(field)?,
            3 => self.take_pod(field)?,
            4 => self.now.get_or_insert_default().merge(field.as_ref())?,
            5 => self.options.get_or_insert_default().merge(field.as_ref())?,
            _ => {}
        }
        Ok(())
    }

    fn take_replica_set(&mut self, field: &Bytes) -> Result<(), Refusal> {
        let place = self.places[0];
        self.places[0] += 1;
        let path = || format!("other_replica_sets[{place}]");
        if !fits(field) {
            self.violations.add_too_large(&path(), field);
            return Ok(());
        }
        match decode::replica_set(&v1::ReplicaSet::decode(field.as_ref())?) {
            Ok(set) => self.replica_sets.push(set),
            Err(found) => self.violations.add(path, found),
        }
        self.check_objects()
    }

    fn take_pod(&mut self, field: &Bytes) -> Result<(), Refusal> {
        let place = self.places[1];
        self.places[1] += 1;
        let path = || format!("pods[{place}]");
        if !fits(field) {
            self.violations.add_too_large(&path(), field);
            return Ok(());
        }
        match decode::pod(&v1::Pod::decode(field.as_ref())?) {
            Ok(pod) => self.pods.push(pod),
            Err(found) => self.violations.add(path, found),
        }
        self.check_objects()
    }

    fn check_objects(&self) -> Result<(), Refusal> {
        if self.replica_sets.len() + self.pods.len() <= self.objects_max {
            return Ok(());
        }
        Err(Refusal::Exhausted {
            what: Limit::DecideObjects,
            max: self.objects_max,
        })
    }

    fn answer(self, base: Config, go_on: &dyn Fn() -> bool) -> Result<Decision, Refusal> {
        let Self {
            subject,
            mut replica_sets,
            pods,
            now,
            options,
            mut violations,
            ..
        } = self;
        let subject = subject
            .ok_or_else(|| vec![Violation::new("", Fault::Required, "is absent")])
            .and_then(|set| decode::replica_set(&set));
        let subject = subject.map_err(|found| violations.add(|| "replica_set".to_owned(), found));
        let now = decode::timestamp("now", now.as_ref())
            .map(|now| now.unwrap_or_else(clock::now))
            .map_err(|violation| violations.extend(vec![violation]));
        let config =
            decode::options(options.as_ref(), base).map_err(|found| violations.extend(found));
        let (Ok(subject), Ok(now), Ok(config), true) =
            (subject, now, config, violations.is_empty())
        else {
            return Err(violations.into());
        };
        let key = subject.key.clone();
        replica_sets.push(subject);
        let key = (&*key.namespace, &*key.name);
        match decide_while(now, config, key, replica_sets, pods, go_on) {
            Err(Interrupted) => Err(Refusal::DeadlineExceeded),
            Ok(decision) => decision.ok_or_else(|| Refusal::ReplicaSetUnknown {
                namespace: key.0.to_owned(),
                name: key.1.to_owned(),
            }),
        }
    }
}

const fn fits(field: &Bytes) -> bool {
    field.len() <= OBJECT_BYTES_MAX
}

// === impl Violations ===

impl Violations {
    fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Adds what is wrong with the object at a path, which is not written where nobody will read it.
    fn add(&mut self, path: impl FnOnce() -> String, mut found: Vec<Violation>) {
        let room = VIOLATIONS_MAX - self.first.len();
        self.more += found.len().saturating_sub(room);
        found.truncate(room);
        if !found.is_empty() {
            let path = path();
            let found = found.into_iter().map(|violation| violation.within(&path));
            self.first.extend(found);
        }
    }

    fn extend(&mut self, found: Vec<Violation>) {
        let room = VIOLATIONS_MAX - self.first.len();
        self.more += found.len().saturating_sub(room);
        self.first.extend(found.into_iter().take(room));
    }

    fn add_too_large(&mut self, path: &str, object: &Bytes) {
        let length = object.len();
        let description = format!("{length} bytes, must be {OBJECT_BYTES_MAX} or fewer");
        self.extend(vec![Violation::new(path, Fault::Text, description)]);
    }
}

impl From<Violations> for Refusal {
    fn from(Violations { first, more }: Violations) -> Self {
        Self::InvalidFields { first, more }
    }
}
