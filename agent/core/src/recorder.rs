//! Kubernetes events about creates and deletes, as `kubectl describe` shows them with upstream's words (spec 9.1), and about the budget.
//!
//! As upstream, a ReplicaSet gets 25 events of each type and then one every 5 minutes; those of a rare reason have as large a share of their
//! own. A repeated event only gets a higher count. After ten different messages of one reason within 10 minutes, further messages are counted
//! on one event that says so. Events are for people: any event may be lost, and no pod waits for one.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    time::Duration,
};

use decree_api::v1;
use jiff::Timestamp;

use crate::pace::{TokenBucket, since};

/// The events of a type that a ReplicaSet gets at once, and the interval of further ones.
const BURST: u32 = 25;
const EVERY: Duration = Duration::from_secs(300);
/// The messages of one reason before further messages are counted together, and how long a reason is remembered.
const MESSAGES_MAX: usize = 10;
const REMEMBERED: Duration = Duration::from_secs(600);
/// How many of the ReplicaSets and of the events that were used last are remembered at least. Of others, the counts begin at 1 again.
const ENTRIES_MAX: usize = 4_096;
const COMBINED: &str = "(combined from similar events): ";

/// An answered create or delete, a change of the budget, or a change of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The object of the note: a ReplicaSet, unless the reason [concerns the cluster](Reason::concerns_cluster).
    pub object: v1::ObjectRef,
    /// The reason of the event.
    pub reason: Reason,
    /// The message of the event, a sentence.
    pub message: String,
}

/// The reasons of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A pod was created.
    SuccessfulCreate,
    /// A pod could not be created.
    FailedCreate,
    /// A pod was deleted.
    SuccessfulDelete,
    /// A pod could not be deleted.
    FailedDelete,
    /// More creates or deletes in a minute than the [budget](crate::budget) allows, started or not.
    BudgetExceeded,
    /// Another controller creates pods of the ReplicaSet.
    OtherController,
    /// A person resumed creates or deletes.
    BudgetResumed,
    /// Pods of the ReplicaSet ended soon after they were created, and only a few are created.
    PodsDoNotLast,
    /// Many pods of the ReplicaSet have no node, and only a few are created.
    CreatesAreSlow,
    /// The versions of the cluster went back ([`history`](crate::watch::history)).
    VersionsWentBack,
}

/// An event, to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name of the event in its [`namespace`](Self::namespace).
    pub name: String,
    /// The group and version of ReplicaSets.
    pub api_version: String,
    /// The object of the event: a ReplicaSet, unless the reason [concerns the cluster](Reason::concerns_cluster).
    pub object: v1::ObjectRef,
    /// The reason.
    pub reason: Reason,
    /// The message, a sentence.
    pub message: String,
    /// When it happened first.
    pub first: Timestamp,
    /// When it happened last.
    pub last: Timestamp,
    /// How often it happened. From 2 on, the event exists already: only its count, last time and message change.
    pub count: u32,
    /// The instance that runs the controller.
    pub instance: String,
}

/// Turns notes into events. Owned by the shell.
#[derive(Debug)]
pub struct Recorder {
    /// The group and version of the ReplicaSets that the events are about.
    api_version: String,
    /// The instance that runs this controller, in each event.
    instance: String,
    last: u64,
    /// By the uid of the ReplicaSet and the type of the events; of rare ones, the reason.
    buckets: Recent<(String, &'static str), TokenBucket>,
    messages: Recent<(String, Reason), Messages>,
    written: Recent<(String, Reason, String), Written>,
}

/// Values by key. Once `max` values were used, those that are not among them are forgotten with the next `max`.
#[derive(Debug)]
struct Recent<K, V> {
    max: usize,
    used: HashMap<K, V>,
    before: HashMap<K, V>,
}

#[derive(Debug, Default)]
struct Messages {
    last: Timestamp,
    seen: HashSet<String>,
}

#[derive(Clone, Debug)]
struct Written {
    name: String,
    first: Timestamp,
    count: u32,
}

impl Event {
    /// Returns the namespace of the event's object; `default` for the cluster.
    pub fn namespace(&self) -> &str {
        if self.reason.concerns_cluster() {
            "default"
        } else {
            &self.object.namespace
        }
    }
}

impl Reason {
    /// Returns upstream's word, if it has one.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SuccessfulCreate => "SuccessfulCreate",
            Self::FailedCreate => "FailedCreate",
            Self::SuccessfulDelete => "SuccessfulDelete",
            Self::FailedDelete => "FailedDelete",
            Self::BudgetExceeded => "BudgetExceeded",
            Self::OtherController => "OtherController",
            Self::BudgetResumed => "BudgetResumed",
            Self::PodsDoNotLast => "PodsDoNotLast",
            Self::CreatesAreSlow => "CreatesAreSlow",
            Self::VersionsWentBack => "VersionsWentBack",
        }
    }

    /// Returns the type of an event of this reason.
    pub const fn event_type(self) -> &'static str {
        if let Self::SuccessfulCreate | Self::SuccessfulDelete | Self::BudgetResumed = self {
            "Normal"
        } else {
            "Warning"
        }
    }

    /// Returns whether the object of such an event is the namespace kube-system, which represents the cluster, and no ReplicaSet.
    pub const fn concerns_cluster(self) -> bool {
        matches!(self, Self::VersionsWentBack)
    }

    /// True for a rare reason. Its events have a share of their own, because a person must learn of them. The budget reports once a minute for
    /// a scope and once a hold for a ReplicaSet, and an honest server once a grant. A session ends when versions go back.
    pub(crate) const fn is_rare(self) -> bool {
        matches!(
            self,
            Self::BudgetExceeded
                | Self::OtherController
                | Self::BudgetResumed
                | Self::PodsDoNotLast
                | Self::VersionsWentBack
        )
    }
}

