//! The history of each ReplicaSet: the numbers of desired pods, the decisions, and their results.
//!
//! The timeline keeps a few entries for each ReplicaSet. At its limits it drops status writes first, then the oldest entries, and the
//! latest deletion of each ReplicaSet last. It leaves out single pods that come and go, as they are many; the reasons of decisions count
//! them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use decree::v1::{self, timeline_entry::Entry as Happened};
use prost::Message;
use server_core::{ActionKind, Answered, Batch, BatchId, Held, Timestamp, Uid};

use crate::wire::{self, encode};

/// The maximum number of entries of a ReplicaSet that the timeline shows.
const SHOWN_MAX: usize = 32;
/// The maximum number of status writes that are kept of a ReplicaSet, and of its other decisions, which status writes must not displace.
/// The last deletion is kept in any case.
const STATUS_MAX: usize = 10;
const DECISIONS_MAX: usize = 20;
/// The maximum number of entries of a session, and about their maximum memory in bytes.
const ENTRIES_MAX: usize = 8_192;
const BYTES_MAX: usize = 6 << 20;
/// The inverse of the timeline's share of a session's memory limit.
const SHARE: usize = 32;
/// The maximum size that is kept of a message of a cluster or an agent.
const WORDS_MAX: usize = 512;
/// The memory in bytes of an entry alone, of its answer without the messages, of a decision, and of each object of a decision.
const ENTRY_BYTES: usize = 160;
const ANSWERED_BYTES: usize = 110;
const RECORD_BYTES: usize = 500;
const TARGET_BYTES: usize = 200;

/// The entries of all ReplicaSets of a session.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// Oldest first.
    by_set: BTreeMap<Uid, VecDeque<Entry>>,
    /// The ReplicaSet of each entry, by the number of the entry, in the order in which entries are dropped.
    order: BTreeMap<(Rank, u64), Uid>,
    next: u64,
    bytes: usize,
    bytes_max: usize,
}

/// The order in which entries are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Status,
    Other,
    LastDeletion,
}

#[derive(Clone, Debug)]
struct Entry {
    number: u64,
    rank: Rank,
    time: Timestamp,
    event: EntryContent,
}

#[derive(Clone, Debug)]
enum EntryContent {
    Scaled(v1::Scaled),
    Decided {
        action: ActionKind,
        record: Arc<v1::DecisionRecord>,
    },
    /// The result of a batch, and the number of equal results in a row, of which it is the last.
    Answered {
        last: Box<Answered>,
        times: u32,
    },
}

// === impl Timeline ===

