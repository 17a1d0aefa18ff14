//! One kind of a cluster, listed and watched once by a process, and handed out to the shards that the process serves.
//!
//! ```text
//! shard ──join──▶ Asking ──a list begins──▶ Listing ──its last page──▶ Listed ──fell behind, or gone──▶ Lost
//!                                           └─ events of its namespaces wait from here on ─┘
//! ```
//! Each shard has a [`Watch`](crate::watch::Watch) as an agent without shards has; a [`Sharing`] stands in for the API server. A list serves
//! all shards that asked before it began, so it is as new as a list that a shard makes by itself. Events wait for a shard from the moment
//! that its list begins: an event that the list contains already is older than the list, and the shard's watch ignores it.
//!
//! **Invariant:** a shard misses no event of its namespaces after the version of its list, or is told to list anew (410).
//! **Invariant:** no object is kept. What waits is bounded: the events that wait for all shards together by a number, and the pages of a list
//! by what the shard will hold of it.
//! **Invariant:** where the cluster shows a version older than the watch has reached, each shard hears of both, and lists anew.

mod place;
mod split;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU16,
    time::Duration,
};

use jiff::Timestamp;

pub use self::place::Next;
use self::{
    place::{Place, State},
    split::Splitter,
};
use crate::{
    api::{ApiError, Kind, parse_version},
    backoff::{Backoff, after},
    shard::Shard,
    watch::{List, WatchEvent, WatchId},
};

/// How many events may wait for all shards together.
const EVENTS_MAX: usize = 64 * 1024;
/// How soon a watch that ended is opened again.
const RETRY_MIN: Duration = Duration::from_millis(100);
/// How long a watch that keeps failing waits at most.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// The place of one list of a shard, and of the events after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId {
    shard: u16,
    number: u64,
}

/// What a shard's request to watch comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subscribed {
    /// Events can be read.
    Ready,
    /// The watch is about to open.
    Pending,
    /// The API server refuses the watch, or the shard must list anew.
    Refused(ApiError),
}

/// One kind's list and watch for many shards. Owned by one reader, which asks the API server and passes on what it answers.
#[derive(Debug)]
pub struct Sharing {
    places: BTreeMap<u16, Place>,
    splitter: Splitter,
    numbered: u64,
    /// Up to which version the watch has been handed out; `None` where a list must come first.
    position: Option<String>,
    /// The same when the list that is under way began.
    position_before: Option<String>,
    id: WatchId,
    stream: Stream,
    /// Why the API server refuses the watch, until it opens again.
    outage: Option<ApiError>,
    watch_backoff: Backoff,
    /// When the next list may begin.
    list_due: Timestamp,
    list_backoff: Backoff,
    events_max: usize,
    /// The shards for which there is news.
    told: BTreeSet<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Closed { until: Timestamp },
    Opening,
    Open,
}

// === impl PlaceId ===

impl PlaceId {
    /// Returns the number of the shard.
    #[must_use]
    pub const fn shard(self) -> u16 {
        self.shard
    }
}

// === impl Sharing ===

impl Sharing {
    /// Returns the sharing of a kind among so many shards, none of which has asked for anything. The seed makes its jitter its own.
    #[must_use]
    pub fn new(kind: Kind, shards: NonZeroU16, seed: u64) -> Self {
        let seed = seed.wrapping_mul(2).wrapping_add(kind as u64);
        let backoff = Backoff::new(RETRY_MIN, RETRY_MAX, seed);
        Self {
            places: BTreeMap::new(),
            splitter: Splitter::new(kind, shards),
            numbered: 0,
            position: None,
            position_before: None,
            id: WatchId(0),
            stream: Stream::Closed {
                until: Timestamp::MIN,
            },
            outage: None,
            watch_backoff: backoff.clone(),
            list_due: Timestamp::MIN,
            list_backoff: backoff,
            events_max: EVENTS_MAX,
            told: BTreeSet::new(),
        }
    }

