//! `Decide`: the message is read one object at a time, so that only valid objects take memory. All of the work runs outside the threads
//! that serve sessions, and stops when the caller does not wait for the answer any more.

use std::{collections::HashSet, iter};

use decree_api::v1;
use decree_core::{
    Config, Costs, Decision, Objects, OwnerReference, Pod, ReplicaSet, decide_while,
};
use prost::{DecodeError, Message};
use server_session::{
    MalformedFrame, Refusal as SessionRefusal, VIOLATIONS_MAX,
    wire::{Fault, Fields, OBJECT_BYTES_MAX, Value, Violation, decode},
};

use crate::{args::Limits, clock, error::Refusal};

/// The input of a `Decide`, as far as it has been read.
#[derive(Default)]
struct DecideInput {
    objects_max: usize,
    subject: Option<v1::ReplicaSet>,
    /// The bytes of the subject so far.
    subject_bytes: usize,
    objects: Objects,
    costs: Costs,
    now: Option<prost_types::Timestamp>,
    options: Option<v1::Options>,
    /// The number of entries of each repeated field so far.
    places: [usize; 3],
    violations: Violations,
}

/// An entry of `costs`.
#[derive(Message)]
struct CostEntry {
    #[prost(string, tag = "1")]
    pod: String,
    #[prost(int32, tag = "2")]
    cost: i32,
}

/// Reads the costs in a field of a request. They take many times their bytes.
pub(crate) fn costs(message: &[u8], number: u32, max: usize) -> Result<Costs, Refusal> {
    let mut costs = Costs::new();
    for field in Fields(message) {
        match field.map_err(SessionRefusal::from)? {
            (found, Value::Bytes(entry)) if found == number => {
                let CostEntry { pod, cost } = CostEntry::decode(entry)?;
                costs.insert(pod.into(), cost);
            }
            (found, _) if found == number => {
                return Err(SessionRefusal::from(MalformedFrame::WireType(number)).into());
            }
            _ => {}
        }
        if costs.len() > max {
            return Err(Refusal::exhausted("objects of a decision", max));
        }
    }
    Ok(costs)
}

/// The first violations, and the number of further ones.
#[derive(Debug, Default)]
struct Violations {
    first: Vec<Violation>,
    more: usize,
}

/// Reads a request and decides. Any invalid object makes the request invalid.
pub(crate) fn decide(
    message: &[u8],
    limits: &Limits,
    go_on: &dyn Fn() -> bool,
) -> Result<Decision, Refusal> {
    let mut question = DecideInput {
        objects_max: limits.decide_objects_max,
        ..DecideInput::default()
    };
    for field in Fields(message) {
        if !go_on() {
            return Err(Refusal::DeadlineExceeded);
        }
        match field.map_err(SessionRefusal::from)? {
            (number, Value::Bytes(field)) => question.take(number, field)?,
            (number @ 1..=7, Value::Number(_) | Value::Other) => {
                return Err(SessionRefusal::from(MalformedFrame::WireType(number)).into());
            }
            (_, Value::Number(_) | Value::Other) => {}
        }
    }
    let base = Config {
        operations_in_flight_max: limits.operations_in_flight_max,
        ..Config::default()
    };
    question.answer(base, go_on)
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        Self::Malformed {
            detail: error.to_string(),
        }
    }
}

