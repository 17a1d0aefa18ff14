//! One kind of a cluster, listed and watched once per process, and distributed to the shards of the process.
//!
//! ```text
//! shard ──join──▶ Asking ──a list begins──▶ Listing ──its last page──▶ Listed ──fell behind, or gone──▶ Lost
//!                                           └─ events of its namespaces wait from here on ─┘
//! ```
//! Each shard has a [watch](crate::watch), like an agent without shards, with a [`Sharing`] in place of the API server. A list
//! serves all shards that requested it before it began, so it is as new as a shard's own list. Events wait for a shard from the start of
//! its list. An event that the list contains already is older than the list, and the shard's watch ignores it.
//!
//! **Invariant:** a shard misses no event of its namespaces after the version of its list, or is told to list again (410).
//! **Invariant:** no object is kept. A number bounds the waiting events of all shards together. The waiting pages of a list are bounded by
//! what the shard will hold of it.
//! **Invariant:** if the cluster shows a version older than the watch has reached, each shard learns both versions, and lists again.

mod queue;
mod split;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU16,
    task::Poll,
    time::Duration,
};

use jiff::Timestamp;

use self::queue::{ShardQueue, State};
use crate::{
    api::{ApiError, Kind, parse_version},
    backoff::{Backoff, after},
    shard::Shard,
    watch::{List, RETRY_MAX, RETRY_MIN, WatchEvent, WatchId},
};

/// How many events may wait for all shards together.
const EVENTS_MAX: usize = 64 * 1024;

/// The queue of one list of a shard, and of the events after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId {
    /// The number of the shard.
    pub shard: u16,
    number: u64,
}

/// The list and watch of one kind for many shards. Owned by one reader, which sends the requests and passes on the answers.
#[derive(Debug)]
pub struct Sharing {
    queues: BTreeMap<u16, ShardQueue>,
    /// How many shards the cluster has.
    shards: NonZeroU16,
    numbered: u64,
    /// The version up to which events were handed out; `None` if a list must come first.
    position: Option<String>,
    /// The value of `position` when the current list began.
    position_before: Option<String>,
    id: WatchId,
    watch_state: WatchState,
    /// Why the API server refuses the watch, until it opens again.
    outage: Option<ApiError>,
    watch_backoff: Backoff,
    /// When the next list may begin.
    list_due: Timestamp,
    list_backoff: Backoff,
    events_max: usize,
    /// The shards with news that nobody has taken.
    notified: BTreeSet<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchState {
    Closed { until: Timestamp },
    Opening,
    Open,
}

// === impl Sharing ===

impl Sharing {
    /// Creates the sharing of a kind among `shards`, without requests. The seed determines the jitter.
    #[must_use]
    pub fn new(kind: Kind, shards: NonZeroU16, seed: u64) -> Self {
        let seed = seed.wrapping_mul(2).wrapping_add(kind as u64);
        let backoff = Backoff::new(RETRY_MIN, RETRY_MAX, seed);
        Self {
            queues: BTreeMap::new(),
            shards,
            numbered: 0,
            position: None,
            position_before: None,
            id: WatchId(0),
            watch_state: WatchState::Closed {
                until: Timestamp::MIN,
            },
            outage: None,
            watch_backoff: backoff.clone(),
            list_due: Timestamp::MIN,
            list_backoff: backoff,
            events_max: EVENTS_MAX,
            notified: BTreeSet::new(),
        }
    }

    /// Notes that a shard requests a list. Its former queue is void.
    pub fn join(&mut self, shard: Shard) -> QueueId {
        self.numbered += 1;
        let id = QueueId {
            shard: shard.index(),
            number: self.numbered,
        };
        self.queues.insert(id.shard, ShardQueue::new(id.number));
        self.notified.insert(id.shard);
        id
    }

    /// Gives a queue up. Without queues there is no watch.
    pub fn leave(&mut self, id: QueueId) {
        if self.queue(id).is_none() {
            return;
        }
        self.queues.remove(&id.shard);
        self.settle();
    }

    /// Begins a list for all shards that wait for one; the request leaves after this call. Returns false if no shard waits, or if it is too
    /// early.
    pub fn begin_list(&mut self, now: Timestamp) -> bool {
        if self.list_timeout().is_none_or(|due| due > now) {
            return false;
        }
        self.position_before.clone_from(&self.position);
        for queue in self.queues.values_mut() {
            if queue.state == State::Asking {
                queue.state = State::Listing;
            }
        }
        true
    }

