//! The history of each ReplicaSet: a ring of changes of the desired pods and of attempts, each with its result. Beside the ring, two
//! entries stay until another replaces them: the last decision to delete pods, and the last scale-down.
//!
//! The timeline leaves out single pods that come and go, as they are many; the reasons of decisions count them. Beyond the memory of a
//! session's timeline, the ReplicaSets that have been quiet for longest lose their oldest entries first, and their last deletion last.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use decree_api::v1::{self, timeline_entry::Entry as Happened};
use decree_core::{ActionKind, Answered, Batch, BatchId, Held, HeldMap, ScaleDown, Timestamp, Uid};
use prost::Message;

use crate::wire::{self, encode};

/// The maximum numbers of status writes, other attempts, and changes of the desired pods in a ring: none must displace the others.
const STATUS_MAX: usize = 10;
const OTHERS_MAX: usize = 20;
const CHANGES_MAX: usize = 64;
// A kind is known by its limit.
const _: () = assert!(STATUS_MAX < OTHERS_MAX && OTHERS_MAX < CHANGES_MAX);
/// The maximum number of entries of an answer.
const SHOWN_MAX: usize = 32;
/// About the maximum memory of a session's timeline in bytes, and the inverse of its share of the memory limit of a session.
const BYTES_MAX: usize = 16 << 20;
const SHARE: usize = 12;
/// The inverse of a ring's share of the timeline.
const RING_SHARE: usize = 16;
/// The maximum size that is kept of a message of a cluster or an agent.
const WORDS_MAX: usize = 512;
/// The memory in bytes of an entry alone, of a result without its message, of a decision, and of each object of a decision.
const ENTRY_BYTES: usize = 160;
const RESULT_BYTES: usize = 110;
const RECORD_BYTES: usize = 500;
const TARGET_BYTES: usize = 200;

#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    rings: HeldMap<Uid, Ring>,
    /// The ReplicaSets in the order in which they give way.
    order: BTreeMap<Place, Uid>,
    next: u64,
    bytes_max: usize,
}

/// Whether nothing but the last deletion is left of a ReplicaSet, and the number of its last change.
type Place = (bool, u64);

#[derive(Clone, Debug, Default)]
struct Ring {
    place: Place,
    /// Oldest first.
    entries: VecDeque<Entry>,
    last_deletion: Option<Record>,
    scale_down: Option<ScaleDown>,
}

#[derive(Clone, Debug)]
enum Entry {
    /// A change of the desired pods, and the manager that wrote it; empty if unknown.
    Scaled(Timestamp, v1::Scaled, Arc<str>),
    Attempt(Attempt),
}

/// A decision, and the result of its batch once all outcomes have come.
#[derive(Clone, Debug)]
struct Attempt {
    decided: Timestamp,
    is_status: bool,
    record: Record,
    result: Option<AttemptResult>,
}

/// The number of equal results in a row, the time of the first, and the last.
#[derive(Clone, Debug)]
struct AttemptResult {
    times: u32,
    first: Timestamp,
    last: Box<Answered>,
}

#[derive(Clone, Debug)]
struct Record {
    record: Arc<v1::DecisionRecord>,
    bytes: usize,
}

