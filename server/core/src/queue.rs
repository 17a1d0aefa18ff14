//! The ReplicaSets that are due for a sync, and when the others become due (spec 8).
//!
//! A key is queued once, no matter how often it is added. A key that is added during its sync is queued again after the sync. Live events
//! go before lists and resyncs, but every eighth key is from a list or a resync, so that nothing starves.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    held::Held,
    index::SetId,
    object::{Span, Timestamp},
};

/// The first delay of a backoff; each further delay is twice as long.
const BACKOFF_FIRST: Span = Span::millis(5);
/// The number of conflicts in a row that the server retries without a delay.
const CONFLICTS_AT_ONCE: u32 = 1;
/// The longest delay after a conflict.
const CONFLICT_BACKOFF_MAX: Span = Span::seconds(1);
/// The longest delay that the cluster may ask for. An overloaded API server asks for seconds.
const ASKED_MAX: Span = Span::seconds(60);
/// The time for which one retry reserves the bucket that all keys share: 10 a second.
const BUCKET_INTERVAL: Span = Span::millis(100);
/// The number of retries that the bucket holds.
const BUCKET_BURST: i64 = 100;
/// The memory of a key in one of the collections, in bytes.
const KEY_BYTES: usize = 64;
/// One in this number of keys is from a list or a resync.
const RESYNC_TURN: u64 = 8;

/// The cause for adding a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    Live,
    Resync,
}

/// The cause of a retry; the greater one counts if both apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Retry {
    /// The view has changed between a decision and its write: the server decides again.
    Conflict,
    /// A write was refused by the cluster or by a guard of the agent, or not answered. No event need show when that ends.
    Refused,
}

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    refusals: u32,
    conflicts: u32,
    /// The end of the delay that the cluster asked for.
    held_until: Timestamp,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    live: BTreeMap<u64, SetId>,
    resync: BTreeMap<u64, SetId>,
    pub(crate) now: Timestamp,
    pub(crate) dirty: BTreeMap<SetId, QueuedKey>,
    /// The keys whose sync runs, each with its begin.
    pub(crate) processing: BTreeMap<SetId, Timestamp>,
    due: BTreeSet<(Timestamp, SetId)>,
    due_by_key: HashMap<SetId, Timestamp>,
    failures: HashMap<SetId, Failures>,
    /// When the shared bucket has its next token.
    bucket: Option<Timestamp>,
    next_position: u64,
    turn: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedKey {
    priority: Priority,
    /// Its position among the keys of its priority; `None` while its sync runs.
    position: Option<u64>,
}

impl Queue {
    pub(crate) fn add(&mut self, id: SetId, priority: Priority) {
        let waiting = self.dirty.get(&id).copied();
        match waiting {
            None => {}
            Some(waiting) if waiting.priority == Priority::Resync && priority == Priority::Live => {
                let position = waiting.position;
                position.map(|position| self.resync.remove(&position));
            }
            Some(_) => return,
        }
        let key = QueuedKey {
            priority,
            position: (!self.processing.contains_key(&id)).then(|| self.append(id, priority)),
        };
        self.dirty.insert(id, key);
    }

    /// Queues a key after a delay; the earliest of several delays counts.
    pub(crate) fn add_after(&mut self, id: SetId, delay: Span) {
        if delay.0 <= 0 {
            return self.add(id, Priority::Live);
        }
        self.add_at(self.now.plus(delay), id);
    }

    fn add_at(&mut self, time: Timestamp, id: SetId) {
        let known = self.due_by_key.get(&id).copied();
        if known.is_some_and(|known| known <= time) {
            return;
        }
        known.map(|known| self.due.remove(&(known, id)));
        self.due_by_key.insert(id, time);
        self.due.insert((time, id));
    }

    /// Queues a key after its backoff, at most `max`, and after the delay that the cluster asked for. Until the end of that delay, nothing
    /// else queues the key. All retries but conflicts also wait for a token of the shared bucket. Returns the delay.
    pub(crate) fn retry(
        &mut self,
        id: SetId,
        (why, asked): (Retry, Option<Span>),
        max: Span,
    ) -> Span {
        let asked = asked.unwrap_or_default().min(ASKED_MAX);
        let failures = self.failures.entry(id).or_default();
        if asked.0 > 0 {
            failures.held_until = self.now.plus(asked);
        }
        let (count, max) = match why {
            Retry::Conflict => (&mut failures.conflicts, CONFLICT_BACKOFF_MAX),
            Retry::Refused => (&mut failures.refusals, max),
        };
        let before = *count;
        *count = before.saturating_add(1);
        let delay = if why == Retry::Conflict {
            let delayed = before.checked_sub(CONFLICTS_AT_ONCE);
            delayed.map_or(Span(0), backoff).min(max)
        } else {
            backoff(before).min(max).max(self.reserve())
        };
        let delay = delay.max(asked);
        self.add_after(id, delay);
        delay
    }

