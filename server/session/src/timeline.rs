//! What led each ReplicaSet to where it is: how many pods were wanted, what was decided, and what became of it.
//!
//! Kept for who asks afterwards, so it is small, and the first to give way: a few entries for each ReplicaSet, the oldest of all gone first.
//! Pods that come and go are left out, as they are many; the reasons of decisions count them.

use std::collections::{BTreeMap, VecDeque};

use decree::v1::{self, timeline_entry::Entry as Happened};
use server_core::{
    ActionKind, Answered, Batch, FailureClass, OutcomeCounts, Reason, Report, Timestamp, Uid,
};

use crate::wire::{self, encode};

/// How many entries a ReplicaSet has.
const OF_ONE_MAX: usize = 32;
/// How many all of a session have, and about how many bytes these take.
const ENTRIES_MAX: usize = 8_192;
const BYTES_MAX: usize = 2 << 20;
/// Which part of what a session may hold that is at most.
const SHARE: usize = 64;
/// How much is kept of the words of a cluster or an agent.
const WORDS_MAX: usize = 512;
/// What an entry takes in memory, beside its words.
const ENTRY_BYTES: usize = 220;

/// The entries of all ReplicaSets of a session.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// Oldest first.
    by_set: BTreeMap<Uid, VecDeque<Entry>>,
    /// Whose entry each number is.
    order: BTreeMap<u64, Uid>,
    next: u64,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    number: u64,
    time: Timestamp,
    event: Event,
}

#[derive(Clone, Debug)]
enum Event {
    Scaled { from: Option<i32>, to: i32 },
    Decided(Decided),
    Ended(Ended),
}

#[derive(Clone, Debug)]
struct Decided {
    batch: u64,
    action: &'static str,
    operations: usize,
    reason: Option<Reason>,
}

/// What became of a batch, and of those before it that came to the same.
#[derive(Clone, Debug)]
struct Ended {
    batch: u64,
    action: &'static str,
    counts: OutcomeCounts,
    class: Option<FailureClass>,
    words: Box<str>,
    times: u32,
    last: Timestamp,
}

// === impl Timeline ===

impl Timeline {
    /// Returns an empty one for a session that may hold so many bytes in all.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            by_set: BTreeMap::new(),
            order: BTreeMap::new(),
            next: 0,
            bytes: 0,
            bytes_max: BYTES_MAX.min(bytes_max / SHARE),
        }
    }

    /// Notes a batch that leaves. The status is left out: it says what has happened, and leads nowhere.
    pub(crate) fn decided(&mut self, now: Timestamp, batch: &Batch) {
        let action = batch.action.kind();
        if action == ActionKind::WriteStatus {
            return;
        }
        let decided = Decided {
            batch: batch.id.0,
            action: wire::action(action),
            operations: batch.action.operations(),
            reason: batch.reasons.first().cloned(),
        };
        self.push(&batch.key.uid, now, Event::Decided(decided));
    }

    /// Takes a report that is for the timeline, and returns any other.
    pub(crate) fn take(&mut self, report: Report) -> Option<Report> {
        match report {
            Report::Scaled { key, at, from, to } => {
                self.push(&key.uid, at, Event::Scaled { from, to });
            }
            Report::Answered(answered) => self.answered(*answered),
            other @ (Report::Synced { .. }
            | Report::StaleViewSkipped { .. }
            | Report::Quarantined { .. }
            | Report::PodsDoNotLast { .. }
            | Report::OrphanMatchesMany { .. }
            | Report::DeletionAgeRatio(_)
            | Report::ResyncNeeded { .. }) => return Some(other),
        }
        None
    }

    /// Forgets a ReplicaSet that is gone.
    pub(crate) fn forget(&mut self, set: &Uid) {
        for entry in self.by_set.remove(set).into_iter().flatten() {
            self.release(&entry);
        }
    }

    /// Returns the entries of a ReplicaSet, the newest first.
    pub(crate) fn of(&self, set: &Uid) -> Vec<v1::TimelineEntry> {
        let entries = self.by_set.get(set).into_iter().flatten();
        entries.rev().map(Entry::encode).collect()
    }

    /// Returns about how many bytes all of it takes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn answered(&mut self, answered: Answered) {
        let Answered {
            key,
            at,
            batch,
            action,
            counts,
            failure,
            refusal,
        } = answered;
        let (class, words) = failure.unzip();
        let mut words = words.or(refusal).unwrap_or_default();
        words.truncate(words.floor_char_boundary(WORDS_MAX));
        let ended = Ended {
            batch: batch.0,
            action: wire::action(action),
            counts,
            class,
            words: words.into(),
            times: 1,
            last: at,
        };
        if !self.repeats(&key.uid, &ended) {
            self.push(&key.uid, at, Event::Ended(ended));
        }
    }

    /// Adds what became of a batch to what became of the one before, if that is the same and nothing happened between but the decision.
    fn repeats(&mut self, set: &Uid, ended: &Ended) -> bool {
        let Some(entries) = self.by_set.get_mut(set) else {
            return false;
        };
        let decides =
            |entry: &&Entry| matches!(&entry.event, Event::Decided(it) if it.batch == ended.batch);
        let decision = entries.back().filter(decides).is_some();
        let before = entries.len().checked_sub(1 + usize::from(decision));
        let before = before.and_then(|at| entries.get_mut(at));
        let Some(Event::Ended(before)) = before.map(|entry| &mut entry.event) else {
            return false;
        };
        if !before.is_same(ended) {
            return false;
        }
        before.batch = ended.batch;
        before.counts = ended.counts;
        before.times = before.times.saturating_add(1);
        before.last = ended.last;
        if decision && let Some(entry) = entries.pop_back() {
            self.release(&entry);
        }
        true
    }

    fn push(&mut self, set: &Uid, time: Timestamp, event: Event) {
        let number = self.next;
        self.next += 1;
        let entry = Entry {
            number,
            time,
            event,
        };
        self.bytes += entry.bytes();
        self.order.insert(number, set.clone());
        let entries = self.by_set.entry(set.clone()).or_default();
        entries.push_back(entry);
        if entries.len() > OF_ONE_MAX {
            self.drop_oldest_of(set);
        }
        while self.order.len() > ENTRIES_MAX || self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.order.first_key_value() else {
                return;
            };
            self.drop_oldest_of(&oldest.clone());
        }
    }

    fn drop_oldest_of(&mut self, set: &Uid) {
        let Some(entries) = self.by_set.get_mut(set) else {
            return;
        };
        let oldest = entries.pop_front();
        if entries.is_empty() {
            self.by_set.remove(set);
        }
        if let Some(entry) = oldest {
            self.release(&entry);
        }
    }

    /// Gives back what an entry takes that is in no list of a ReplicaSet any more.
    fn release(&mut self, entry: &Entry) {
        self.order.remove(&entry.number);
        self.bytes -= entry.bytes();
    }
}