impl DecideInput {
    /// Takes a field by its number in `DecideRequest`. As in any protobuf message, the parts of a repeated message field are merged.
    fn take(&mut self, number: u32, field: &[u8]) -> Result<(), Refusal> {
        match number {
            1 => {
                self.subject_bytes += field.len();
                if self.subject_bytes > OBJECT_BYTES_MAX {
                    let violation = Violation::too_large("replica_set", self.subject_bytes);
                    self.violations.extend(vec![violation]);
                } else {
                    self.subject.get_or_insert_default().merge(field)?;
                }
            }
            2 => {
                let set = self.object(0, field, |bytes| {
                    Ok(decode::replica_set(&v1::ReplicaSet::decode(bytes)?))
                })?;
                self.objects.replica_sets.extend(set);
                self.check_objects()?;
            }
            3 => {
                let pod =
                    self.object(1, field, |bytes| Ok(decode::pod(&v1::Pod::decode(bytes)?)))?;
                self.objects.pods.extend(pod);
                self.check_objects()?;
            }
            4 => self.now.get_or_insert_default().merge(field)?,
            6 => {
                let node = self.object(2, field, |bytes| {
                    Ok(decode::node(&v1::Node::decode(bytes)?))
                })?;
                self.objects.nodes.extend(node);
                self.check_objects()?;
            }
            5 => self.options.get_or_insert_default().merge(field)?,
            7 => {
                let CostEntry { pod, cost } = CostEntry::decode(field)?;
                self.costs.insert(pod.into(), cost);
                self.check_objects()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the next object of a repeated field; `None` if it is invalid.
    fn object<T>(
        &mut self,
        list: usize,
        field: &[u8],
        read: impl FnOnce(&[u8]) -> Result<Result<T, Vec<Violation>>, DecodeError>,
    ) -> Result<Option<T>, Refusal> {
        let place = self.places[list];
        self.places[list] += 1;
        let path = || format!("{}[{place}]", ["other_replica_sets", "pods", "nodes"][list]);
        if field.len() > OBJECT_BYTES_MAX {
            let violation = Violation::too_large(path(), field.len());
            self.violations.extend(vec![violation]);
            return Ok(None);
        }
        let read = read(field)?;
        Ok(read.map_err(|found| self.violations.add(path, found)).ok())
    }

    fn check_objects(&self) -> Result<(), Refusal> {
        let Objects {
            replica_sets,
            pods,
            nodes,
            others: _,
        } = &self.objects;
        let objects = replica_sets.len() + pods.len() + nodes.len();
        if objects.max(self.costs.len()) <= self.objects_max {
            return Ok(());
        }
        Err(Refusal::exhausted(
            "objects of a decision",
            self.objects_max,
        ))
    }

    fn answer(self, base: Config, go_on: &dyn Fn() -> bool) -> Result<Decision, Refusal> {
        let Self {
            subject,
            mut objects,
            costs,
            now,
            options,
            mut violations,
            ..
        } = self;
        let subject = subject
            .ok_or_else(|| vec![Violation::new("", Fault::Required, "is absent")])
            .and_then(|set| decode::replica_set(&set));
        let subject = subject.map_err(|found| violations.add(|| "replica_set".to_owned(), found));
        let now = decode::timestamp("decide_time", now.as_ref())
            .map(|now| now.unwrap_or_else(clock::now))
            .map_err(|violation| violations.extend(vec![violation]));
        let config =
            decode::options(options.as_ref(), base).map_err(|found| violations.extend(found));
        if let (true, Ok(subject)) = (violations.is_empty(), &subject) {
            // All objects are valid, so each has the place that it had in the request.
            violations.add_of_all(subject, &objects.replica_sets, &objects.pods);
        }
        let (Ok(subject), Ok(now), Ok(config), true) =
            (subject, now, config, violations.is_empty())
        else {
            return Err(violations.into());
        };
        let key = subject.key.clone();
        objects.replica_sets.push(subject);
        let key = (&*key.namespace, &*key.name);
        let config = Config { costs, ..config };
        let decision = decide_while(now, config, key, objects, go_on)?;
        decision.ok_or_else(|| Refusal::ReplicaSetUnknown {
            namespace: key.0.to_owned(),
            name: key.1.to_owned(),
        })
    }
}

impl Violations {
    fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Adds the violations of the object at `path`. `path` is only computed if a violation is reported.
    fn add(&mut self, path: impl FnOnce() -> String, mut found: Vec<Violation>) {
        if self.first.len() < VIOLATIONS_MAX {
            let path = path();
            let named = found.into_iter().map(|violation| violation.within(&path));
            found = named.collect();
        }
        self.extend(found);
    }

    /// Adds what is wrong with valid objects beside each other: an object that is listed twice, and a pod whose controller has the name and
    /// uid of a ReplicaSet, and another kind.
    fn add_of_all(&mut self, subject: &ReplicaSet, others: &[ReplicaSet], pods: &[Pod]) {
        let sets = iter::once(subject).chain(others).map(|set| &set.key);
        let sets = sets.map(|key| [&*key.namespace, &*key.name, &*key.uid.0]);
        let names = pods
            .iter()
            .map(|pod| [&*pod.namespace, &*pod.name, &*pod.uid.0]);
        self.add_repeated(sets.clone(), |place| {
            format!("other_replica_sets[{}]", place - 1)
        });
        self.add_repeated(names, |place| format!("pods[{place}]"));
        let sets: HashSet<_> = sets.collect();
        for (place, pod) in pods.iter().enumerate() {
            let owner = pod.controller.as_ref();
            let other = owner.filter(|owner| !owner.view().is_replica_set());
            let is_known =
                |it: &&OwnerReference| sets.contains(&[&*pod.namespace, &*it.name, &*it.uid.0]);
            if let Some(owner) = other.filter(is_known) {
                let found = vec![Violation::other_kind(&owner.kind)];
                self.add(|| format!("pods[{place}]"), found);
            }
        }
    }

    /// Adds the objects that have the uid, or the namespace and name, of an earlier one. Each would count twice, or hide the other.
    fn add_repeated<'a>(
        &mut self,
        keys: impl Iterator<Item = [&'a str; 3]>,
        path: impl Fn(usize) -> String,
    ) {
        let (mut uids, mut names) = (HashSet::new(), HashSet::new());
        for (place, [namespace, name, uid]) in keys.enumerate() {
            let description = if !uids.insert(uid) {
                "has the uid of an earlier object"
            } else if !names.insert((namespace, name)) {
                "has the namespace and name of an earlier object"
            } else {
                continue;
            };
            let found = vec![Violation::new("", Fault::Duplicate, description)];
            self.add(|| path(place), found);
        }
    }

    fn extend(&mut self, found: Vec<Violation>) {
        let room = VIOLATIONS_MAX - self.first.len();
        self.more += found.len().saturating_sub(room);
        self.first.extend(found.into_iter().take(room));
    }
}

impl From<Violations> for Refusal {
    fn from(Violations { first, more }: Violations) -> Self {
        Self::Session(SessionRefusal::Invalid(first, more))
    }
}
