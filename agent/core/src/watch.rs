//! The path of one kind from a list through its watch: the objects of the list, then each change in order, once.
//!
//! ```text
//! Idle ──start──▶ Listing ──listed──▶ Watching ──410──▶ Listing
//!                    ▲ backoff            │ ended: Watching again from the last version
//! ```
//! A list comes in pages. The first list of a session is passed on page by page, since no decision and no operation starts before its end.
//! A later list may run beside operations, so its pages are kept until the last has come.
//!
//! The shell performs the [`WatchCommand`]s. The number of a command tells input for a replaced command, which is ignored.

use std::time::Duration;

use jiff::Timestamp;

use self::packed_pods::PackedPods;
use crate::{
    api::{ApiError, InvalidObject, Kind, Object, ReplicaSet, parse_version},
    pace::{Backoff, TokenBucket, after},
};

/// The shortest wait after a failed list or watch.
const RETRY_MIN: Duration = Duration::from_millis(100);
/// The longest wait of a failing list or watch: it must not load a cluster that is down.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// The interval, and the burst, of lists that the server requests, with a session or a Resync. Each list reads the whole cluster. The first
/// is for the first session. One more may follow at once, since an honest server that restarts decides nothing before it has the lists.
const ASKED_EVERY: Duration = Duration::from_secs(10);
const ASKED_AT_ONCE: u32 = 2;

/// The interval, and the burst, of lists after a watch reports a gone version or unreadable data. An API server that reports this for each
/// watch must not get one list after the other.
const GONE_EVERY: Duration = Duration::from_secs(10);
const GONE_AT_ONCE: u32 = 3;

/// The number of a list or watch; answers to an older number are stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(pub u64);

/// A command to the shell for one kind. Each command ends the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchCommand {
    /// List all objects, from the newest state.
    List(WatchId),
    /// Watch from a version on.
    Watch {
        /// The number of this watch.
        id: WatchId,
        /// The version after which the watch begins.
        from: String,
    },
    /// Stop watching.
    Stop,
}

/// All objects of a kind, or a page of them.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// Which part of the list this is.
    pub part: Part,
    /// The objects.
    pub items: Items,
    /// The objects that cannot be read, and why.
    pub invalid: Vec<InvalidObject>,
    /// The version of the list, the same on all its pages.
    pub resource_version: String,
}

/// Which part of a list a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whether the page begins a list. Earlier pages of any list are void.
    pub begins: bool,
    /// Whether no page follows.
    pub ends: bool,
}

/// The objects of a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Items {
    /// The objects of a list of pods.
    Pods(PackedPods),
    /// The objects of a list of ReplicaSets.
    ReplicaSets(Vec<ReplicaSet>),
}

/// An event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// The object is new or changed.
    Applied(Object),
    /// A pod of a ReplicaSet is new, and no agent of this project made it.
    MadeByOther {
        /// The pod.
        object: Object,
        /// The pod's creator, as its managed fields name it.
        writer: String,
    },
    /// The object is gone; this is its last state.
    Deleted(Object),
    /// An object that cannot be read is new, changed or gone.
    Invalid {
        /// Why.
        error: InvalidObject,
        /// The version of the object.
        resource_version: String,
        /// The object with its names and version alone, if it does not count any more: it is gone, or is a ReplicaSet, which is left alone.
        left_out: Option<Object>,
    },
    /// There is no other event up to this version.
    Bookmark(String),
    /// The watch ends.
    Error(ApiError),
}

/// One kind's list and watch. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    state: State,
    id: WatchId,
    command: Option<WatchCommand>,
    backoff: Backoff,
    version: String,
    /// The time of the last news of the cluster.
    pub(crate) heard: Option<Timestamp>,
    /// The pages of a list that waits for its last page.
    kept: Option<List>,
    /// How many objects of the newest list were passed on, unreadable ones included.
    pub(crate) listed: usize,
    /// Whether a page of a list has come since it was idle.
    is_answered: bool,
    /// The rate of lists that the server requests.
    asked: TokenBucket,
    /// When the next requested list is due.
    due: Option<Timestamp>,
    /// The rate of lists after a version that is gone.
    gone: TokenBucket,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Listing,
    Watching,
    WaitingToList { until: Timestamp },
    WaitingToWatch { until: Timestamp },
}