// === impl Entry ===

impl Entry {
    fn bytes(&self) -> usize {
        let words = match &self.event {
            Event::Scaled { .. } => 0,
            Event::Decided(decided) => decided.reason.as_ref().map_or(0, |it| it.detail.len()),
            Event::Ended(ended) => ended.words.len(),
        };
        ENTRY_BYTES + words
    }

    fn encode(&self) -> v1::TimelineEntry {
        v1::TimelineEntry {
            time: Some(encode::time(self.time)),
            entry: Some(match &self.event {
                Event::Scaled { from, to } => Happened::Scaled(v1::Scaled {
                    from: *from,
                    to: *to,
                }),
                Event::Decided(decided) => Happened::Decided(decided.encode()),
                Event::Ended(ended) => Happened::Answered(ended.encode()),
            }),
        }
    }
}

// === impl Decided ===

impl Decided {
    fn encode(&self) -> v1::Decided {
        v1::Decided {
            batch_id: self.batch,
            action: self.action.to_owned(),
            operations: wire::int32(self.operations),
            reason: self.reason.clone().map(encode::reason),
        }
    }
}

// === impl Ended ===

impl Ended {
    /// Returns whether another batch came to nothing in the same way.
    fn is_same(&self, other: &Self) -> bool {
        let is_nothing = |ended: &Self| ended.counts.done == 0;
        let how = |ended: &Self| (ended.action, ended.class);
        is_nothing(self)
            && is_nothing(other)
            && how(self) == how(other)
            && self.words == other.words
    }

    fn encode(&self) -> v1::Answered {
        let OutcomeCounts {
            done,
            failed,
            not_started,
        } = self.counts;
        let class = self.class.map(wire::class_out).unwrap_or_default();
        v1::Answered {
            batch_id: self.batch,
            action: self.action.to_owned(),
            done: wire::int32(done),
            failed: wire::int32(failed),
            not_started: wire::int32(not_started),
            class: class.into(),
            message: self.words.clone().into(),
            times: wire::int32(self.times),
            last: Some(encode::time(self.last)),
        }
    }
}

#[cfg(test)]
mod tests;