    /// Notes that a shard asks for a list. Its place before this one is void.
    pub fn join(&mut self, shard: Shard) -> PlaceId {
        self.numbered += 1;
        let id = PlaceId {
            shard: shard.index(),
            number: self.numbered,
        };
        self.places.insert(id.shard, Place::new(id.number));
        self.told.insert(id.shard);
        id
    }

    /// Gives a place up. Without places nothing is watched.
    pub fn leave(&mut self, id: PlaceId) {
        if self.place(id).is_none() {
            return;
        }
        self.places.remove(&id.shard);
        self.settle();
    }

    /// Begins a list, which is asked for after this, for all shards that wait for one. Returns whether there are any, and it is time.
    pub fn begin_list(&mut self, now: Timestamp) -> bool {
        if self.list_timeout().is_none_or(|due| due > now) {
            return false;
        }
        self.position_before.clone_from(&self.position);
        for place in self.places.values_mut() {
            if place.state == State::Asking {
                place.state = State::Listing;
            }
        }
        true
    }

    /// Returns when [`begin_list`](Self::begin_list) is due.
    #[must_use]
    pub fn list_timeout(&self) -> Option<Timestamp> {
        let mut places = self.places.values();
        places
            .any(|place| place.state == State::Asking)
            .then_some(self.list_due)
    }