impl<K: Eq + Hash, V> Recent<K, V> {
    fn new(max: usize) -> Self {
        Self {
            max,
            used: HashMap::new(),
            before: HashMap::new(),
        }
    }

    /// The value of a key, made if absent.
    fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if !self.used.contains_key(&key) && self.used.len() >= self.max {
            self.before = std::mem::take(&mut self.used);
        }
        let before = self.before.remove(&key);
        self.used
            .entry(key)
            .or_insert_with(|| before.unwrap_or_else(make))
    }
}

impl Recorder {
    /// Creates a recorder for this process, and for ReplicaSets of a group and version.
    pub fn new(instance: impl Into<String>, api_version: impl Into<String>) -> Self {
        Self {
            api_version: api_version.into(),
            instance: instance.into(),
            last: 0,
            buckets: Recent::new(ENTRIES_MAX),
            messages: Recent::new(ENTRIES_MAX),
            written: Recent::new(ENTRIES_MAX),
        }
    }

    /// Takes a note. Returns the event to write; `None` if its ReplicaSet has had its share.
    pub fn handle_note(&mut self, now: Timestamp, note: Note) -> Option<Event> {
        let Note {
            object,
            reason,
            message,
        } = note;
        let (key, message) = self.combine(now, &object.uid, reason, message);
        let share = if reason.is_rare() {
            reason.as_str()
        } else {
            reason.event_type()
        };
        let of_share = (object.uid.clone(), share);
        let full = || TokenBucket::new(EVERY, BURST);
        let bucket = self.buckets.get_or_insert_with(of_share, full);
        if !bucket.try_take(now) {
            return None;
        }
        let written = self.count(now, &object, (reason, key));
        Some(Event {
            name: written.name,
            api_version: self.api_version.clone(),
            object,
            reason,
            message,
            first: written.first,
            last: now,
            count: written.count,
            instance: self.instance.clone(),
        })
    }

    /// The identity of the event, and its message: its own, or one for many.
    fn combine(
        &mut self,
        now: Timestamp,
        uid: &str,
        reason: Reason,
        message: String,
    ) -> (String, String) {
        let key = (uid.to_owned(), reason);
        let messages = self.messages.get_or_insert_with(key, Messages::default);
        if since(now, messages.last) > REMEMBERED {
            messages.seen.clear();
        }
        messages.last = now;
        if messages.seen.contains(&message) || messages.seen.len() + 1 < MESSAGES_MAX {
            messages.seen.insert(message.clone());
            return (message.clone(), message);
        }
        (COMBINED.into(), format!("{COMBINED}{message}"))
    }

    fn count(
        &mut self,
        now: Timestamp,
        object: &v1::ObjectRef,
        (reason, key): (Reason, String),
    ) -> Written {
        let last = &mut self.last;
        let fresh = || {
            *last += 1;
            let unique = now.as_nanosecond().unsigned_abs() + u128::from(*last);
            Written {
                name: format!("{}.{unique:x}", object.name),
                first: now,
                count: 0,
            }
        };
        let key = (object.uid.clone(), reason, key);
        let written = self.written.get_or_insert_with(key, fresh);
        written.count = written.count.saturating_add(1);
        written.clone()
    }
}

#[cfg(test)]
mod tests;