impl Timeline {
    /// Starts empty, for a session with this memory limit.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            rings: HeldMap::default(),
            order: BTreeMap::new(),
            next: 0,
            bytes_max: BYTES_MAX.min(bytes_max / SHARE),
        }
    }

    /// Adds a batch that leaves, by the record of its decision.
    pub(crate) fn decided(
        &mut self,
        now: Timestamp,
        batch: &Batch,
        record: Arc<v1::DecisionRecord>,
    ) {
        let record = Record::new(record);
        let action = batch.action.kind();
        self.change(&batch.key.uid, |ring| {
            if action == ActionKind::Delete {
                ring.last_deletion = Some(record.clone());
            }
            ring.entries.push_back(Entry::Attempt(Attempt {
                decided: now,
                is_status: action == ActionKind::WriteStatus,
                record,
                result: None,
            }));
        });
    }

    /// Replaces the last scale-down by the choice of the victims of a batch. Status writes and creates do not replace it.
    pub(crate) fn scaled_down(&mut self, scale_down: ScaleDown) {
        self.change(&scale_down.key.uid.clone(), |ring| {
            ring.scale_down = Some(scale_down);
        });
    }

    /// Adds a change of the number of desired pods.
    pub(crate) fn scaled(
        &mut self,
        set: &Uid,
        at: Timestamp,
        (previous, desired): (Option<i32>, i32),
        manager: Arc<str>,
    ) {
        let scaled = v1::Scaled { previous, desired };
        let change = Entry::Scaled(at, scaled, manager);
        self.change(set, |ring| ring.entries.push_back(change));
    }

    /// Returns the changes of the desired pods of a ReplicaSet, the oldest first.
    pub(crate) fn changes(
        &self,
        set: &Uid,
    ) -> impl Iterator<Item = (Timestamp, v1::Scaled, &Arc<str>)> {
        let entries = self.rings.get(set).into_iter().flat_map(|it| &it.entries);
        entries.filter_map(|it| match it {
            Entry::Scaled(at, scaled, manager) => Some((*at, *scaled, manager)),
            Entry::Attempt(_) => None,
        })
    }

    /// Adds the result of a batch to its decision. If it equals the result before it, the attempt replaces that one.
    pub(crate) fn answered(&mut self, mut answered: Box<Answered>) {
        let message = &mut answered.message;
        message.truncate(message.floor_char_boundary(WORDS_MAX));
        message.shrink_to_fit();
        self.change(&answered.key.uid.clone(), |ring| ring.answered(answered));
    }

    pub(crate) fn forget(&mut self, set: &Uid) {
        if let Some(ring) = self.rings.remove(set) {
            self.order.remove(&ring.place);
        }
    }

    /// Returns the entries of a ReplicaSet, the newest first. Status writes are left out unless they failed: they report what has happened,
    /// and lead to nothing.
    pub(crate) fn of(&self, set: &Uid) -> Vec<v1::TimelineEntry> {
        let mut shown = Vec::new();
        for entry in self.rings.get(set).into_iter().flat_map(|it| &it.entries) {
            match entry {
                Entry::Scaled(at, scaled, _) => shown.push((*at, Happened::Scaled(*scaled))),
                Entry::Attempt(attempt) => attempt.show(&mut shown),
            }
        }
        // A change that came while a batch was in flight comes before its result.
        shown.sort_by_key(|(at, _)| *at);
        let newest = shown.into_iter().rev().take(SHOWN_MAX);
        let newest = newest.map(|(at, entry)| v1::TimelineEntry {
            event_time: Some(encode::time(at)),
            entry: Some(entry),
        });
        newest.collect()
    }

    /// Returns the result of the newest attempt to change something. A status write counts only if it failed and nothing else did.
    pub(crate) fn last_attempt(&self, set: &Uid) -> Option<&Answered> {
        let answered = || {
            let attempts = self.attempts(set);
            attempts.filter_map(|it| Some(&*it.result.as_ref()?.last))
        };
        let pods = answered().find(|it| it.action != ActionKind::WriteStatus);
        let failed = pods.filter(|it| it.failure.is_some());
        failed.or_else(|| answered().next())
    }

    /// Returns the last decisions on a ReplicaSet, the newest first, with its last deletion in any case.
    pub(crate) fn decisions(&self, set: &Uid) -> Vec<v1::DecisionRecord> {
        let decided = self.attempts(set).map(|it| &*it.record.record);
        let mut decided: Vec<_> = decided.cloned().collect();
        let deletion = self.rings.get(set).and_then(|it| it.last_deletion.as_ref());
        let deletion = deletion.map(|it| &*it.record);
        let is_known =
            |it: &&v1::DecisionRecord| decided.iter().any(|other| other.batch_id == it.batch_id);
        let beyond = deletion.filter(|it| !is_known(it)).cloned();
        decided.extend(beyond);
        decided
    }

    pub(crate) fn last_scale_down(&self, set: &Uid) -> Option<v1::ScaleDown> {
        let last = self.rings.get(set)?.scale_down.as_ref();
        last.map(encode::scale_down)
    }

    /// The attempts of a ReplicaSet, the newest first.
    fn attempts(&self, set: &Uid) -> impl Iterator<Item = &Attempt> {
        let entries = self.rings.get(set).into_iter().flat_map(|it| &it.entries);
        entries.rev().filter_map(Entry::attempt)
    }

    fn change(&mut self, set: &Uid, change: impl FnOnce(&mut Ring)) {
        let mut ring = self.rings.remove(set).unwrap_or_default();
        self.order.remove(&ring.place);
        change(&mut ring);
        ring.limit(self.bytes_max / RING_SHARE);
        self.next += 1;
        self.keep(set.clone(), ring, self.next);
        while self.rings.bytes() > self.bytes_max
            && let Some(((_, number), set)) = self.order.pop_first()
        {
            // Without entries, the ring goes whole.
            if let Some(mut ring) = self.rings.remove(&set)
                && ring.entries.pop_front().is_some()
                && !ring.is_empty()
            {
                self.keep(set, ring, number);
            }
        }
    }

    fn keep(&mut self, set: Uid, mut ring: Ring, number: u64) {
        ring.place = (ring.entries.is_empty(), number);
        self.order.insert(ring.place, set.clone());
        self.rings.insert(set, ring);
    }
}

impl Held for Timeline {
    fn bytes(&self) -> usize {
        let Self {
            rings,
            order: _,
            next: _,
            bytes_max: _,
        } = self;
        rings.bytes()
    }
}