    /// Returns when [`begin_list`](Self::begin_list) is due.
    #[must_use]
    pub fn list_timeout(&self) -> Option<Timestamp> {
        let mut queues = self.queues.values();
        let is_asked = queues.any(|queue| queue.state == State::Asking);
        is_asked.then_some(self.list_due)
    }

    /// Takes a page of that list, or its error.
    pub fn handle_page(&mut self, now: Timestamp, page: Result<List, ApiError>) {
        let page = match page {
            Ok(page) => page,
            Err(error) => return self.fail_list(now, &error),
        };
        let (part, version) = (page.part, page.resource_version.clone());
        if part.begins() {
            let before = self.position_before.take();
            self.check_version(before.as_deref(), &version);
        }
        let listing = self.queues.iter();
        let listing = listing.filter(|(_, queue)| queue.state == State::Listing);
        let shares = split::list(page, self.shards, listing.map(|(shard, _)| *shard));
        for (shard, share) in shares {
            let queue = self.queues.get_mut(&shard);
            if queue.is_some_and(|queue| queue.push_page(share)) {
                self.notified.insert(shard);
            }
        }
        if part.ends() {
            self.list_backoff.reset();
            self.position.get_or_insert(version);
        }
    }

    /// Returns the watch to open, and the version after which it begins.
    pub fn poll_watch(&mut self, now: Timestamp) -> Option<(WatchId, String)> {
        let WatchState::Closed { until } = self.watch_state else {
            return None;
        };
        let from = self.position.clone().filter(|_| until <= now)?;
        self.id.0 += 1;
        self.watch_state = WatchState::Opening;
        Some((self.id, from))
    }

    /// Returns when [`poll_watch`](Self::poll_watch) is due.
    #[must_use]
    pub fn watch_timeout(&self) -> Option<Timestamp> {
        match self.watch_state {
            WatchState::Closed { until } if self.position.is_some() => Some(until),
            WatchState::Closed { .. } | WatchState::Opening | WatchState::Open => None,
        }
    }

    /// Returns whether a watch is still needed.
    #[must_use]
    pub fn is_current(&self, id: WatchId) -> bool {
        id == self.id && !matches!(self.watch_state, WatchState::Closed { .. })
    }

    /// Notes that a watch is open.
    pub fn handle_opened(&mut self, id: WatchId) {
        if self.is_current(id) {
            self.watch_state = WatchState::Open;
            self.outage = None;
            self.wake_all();
        }
    }

    /// Takes the next events of a watch.
    pub fn handle_events(&mut self, now: Timestamp, id: WatchId, events: Vec<WatchEvent>) {
        for event in events {
            if !self.is_current(id) {
                return;
            }
            if let WatchEvent::Error(error) = event {
                return self.handle_closed(now, id, Some(error));
            }
            self.hand_out(event);
        }
        self.watch_backoff.reset();
        self.keep_bound();
    }

    /// Takes the end of a watch, or its refusal. The watch continues where it ended; shards learn only of errors.
    pub fn handle_closed(&mut self, now: Timestamp, id: WatchId, error: Option<ApiError>) {
        if !self.is_current(id) {
            return;
        }
        if let Some(error) = error.as_ref().filter(|error| error.is_gone()) {
            return self.lose(None, error);
        }
        let asked = error.as_ref().map_or(Duration::ZERO, ApiError::retry_after);
        let until = after(now, self.watch_backoff.next_wait().max(asked));
        self.watch_state = WatchState::Closed { until };
        if error.is_some() {
            self.outage = error;
            self.wake_all();
        }
    }

    /// Returns the version that the watch has reached; `None` before the first list.
    #[must_use]
    pub fn position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// Takes a version that the cluster showed after the watch had reached `before`. An older version means that the cluster was restored.
    /// The shards then learn the version reached before, and list again.
    pub fn check_version(&mut self, before: Option<&str>, version: &str) {
        let [before, version] = [before, Some(version)].map(|it| it.and_then(parse_version));
        if version.is_some() && version < before {
            let text = "the cluster shows a version older than its watch has reached";
            self.lose(before, &gone(text));
        }
    }