    /// Takes one token of the shared bucket, and returns the time until the token is available.
    fn reserve(&mut self) -> Span {
        let full = self.now.plus(Span(-BUCKET_INTERVAL.0 * (BUCKET_BURST - 1)));
        let token = self.bucket.map_or(full, |token| token.max(full));
        self.bucket = Some(token.plus(BUCKET_INTERVAL));
        token.since(self.now)
    }

    pub(crate) fn forget(&mut self, id: SetId) {
        // Most keys never fail, and an empty map needs no hashing.
        if !self.failures.is_empty() {
            self.failures.remove(&id);
        }
    }

    pub(crate) fn drop_key(&mut self, id: SetId) {
        self.forget(id);
        self.processing.remove(&id);
        if let Some(waiting) = self.dirty.remove(&id)
            && let Some(position) = waiting.position
        {
            self.waiting(waiting.priority).remove(&position);
        }
        if let Some(time) = self.due_by_key.remove(&id) {
            self.due.remove(&(time, id));
        }
    }

    pub(crate) fn handle_timeout(&mut self) {
        while let Some((time, id)) = self.due.first().copied()
            && time <= self.now
        {
            self.due.remove(&(time, id));
            self.due_by_key.remove(&id);
            self.add(id, Priority::Live);
        }
    }

    /// Returns the next key, and counts it as being processed from now on. Delays keys that the cluster asked to delay.
    pub(crate) fn take(&mut self) -> Option<SetId> {
        let now = self.now;
        loop {
            self.turn = self.turn.wrapping_add(1);
            let resync_first = self.turn.is_multiple_of(RESYNC_TURN) || self.live.is_empty();
            let priority = if resync_first && !self.resync.is_empty() {
                Priority::Resync
            } else {
                Priority::Live
            };
            let (_, id) = self.waiting(priority).pop_first()?;
            self.dirty.remove(&id);
            match self.failures.get(&id).map(|it| it.held_until) {
                Some(until) if until > now => self.add_at(until, id),
                Some(_) | None => {
                    self.processing.insert(id, now);
                    return Some(id);
                }
            }
        }
    }

    pub(crate) fn done(&mut self, id: SetId) {
        self.processing.remove(&id);
        if let Some(mut waiting) = self.dirty.get(&id).copied()
            && waiting.position.is_none()
        {
            waiting.position = Some(self.append(id, waiting.priority));
            self.dirty.insert(id, waiting);
        }
    }

    /// Returns the age of the oldest unfinished sync. The cost is a step for each.
    pub(crate) fn longest(&self, now: Timestamp) -> Option<Span> {
        let ages = self.processing.values().map(|begun| now.since(*begun));
        ages.max()
    }

    fn append(&mut self, id: SetId, priority: Priority) -> u64 {
        let position = self.next_position;
        self.next_position += 1;
        self.waiting(priority).insert(position, id);
        position
    }

    const fn waiting(&mut self, priority: Priority) -> &mut BTreeMap<u64, SetId> {
        match priority {
            Priority::Live => &mut self.live,
            Priority::Resync => &mut self.resync,
        }
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(time, _)| *time)
    }

    pub(crate) fn due(&self, id: SetId) -> Option<Timestamp> {
        self.due_by_key.get(&id).copied()
    }

    pub(crate) fn failures(&self, id: SetId) -> u32 {
        let failures = self.failures.get(&id).copied().unwrap_or_default();
        failures.refusals.saturating_add(failures.conflicts)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Held for Queue {
    fn bytes(&self) -> usize {
        let Self {
            live,
            resync,
            now: _,
            dirty,
            processing,
            due,
            due_by_key,
            failures,
            bucket: _,
            next_position: _,
            turn: _,
        } = self;
        let waiting = live.len() + resync.len() + dirty.len() + processing.len();
        let delayed = due.len() + due_by_key.capacity() + failures.capacity();
        (waiting + delayed) * KEY_BYTES
    }
}

/// Returns the delay after `others` earlier delays.
fn backoff(others: u32) -> Span {
    Span(BACKOFF_FIRST.0.saturating_mul(1_i64 << others.min(40)))
}