impl Ring {
    /// Adds a result to its attempt. An attempt before it with the same result, and only status writes between them, goes.
    fn answered(&mut self, answered: Box<Answered>) {
        let (mut first, mut times) = (answered.at, 1);
        let mut attempts = self.entries.iter().enumerate().rev();
        let is_its = |it: &&Attempt| it.record.record.batch_id == answered.batch.0;
        let Some(at) = attempts.find_map(|(at, it)| it.attempt().filter(is_its).map(|_| at)) else {
            return;
        };
        let before = attempts.find(|(_, it)| !it.is_unanswered_status());
        let before = before.and_then(|(before, it)| Some((before, it.attempt()?)));
        let mut superseded = None;
        if let Some((before, attempt)) = before
            && let Some(result) = &attempt.result
            && comes_to_the_same(&result.last, &answered)
        {
            (first, times) = (result.first, result.times.saturating_add(1));
            superseded = Some((before, attempt.decided));
        }
        let Some(Entry::Attempt(attempt)) = self.entries.get_mut(at) else {
            return;
        };
        attempt.result = Some(AttemptResult {
            times,
            first,
            last: answered,
        });
        if let Some((before, decided)) = superseded {
            attempt.decided = decided;
            self.entries.remove(before);
        }
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.last_deletion.is_none() && self.scale_down.is_none()
    }

    /// Drops the oldest entries beyond the limits.
    fn limit(&mut self, bytes_max: usize) {
        for max in [STATUS_MAX, OTHERS_MAX, CHANGES_MAX] {
            let entries = self.entries.iter().enumerate().rev();
            let mut of_kind = entries.filter(|(_, it)| it.max() == max);
            if let Some((beyond, _)) = of_kind.nth(max) {
                self.entries.remove(beyond);
            }
        }
        while self.bytes() > bytes_max && self.entries.len() > 1 {
            self.entries.pop_front();
        }
    }
}

impl Held for Ring {
    fn bytes(&self) -> usize {
        let Self {
            place: _,
            entries,
            last_deletion,
            scale_down,
        } = self;
        size_of::<Self>()
            + entries.iter().map(Entry::bytes).sum::<usize>()
            + last_deletion.as_ref().map_or(0, |it| it.bytes)
            + scale_down
                .iter()
                .flat_map(|it| &it.pods)
                .map(Held::bytes)
                .sum::<usize>()
    }
}

impl Entry {
    const fn attempt(&self) -> Option<&Attempt> {
        match self {
            Self::Attempt(attempt) => Some(attempt),
            Self::Scaled(..) => None,
        }
    }

    /// The limit of its kind, which no other kind has.
    const fn max(&self) -> usize {
        match self.attempt() {
            None => CHANGES_MAX,
            Some(Attempt {
                is_status: true, ..
            }) => STATUS_MAX,
            Some(_) => OTHERS_MAX,
        }
    }

    fn is_unanswered_status(&self) -> bool {
        let attempt = self.attempt();
        attempt.is_some_and(|it| it.is_status && it.result.is_none())
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Self::Scaled(_, _, manager) => manager.len(),
                Self::Attempt(attempt) => {
                    let result = attempt.result.as_ref();
                    let result = result.map_or(0, |it| RESULT_BYTES + it.last.message.len());
                    attempt.record.bytes + result
                }
            }
    }
}

impl Attempt {
    fn show(&self, shown: &mut Vec<(Timestamp, Happened)>) {
        let record = &self.record.record;
        if !self.is_status {
            let decided = v1::Decided {
                batch_id: record.batch_id,
                action: record.action,
                operations: record.operations,
                reason: record.reasons.first().cloned(),
            };
            shown.push((self.decided, Happened::Decided(decided)));
        }
        let result = self.result.iter();
        shown.extend(result.map(|it| (it.first, Happened::Answered(it.encode()))));
    }
}

impl AttemptResult {
    fn encode(&self) -> v1::Answered {
        let Answered {
            key: _,
            at,
            batch: BatchId(batch_id),
            action,
            counts,
            failure,
            message,
        } = &*self.last;
        let class = failure.map(wire::class_out).unwrap_or_default();
        v1::Answered {
            batch_id: *batch_id,
            action: wire::action_out(*action).into(),
            done: wire::int32(counts.done),
            failed: wire::int32(counts.failed),
            not_started: wire::int32(counts.not_started),
            failure_class: class.into(),
            message: message.clone(),
            times: wire::int32(self.times),
            last_time: Some(encode::time(*at)),
        }
    }
}

impl Record {
    fn new(record: Arc<v1::DecisionRecord>) -> Self {
        let bytes = RECORD_BYTES + record.encoded_len() + TARGET_BYTES * record.targets.len();
        Self { record, bytes }
    }
}

/// Whether two batches failed in the same way: with the same message, except for names and numbers.
fn comes_to_the_same(one: &Answered, other: &Answered) -> bool {
    let is_nothing = |answered: &Answered| answered.counts.done == 0;
    let how = |answered: &Answered| (answered.action, answered.failure);
    is_nothing(one)
        && is_nothing(other)
        && how(one) == how(other)
        && plain(&one.message).eq(plain(&other.message))
}

/// A text without its digits and without the texts in quotes.
fn plain(text: &str) -> impl Iterator<Item = char> {
    let mut is_quoted = false;
    text.chars().filter(move |letter| {
        is_quoted ^= *letter == '"';
        !is_quoted && !letter.is_ascii_digit()
    })
}

#[cfg(test)]
mod tests;