impl Part {
    /// All of a list.
    pub const WHOLE: Self = Self {
        begins: true,
        ends: true,
    };
}

impl Items {
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Pods(_) => Kind::Pod,
            Self::ReplicaSets(_) => Kind::ReplicaSet,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Pods(pods) => pods.len(),
            Self::ReplicaSets(replica_sets) => replica_sets.len(),
        }
    }
}

impl List {
    /// Returns the number of objects, unreadable ones included.
    pub fn count(&self) -> usize {
        self.items.len() + self.invalid.len()
    }

    /// Returns this list with its next page, of the same kind; or the page alone if it begins another list.
    pub fn joined(mut self, page: Self) -> Self {
        if page.part.begins {
            return page;
        }
        self.part.ends = page.part.ends;
        match (&mut self.items, page.items) {
            (Items::Pods(pods), Items::Pods(more)) => pods.0.extend(more.0),
            (Items::ReplicaSets(sets), Items::ReplicaSets(more)) => sets.extend(more),
            (items, other) => *items = other,
        }
        self.invalid.extend(page.invalid);
        self.resource_version = page.resource_version;
        self
    }
}

impl WatchEvent {
    /// The version that the watch has reached with this event; `None` if the event ends the watch.
    fn version(&self) -> Option<&str> {
        match self {
            Self::Applied(object) | Self::MadeByOther { object, .. } | Self::Deleted(object) => {
                Some(object.resource_version())
            }
            Self::Invalid {
                resource_version, ..
            }
            | Self::Bookmark(resource_version) => Some(resource_version),
            Self::Error(_) => None,
        }
    }
}

impl Watch {
    /// Creates an idle watch. The kind and the seed determine its jitter.
    pub(crate) const fn new(kind: Kind, seed: u64) -> Self {
        let seed = seed.wrapping_mul(2).wrapping_add(kind as u64);
        Self {
            state: State::Idle,
            id: WatchId(0),
            command: None,
            backoff: Backoff::new(RETRY_MIN, RETRY_MAX, seed),
            version: String::new(),
            heard: None,
            kept: None,
            listed: 0,
            is_answered: false,
            asked: TokenBucket::new(ASKED_EVERY, ASKED_AT_ONCE),
            due: None,
            gone: TokenBucket::new(GONE_EVERY, GONE_AT_ONCE),
        }
    }

    /// Lists from the start, in any state.
    pub(crate) fn start(&mut self) {
        self.id.0 += 1;
        self.kept = None;
        self.state = State::Listing;
        self.command = Some(WatchCommand::List(self.id));
    }

    /// Lists because the server requests it: at once, or when the rate allows. Until then the watch continues.
    pub(crate) fn request(&mut self, now: Timestamp) {
        self.due = Some(self.asked.next(now));
        self.handle_timeout(now);
    }

    /// Ends the list or watch.
    pub(crate) fn stop(&mut self) {
        self.id.0 += 1;
        if self.state != State::Idle {
            self.command = Some(WatchCommand::Stop);
        }
        self.state = State::Idle;
        self.version.clear();
        (self.heard, self.kept, self.due) = (None, None, None);
        self.is_answered = false;
    }