impl Timeline {
    /// Starts empty, for a session with this memory limit.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            by_set: BTreeMap::new(),
            order: BTreeMap::new(),
            next: 0,
            bytes: 0,
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
        let (set, action) = (&batch.key.uid, batch.action.kind());
        if action == ActionKind::Delete {
            self.rank_last_deletion(set, Rank::Other);
        }
        self.push(set, now, EntryContent::Decided { action, record });
    }

    /// Adds a change of the number of desired pods.
    pub(crate) fn scaled(&mut self, set: &Uid, at: Timestamp, from: Option<i32>, to: i32) {
        self.push(set, at, EntryContent::Scaled(v1::Scaled { from, to }));
    }

    /// Adds the result of a batch. If it equals the result before it, it replaces that one.
    pub(crate) fn answered(&mut self, mut answered: Box<Answered>) {
        let message = &mut answered.message;
        message.truncate(message.floor_char_boundary(WORDS_MAX));
        message.shrink_to_fit();
        if let Some(last) = self.unless_repeated(answered) {
            let (set, at) = (last.key.uid.clone(), last.at);
            self.push(&set, at, EntryContent::Answered { last, times: 1 });
        }
    }

    pub(crate) fn forget(&mut self, set: &Uid) {
        for entry in self.by_set.remove(set).into_iter().flatten() {
            self.release(&entry);
        }
    }

    /// Returns the entries of a ReplicaSet, the newest first. Status writes are left out: they report what has happened, and lead to
    /// nothing.
    pub(crate) fn of(&self, set: &Uid) -> Vec<v1::TimelineEntry> {
        let entries = self.by_set.get(set).into_iter().flatten().rev();
        let shown = entries.filter(|entry| entry.rank != Rank::Status);
        shown.take(SHOWN_MAX).map(Entry::encode).collect()
    }

    /// Returns the result of the newest attempt to change something. A status write counts only if it failed and nothing else did.
    pub(crate) fn last_attempt(&self, set: &Uid) -> Option<&Answered> {
        let entries = || self.by_set.get(set).into_iter().flatten().rev();
        let answered = || entries().filter_map(|entry| entry.event.answered());
        let pods = answered().find(|it| it.action != ActionKind::WriteStatus);
        let failed = pods.filter(|it| it.failure.is_some());
        failed.or_else(|| answered().next())
    }

    /// Returns the last decisions on a ReplicaSet, the newest first.
    pub(crate) fn decisions(&self, set: &Uid) -> Vec<v1::DecisionRecord> {
        let entries = self.by_set.get(set).into_iter().flatten().rev();
        let decided = entries.filter_map(|entry| Some((entry.rank, entry.event.decided()?)));
        let mut others = 0;
        let shown = decided.filter(|(rank, _)| {
            others += usize::from(*rank == Rank::Other);
            *rank != Rank::Other || others <= DECISIONS_MAX
        });
        shown.map(|(_, (_, record))| record.clone()).collect()
    }

    /// Adds the result of a batch to the result before it, if both are the same and only the decision came between them. The new decision
    /// then replaces the earlier one. Returns the result if it differs.
    fn unless_repeated(&mut self, answered: Box<Answered>) -> Option<Box<Answered>> {
        let set = answered.key.uid.clone();
        let entries = self.by_set.get_mut(&set).map(VecDeque::make_contiguous);
        let entries = entries.into_iter().flatten();
        let mut shown = entries.filter(|it| it.rank != Rank::Status).rev();
        let mut last = shown.next();
        let decision = last.take_if(|it| it.event.is_decision_on(answered.batch));
        let before = last.or_else(|| shown.next());
        let Some(EntryContent::Answered {
            last: before,
            times,
        }) = before.map(|it| &mut it.event)
        else {
            return Some(answered);
        };
        if !comes_to_the_same(before, &answered) {
            return Some(answered);
        }
        let mut superseded = None;
        if let Some(decision) = decision {
            let earlier = shown.next();
            let earlier = earlier.filter(|it| it.event.is_decision_on(before.batch));
            let Some(earlier) = earlier else {
                return Some(answered);
            };
            std::mem::swap(&mut earlier.event, &mut decision.event);
            superseded = Some(decision.number);
        }
        self.bytes = self.bytes - before.message.len() + answered.message.len();
        *before = answered;
        *times = times.saturating_add(1);
        if let Some(number) = superseded {
            self.remove(&set, number);
        }
        None
    }

    fn push(&mut self, set: &Uid, time: Timestamp, event: EntryContent) {
        let entry = Entry {
            number: self.next,
            rank: event.rank(),
            time,
            event,
        };
        self.next += 1;
        self.bytes += entry.bytes();
        self.order.insert((entry.rank, entry.number), set.clone());
        let entries = self.by_set.entry(set.clone()).or_default();
        entries.push_back(entry);
        while let Some(number) = self.by_set.get(set).and_then(superfluous) {
            self.remove(set, number);
        }
        while self.order.len() > ENTRIES_MAX || self.bytes > self.bytes_max {
            let Some(((_, number), set)) = self.order.pop_first() else {
                return;
            };
            self.remove(&set, number);
        }
    }

    fn rank_last_deletion(&mut self, set: &Uid, rank: Rank) {
        let mut entries = self.by_set.get_mut(set).into_iter().flatten().rev();
        if let Some(entry) = entries.find(|it| it.event.rank() == Rank::LastDeletion) {
            self.order.remove(&(entry.rank, entry.number));
            entry.rank = rank;
            self.order.insert((rank, entry.number), set.clone());
        }
    }

    fn remove(&mut self, set: &Uid, number: u64) {
        let Some(entries) = self.by_set.get_mut(set) else {
            return;
        };
        let at = entries.binary_search_by_key(&number, |it| it.number);
        let entry = at.ok().and_then(|at| entries.remove(at));
        if entries.is_empty() {
            self.by_set.remove(set);
        }
        let Some(entry) = entry else { return };
        self.release(&entry);
        if entry.rank == Rank::LastDeletion {
            self.rank_last_deletion(set, Rank::LastDeletion);
        }
    }

    /// Releases the memory of an entry that is in no list of a ReplicaSet now.
    fn release(&mut self, entry: &Entry) {
        self.order.remove(&(entry.rank, entry.number));
        self.bytes -= entry.bytes();
    }
}

