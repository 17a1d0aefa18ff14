//! Which ReplicaSets are due for a sync, and when the others will be (spec 8).
//!
//! A key is queued once however often it is added; one that is added while its sync runs is queued again when it is done.
//! Live events go before the lane of lists and resyncs, but every eighth turn belongs to that lane, so that nothing starves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{
    index::SetId,
    object::{Span, Timestamp},
};

/// The first delay after a failure; each further failure doubles it.
const BACKOFF_FIRST: Span = Span::millis(5);
/// The longest delay after a failure.
const BACKOFF_MAX: Span = Span::seconds(1000);
/// How long one retry reserves of the bucket that all keys share: 10 a second.
const BUCKET_INTERVAL: Span = Span::millis(100);
/// How many retries the bucket holds.
const BUCKET_BURST: i64 = 100;
/// Which turns belong to the lane of lists and resyncs.
const RESYNC_TURN: u64 = 8;

/// Why a key is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Something happened.
    Live,
    /// A list named it.
    Resync,
}

/// The queue of one controller.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    live: VecDeque<SetId>,
    resync: VecDeque<SetId>,
    dirty: BTreeMap<SetId, Lane>,
    processing: BTreeSet<SetId>,
    due: BTreeSet<(Timestamp, SetId)>,
    due_by_key: BTreeMap<SetId, Timestamp>,
    failures: BTreeMap<SetId, u32>,
    /// When the shared bucket has its next token, were it empty.
    bucket: Option<Timestamp>,
    turn: u64,
    counters: Counters,
}

/// What the queue has counted, for the workqueue metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Keys added to the queue.
    pub(crate) adds: u64,
    /// Delayed adds, retries and availability checks alike.
    pub(crate) retries: u64,
}

// === impl Queue ===

impl Queue {
    /// Queues a key at once.
    pub(crate) fn add(&mut self, id: SetId, lane: Lane) {
        match self.dirty.get(&id) {
            Some(Lane::Live) => return,
            Some(Lane::Resync) if lane == Lane::Resync => return,
            Some(Lane::Resync) | None => {}
        }
        if self.dirty.insert(id, lane).is_none() {
            self.counters.adds += 1;
        }
        if !self.processing.contains(&id) {
            self.lane(lane).push_back(id);
        }
    }

    /// Queues a key after a while; the earliest of several delays counts.
    pub(crate) fn add_after(&mut self, now: Timestamp, id: SetId, delay: Span) {
        if delay.0 <= 0 {
            return self.add(id, Lane::Live);
        }
        self.counters.retries += 1;
        let time = now.plus(delay);
        if let Some(known) = self.due_by_key.get(&id) {
            if *known <= time {
                return;
            }
            self.due.remove(&(*known, id));
        }
        self.due.insert((time, id));
        self.due_by_key.insert(id, time);
    }

    /// Queues a key after a failure: by its own backoff, the shared bucket, or what the cluster asked for, whichever is longest.
    pub(crate) fn retry(&mut self, now: Timestamp, id: SetId, asked: Option<Span>) {
        let failures = self.failures.entry(id).or_default();
        let own = BACKOFF_FIRST
            .0
            .saturating_mul(1_i64 << (*failures).min(40))
            .min(BACKOFF_MAX.0);
        *failures = failures.saturating_add(1);
        let shared = self.reserve(now);
        let delay = own.max(shared.0).max(asked.map_or(0, |asked| asked.0));
        self.add_after(now, id, Span(delay));
    }

    /// Takes one token of the shared bucket and returns how long it is until the token is there.
    fn reserve(&mut self, now: Timestamp) -> Span {
        let full = now.plus(Span(-BUCKET_INTERVAL.0 * (BUCKET_BURST - 1)));
        let token = self.bucket.map_or(full, |token| token.max(full));
        self.bucket = Some(token.plus(BUCKET_INTERVAL));
        token.since(now)
    }

    /// Forgets the failures of a key.
    pub(crate) fn forget(&mut self, id: SetId) {
        self.failures.remove(&id);
    }

    /// Forgets everything of a key that is gone.
    pub(crate) fn drop_key(&mut self, id: SetId) {
        self.forget(id);
        self.dirty.remove(&id);
        self.processing.remove(&id);
        if let Some(time) = self.due_by_key.remove(&id) {
            self.due.remove(&(time, id));
        }
    }

    /// Queues what has become due.
    pub(crate) fn handle_timeout(&mut self, now: Timestamp) {
        while let Some((time, id)) = self.due.first().copied().filter(|(time, _)| *time <= now) {
            self.due.remove(&(time, id));
            self.due_by_key.remove(&id);
            self.add(id, Lane::Live);
        }
    }

    /// Returns the next key, and from here on counts it as being processed.
    pub(crate) fn take(&mut self) -> Option<SetId> {
        loop {
            self.turn += 1;
            let resync_first = self.turn.is_multiple_of(RESYNC_TURN);
            let id = if resync_first {
                self.resync.pop_front().or_else(|| self.live.pop_front())
            } else {
                self.live.pop_front().or_else(|| self.resync.pop_front())
            }?;
            // A key that moved to the live lane, or is gone, still stands in the other.
            if !self.processing.contains(&id) && self.dirty.remove(&id).is_some() {
                self.processing.insert(id);
                return Some(id);
            }
        }
    }

    /// Ends the processing of a key.
    pub(crate) fn done(&mut self, id: SetId) {
        self.processing.remove(&id);
        if let Some(lane) = self.dirty.get(&id).copied() {
            self.lane(lane).push_back(id);
        }
    }

    fn lane(&mut self, lane: Lane) -> &mut VecDeque<SetId> {
        match lane {
            Lane::Live => &mut self.live,
            Lane::Resync => &mut self.resync,
        }
    }

    /// Returns when the next delayed key becomes due.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(time, _)| *time)
    }

    /// Returns when this key becomes due.
    pub(crate) fn due(&self, id: SetId) -> Option<Timestamp> {
        self.due_by_key.get(&id).copied()
    }

    /// Returns how often this key has failed in a row.
    pub(crate) fn failures(&self, id: SetId) -> u32 {
        self.failures.get(&id).copied().unwrap_or(0)
    }

    /// Returns whether the key waits for a sync.
    pub(crate) fn is_queued(&self, id: SetId) -> bool {
        self.dirty.contains_key(&id)
    }

    /// Returns how many keys wait for a sync.
    pub(crate) fn depth(&self) -> usize {
        self.dirty.len()
    }

    /// Returns what was counted.
    pub(crate) const fn counters(&self) -> Counters {
        self.counters
    }

    /// Empties the queue, for a decision about one key.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