    /// Takes a list that is [under way](Self::is_listing), or its next page. The list must not be older than `own_write`, the agent's newest
    /// write. Returns what to pass on: the page, in the first list since [`stop`](Self::stop), or the whole list with its last page.
    pub(crate) fn handle_listed(
        &mut self,
        now: Timestamp,
        list: Result<List, ApiError>,
        own_write: Option<u64>,
    ) -> Option<List> {
        let fresh = |list: &List| own_write <= parse_version(&list.resource_version).or(own_write);
        let asked = list.as_ref().err().map(ApiError::retry_after);
        let Some(page) = list.ok().filter(fresh) else {
            let wait = self.backoff.next_wait().max(asked.unwrap_or_default());
            let until = after(now, wait);
            (self.state, self.kept) = (State::WaitingToList { until }, None);
            return None;
        };
        self.is_answered = true;
        let (is_last, is_first_list) = (page.part.ends, self.heard.is_none());
        let list = match self.kept.take() {
            Some(kept) => kept.joined(page),
            None => page,
        };
        if !is_last && !is_first_list {
            self.kept = Some(list);
            return None;
        }
        let before = if list.part.begins { 0 } else { self.listed };
        self.listed = before + list.count();
        if !is_last {
            return Some(list);
        }
        self.backoff.reset();
        self.heard = Some(now);
        self.version.clone_from(&list.resource_version);
        self.watch();
        Some(list)
    }

    /// Takes an event. Returns it if it is news about objects.
    pub(crate) fn handle_event(
        &mut self,
        now: Timestamp,
        id: WatchId,
        event: WatchEvent,
    ) -> Option<WatchEvent> {
        if id != self.id || self.state != State::Watching {
            return None;
        }
        if let WatchEvent::Error(error) = &event {
            self.handle_closed(now, id, Some(error));
            return None;
        }
        let version = event.version().unwrap_or_default();
        self.heard = Some(now);
        // A version that cannot be compared is news.
        if parse_version(version).is_some_and(|version| Some(version) <= self.version()) {
            return None;
        }
        self.backoff.reset();
        version.clone_into(&mut self.version);
        Some(event)
    }

    /// Takes the end of a watch, or its refusal.
    pub(crate) fn handle_closed(&mut self, now: Timestamp, id: WatchId, error: Option<&ApiError>) {
        if id != self.id || self.state != State::Watching {
            return;
        }
        let asked = error.map(ApiError::retry_after).unwrap_or_default();
        let until = after(now, self.backoff.next_wait().max(asked));
        self.state = if error.is_some_and(ApiError::is_gone) {
            let until = self.gone.next(until);
            self.gone.take(until);
            State::WaitingToList { until }
        } else {
            State::WaitingToWatch { until }
        };
    }

    /// Continues after a wait.
    pub(crate) fn handle_timeout(&mut self, now: Timestamp) {
        if self.due.is_some_and(|due| due <= now) {
            self.asked.take(now);
            self.due = None;
            return self.start();
        }
        match self.state {
            State::WaitingToList { until } if until <= now => self.start(),
            State::WaitingToWatch { until } if until <= now => self.watch(),
            State::Idle
            | State::Listing
            | State::Watching
            | State::WaitingToList { .. }
            | State::WaitingToWatch { .. } => {}
        }
    }

    pub(crate) const fn poll_command(&mut self) -> Option<WatchCommand> {
        self.command.take()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        let waits = match self.state {
            State::WaitingToList { until } | State::WaitingToWatch { until } => Some(until),
            State::Idle | State::Listing | State::Watching => None,
        };
        waits.into_iter().chain(self.due).min()
    }

    /// Returns the newest version seen since the last list; `None` before it.
    pub(crate) fn version(&self) -> Option<u64> {
        parse_version(&self.version)
    }

    pub(crate) fn is_listing(&self, id: WatchId) -> bool {
        id == self.id && self.state == State::Listing
    }

    /// Returns whether its first list is under way, and no page of it has come.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.state != State::Idle && !self.is_answered
    }

    fn watch(&mut self) {
        self.id.0 += 1;
        self.state = State::Watching;
        self.command = Some(WatchCommand::Watch {
            id: self.id,
            from: self.version.clone(),
        });
    }
}

pub mod history;
pub mod packed_pods;