    /// Returns the next page for a queue; `None` after the last.
    pub fn poll_page(&mut self, id: QueueId) -> Poll<Option<Result<List, ApiError>>> {
        self.queue(id)
            .map_or(Poll::Ready(None), ShardQueue::poll_page)
    }

    /// Waits until a shard that has seen all events up to `from` can read the events of a queue.
    ///
    /// # Errors
    /// If the API server refuses the watch, or the shard must list again.
    pub fn subscribe(&mut self, id: QueueId, from: &str) -> Poll<Result<(), ApiError>> {
        let (outage, is_open) = (self.outage.clone(), self.watch_state == WatchState::Open);
        match self.queue(id) {
            Some(queue) if queue.has_error() => Poll::Ready(Ok(())),
            Some(queue) if queue.continues(from) => match outage {
                Some(outage) => Poll::Ready(Err(outage)),
                None if is_open => Poll::Ready(Ok(())),
                None => Poll::Pending,
            },
            Some(_) | None => Poll::Ready(Err(gone("the events after this version are not kept"))),
        }
    }

    /// Returns the next events for a queue; `None` if the API server refused the watch.
    pub fn poll_events(&mut self, id: QueueId) -> Poll<Option<Vec<WatchEvent>>> {
        let is_out = self.outage.is_some();
        self.queue(id)
            .map_or(Poll::Ready(None), |queue| queue.poll_events(is_out))
    }

    /// Takes the shards with news.
    pub fn take_told(&mut self) -> BTreeSet<u16> {
        std::mem::take(&mut self.notified)
    }

    fn queue(&mut self, id: QueueId) -> Option<&mut ShardQueue> {
        let queue = self.queues.get_mut(&id.shard);
        queue.filter(|queue| queue.number == id.number)
    }

    /// Gives an event to its shard, or to all shards.
    fn hand_out(&mut self, event: WatchEvent) {
        let Some(version) = event.version() else {
            return;
        };
        if parse_version(version) > self.position.as_deref().and_then(parse_version) {
            self.position = Some(version.to_owned());
        }
        if let Some(shard) = split::owner(&event, self.shards) {
            let queue = self.queues.get_mut(&shard);
            if queue.is_some_and(|queue| queue.push_event(event)) {
                self.notified.insert(shard);
            }
            return;
        }
        for (shard, queue) in &mut self.queues {
            if queue.push_event(event.clone()) {
                self.notified.insert(*shard);
            }
        }
    }

    /// Makes the shards that are furthest behind list again, while too many events wait.
    fn keep_bound(&mut self) {
        let mut waiting: usize = self.queues.values().map(|it| it.events.len()).sum();
        while waiting > self.events_max {
            let longest = self.queues.iter_mut().max_by_key(|(_, it)| it.events.len());
            let Some((shard, queue)) = longest else {
                return;
            };
            waiting -= queue.events.len();
            queue.fall_behind(gone("the shard fell behind"));
            self.notified.insert(*shard);
            self.settle();
        }
    }

    /// Makes all shards list again, after they learn the version reached before.
    fn lose(&mut self, reached: Option<u64>, error: &ApiError) {
        for queue in self.queues.values_mut().filter(|queue| queue.is_fed()) {
            queue.lose(reached, error);
        }
        self.forget();
        self.wake_all();
    }

    /// Ends the watch. The next list determines where another watch begins.
    fn forget(&mut self) {
        self.position = None;
        self.outage = None;
        self.watch_state = WatchState::Closed {
            until: Timestamp::MIN,
        };
    }

    fn fail_list(&mut self, now: Timestamp, error: &ApiError) {
        let wait = self.list_backoff.next_wait().max(error.retry_after());
        self.list_due = after(now, wait);
        for (shard, queue) in &mut self.queues {
            if queue.state == State::Listing {
                queue.fail(error.clone());
                self.notified.insert(*shard);
            }
        }
        self.settle();
    }

    /// Ends the watch when no shard takes events.
    fn settle(&mut self) {
        if !self.queues.values().any(ShardQueue::is_fed) {
            self.forget();
        }
    }

    fn wake_all(&mut self) {
        self.notified.extend(self.queues.keys());
    }
}

/// The error that makes a shard list again.
fn gone(why: &str) -> ApiError {
    ApiError {
        code: Some(410),
        ..ApiError::no_answer(why)
    }
}

#[cfg(test)]
mod tests;