    /// Takes a page of that list, or why there is none.
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
        let listing = self.places.iter();
        let listing = listing.filter(|(_, place)| place.state == State::Listing);
        let listing = listing.map(|(shard, _)| *shard).collect();
        let mut shares = self.splitter.list(page, &listing);
        for shard in listing {
            let share = shares.remove(&shard);
            let share = share.unwrap_or_else(|| self.splitter.empty(part, &version));
            let place = self.places.get_mut(&shard);
            if place.is_some_and(|place| place.push_page(share)) {
                self.told.insert(shard);
            }
        }
        if part.ends() {
            self.list_backoff.reset();
            self.position.get_or_insert(version);
        }
    }

    /// Returns the watch to open, and the version after which it begins.
    pub fn poll_watch(&mut self, now: Timestamp) -> Option<(WatchId, String)> {
        let Stream::Closed { until } = self.stream else {
            return None;
        };
        let from = self.position.clone().filter(|_| until <= now)?;
        self.id.0 += 1;
        self.stream = Stream::Opening;
        Some((self.id, from))
    }

    /// Returns when [`poll_watch`](Self::poll_watch) is due.
    #[must_use]
    pub fn watch_timeout(&self) -> Option<Timestamp> {
        match self.stream {
            Stream::Closed { until } if self.position.is_some() => Some(until),
            Stream::Closed { .. } | Stream::Opening | Stream::Open => None,
        }
    }

    /// Returns whether a watch is still wanted.
    #[must_use]
    pub fn is_current(&self, id: WatchId) -> bool {
        id == self.id && !matches!(self.stream, Stream::Closed { .. })
    }

    /// Notes that a watch is open.
    pub fn handle_opened(&mut self, id: WatchId) {
        if self.is_current(id) {
            self.stream = Stream::Open;
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

    /// Takes the end of a watch, or its refusal. The watch goes on where it ended; shards hear of errors alone.
    pub fn handle_closed(&mut self, now: Timestamp, id: WatchId, error: Option<ApiError>) {
        if !self.is_current(id) {
            return;
        }
        if let Some(error) = error.as_ref().filter(|error| error.is_gone()) {
            return self.lose(None, error);
        }
        let asked = error.as_ref().map(ApiError::retry_after);
        let wait = self
            .watch_backoff
            .next_wait()
            .max(asked.unwrap_or_default());
        self.stream = Stream::Closed {
            until: after(now, wait),
        };
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

    /// Takes a version that the cluster showed when it was asked after the watch had reached `before`. An older one means that the cluster was
    /// restored: the shards are told of what had been reached, and list anew.
    pub fn check_version(&mut self, before: Option<&str>, version: &str) {
        let [before, version] = [before, Some(version)].map(|it| it.and_then(parse_version));
        if version.is_some() && version < before {
            let text = "the cluster shows a version older than its watch has reached";
            self.lose(before, &gone(text));
        }
    }

    /// Returns the next page for a place.
    pub fn poll_page(&mut self, id: PlaceId) -> Next<Result<List, ApiError>> {
        self.place(id).map_or(Next::End, Place::poll_page)
    }

    /// Returns whether the events of a place can be read by who has seen all up to `from`.
    pub fn subscribe(&mut self, id: PlaceId, from: &str) -> Subscribed {
        let (outage, is_open) = (self.outage.clone(), self.stream == Stream::Open);
        match (self.place(id), outage) {
            (Some(place), _) if place.has_error() => Subscribed::Ready,
            (Some(place), None) if place.continues(from) && is_open => Subscribed::Ready,
            (Some(place), None) if place.continues(from) => Subscribed::Pending,
            (Some(place), Some(outage)) if place.continues(from) => Subscribed::Refused(outage),
            (Some(_) | None, _) => {
                Subscribed::Refused(gone("the events after this version are not kept"))
            }
        }
    }

    /// Returns the next events for a place; the end where the watch was refused.
    pub fn poll_events(&mut self, id: PlaceId) -> Next<Vec<WatchEvent>> {
        let is_out = self.outage.is_some();
        self.place(id)
            .map_or(Next::End, |place| place.poll_events(is_out))
    }

    /// Takes the shards for which there is news.
    pub fn take_told(&mut self) -> BTreeSet<u16> {
        std::mem::take(&mut self.told)
    }

    fn place(&mut self, id: PlaceId) -> Option<&mut Place> {
        let place = self.places.get_mut(&id.shard);
        place.filter(|place| place.number == id.number)
    }

    /// Hands out an event to the shard that it concerns, or to all.
    fn hand_out(&mut self, event: WatchEvent) {
        let Some(version) = event.version() else {
            return;
        };
        if parse_version(version) > self.position.as_deref().and_then(parse_version) {
            self.position = Some(version.to_owned());
        }
        let owner = self.splitter.owner(&event);
        let (told, places) = (&mut self.told, &mut self.places);
        if let Some(shard) = owner {
            if places
                .get_mut(&shard)
                .is_some_and(|place| place.push_event(event))
            {
                told.insert(shard);
            }
            return;
        }
        for (shard, place) in places {
            if place.push_event(event.clone()) {
                told.insert(*shard);
            }
        }
    }

    /// Has the shards list anew that are furthest behind, while too many events wait.
    fn keep_bound(&mut self) {
        let mut waiting: usize = self.places.values().map(Place::waiting).sum();
        while waiting > self.events_max {
            let longest = self.places.iter_mut().max_by_key(|(_, it)| it.waiting());
            let Some((shard, place)) = longest else {
                return;
            };
            waiting -= place.waiting();
            place.fall_behind(gone("the shard fell behind"));
            self.told.insert(*shard);
            self.settle();
        }
    }

    /// Has all shards list anew, after they are told of a version that the cluster had reached.
    fn lose(&mut self, reached: Option<u64>, error: &ApiError) {
        for place in self.places.values_mut().filter(|place| place.is_fed()) {
            place.lose(reached, error);
        }
        self.forget();
        self.wake_all();
    }

    /// Ends the watch. The next list says from where on there is another.
    fn forget(&mut self) {
        self.position = None;
        self.outage = None;
        self.stream = Stream::Closed {
            until: Timestamp::MIN,
        };
    }

    fn fail_list(&mut self, now: Timestamp, error: &ApiError) {
        let wait = self.list_backoff.next_wait().max(error.retry_after());
        self.list_due = after(now, wait);
        for (shard, place) in &mut self.places {
            if place.state == State::Listing {
                place.fail(error.clone());
                self.told.insert(*shard);
            }
        }
        self.settle();
    }

    /// Ends the watch when no shard takes events.
    fn settle(&mut self) {
        if !self.places.values().any(Place::is_fed) {
            self.forget();
        }
    }

    fn wake_all(&mut self) {
        self.told.extend(self.places.keys());
    }
}

/// The error that has a shard list anew.
fn gone(why: &str) -> ApiError {
    ApiError {
        code: Some(410),
        ..ApiError::no_answer(why)
    }
}

#[cfg(test)]
mod tests;