impl Held for Timeline {
    fn bytes(&self) -> usize {
        let Self {
            by_set: _,
            order: _,
            next: _,
            bytes,
            bytes_max: _,
        } = self;
        *bytes
    }
}

/// Returns the oldest entry of a ReplicaSet that neither the timeline nor the last decisions show.
fn superfluous(entries: &VecDeque<Entry>) -> Option<u64> {
    if entries.len() <= STATUS_MAX {
        return None;
    }
    let (mut statuses, mut shown, mut decisions) = (0, 0, 0);
    let is_superfluous = |entry: &&Entry| {
        if entry.rank == Rank::Status {
            statuses += 1;
            return statuses > STATUS_MAX;
        }
        shown += 1;
        if entry.rank == Rank::LastDeletion {
            return false;
        }
        let is_decision = entry.event.decided().is_some();
        decisions += usize::from(is_decision);
        shown > SHOWN_MAX && !(is_decision && decisions <= DECISIONS_MAX)
    };
    let superfluous = entries.iter().rev().filter(is_superfluous);
    superfluous.last().map(|entry| entry.number)
}

// === impl Entry ===

impl Entry {
    fn bytes(&self) -> usize {
        let held = match &self.event {
            EntryContent::Scaled(_) => 0,
            EntryContent::Decided { record, .. } => {
                RECORD_BYTES + record.encoded_len() + TARGET_BYTES * record.targets.len()
            }
            EntryContent::Answered { last, .. } => ANSWERED_BYTES + last.message.len(),
        };
        ENTRY_BYTES + held
    }

    fn encode(&self) -> v1::TimelineEntry {
        let entry = match &self.event {
            EntryContent::Scaled(scaled) => Happened::Scaled(*scaled),
            EntryContent::Decided { record, .. } => Happened::Decided(v1::Decided {
                batch_id: record.batch_id,
                action: record.action.clone(),
                operations: record.operations,
                reason: record.reasons.first().cloned(),
            }),
            EntryContent::Answered { last, times } => Happened::Answered(result(last, *times)),
        };
        v1::TimelineEntry {
            time: Some(encode::time(self.time)),
            entry: Some(entry),
        }
    }
}

// === impl EntryContent ===

impl EntryContent {
    fn rank(&self) -> Rank {
        match self.decided() {
            Some((ActionKind::WriteStatus, _)) => Rank::Status,
            Some((ActionKind::Delete, _)) => Rank::LastDeletion,
            Some((ActionKind::Create | ActionKind::Claim, _)) | None => Rank::Other,
        }
    }

    fn decided(&self) -> Option<(ActionKind, &v1::DecisionRecord)> {
        match self {
            Self::Decided { action, record } => Some((*action, record)),
            Self::Scaled(_) | Self::Answered { .. } => None,
        }
    }

    fn answered(&self) -> Option<&Answered> {
        match self {
            Self::Answered { last, .. } => Some(last),
            Self::Scaled(_) | Self::Decided { .. } => None,
        }
    }

    fn is_decision_on(&self, batch: BatchId) -> bool {
        let decided = self.decided();
        decided.is_some_and(|(_, record)| record.batch_id == batch.0)
    }
}

fn result(answered: &Answered, times: u32) -> v1::Answered {
    let Answered {
        key: _,
        at,
        batch,
        action,
        counts,
        failure,
        message,
    } = answered;
    let class = failure.map(wire::class_out).unwrap_or_default();
    v1::Answered {
        batch_id: batch.0,
        action: wire::action(*action).to_owned(),
        done: wire::int32(counts.done),
        failed: wire::int32(counts.failed),
        not_started: wire::int32(counts.not_started),
        class: class.into(),
        message: message.clone(),
        times: wire::int32(times),
        last: Some(encode::time(*at)),
    }
}

/// Returns whether two batches failed in the same way: with the same message, except for names and numbers.
fn comes_to_the_same(one: &Answered, other: &Answered) -> bool {
    let is_nothing = |answered: &Answered| answered.counts.done == 0;
    let how = |answered: &Answered| (answered.action, answered.failure);
    is_nothing(one)
        && is_nothing(other)
        && how(one) == how(other)
        && plain(&one.message).eq(plain(&other.message))
}

/// Returns a text without its digits and without the texts in quotes.
fn plain(text: &str) -> impl Iterator<Item = char> {
    let mut is_quoted = false;
    text.chars().filter(move |letter| {
        is_quoted ^= *letter == '"';
        !is_quoted && !letter.is_ascii_digit()
    })
}

#[cfg(test)]
mod tests;
