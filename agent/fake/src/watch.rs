//! Watches: one bounded log of changes per kind, and readers with a position in it.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::json;

use crate::{Object, error::ApiError, kind::Kind, object};

/// The position of a watch that ends with 410.
const EXPIRED: u64 = u64::MAX;

/// The number of an open watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(u64);

/// The output of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchPoll {
    /// The next event.
    Event(WatchEvent),
    /// The watch has ended, because its next changes are forgotten.
    Expired(ApiError),
    /// No event yet.
    Pending,
    /// The watch has ended: it was dropped or closed, or has expired.
    Closed,
}

/// The effect of a restored store ([`crate::Cluster::put_back`]) on open watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenWatches {
    /// They end, as after a stop of the API server. A watch that begins in the future is refused.
    Closed,
    /// They stay silent until the store passes the version that it had reached. The same holds for a watch that begins in the future.
    Silent,
    /// They end with the status 410. A watch that begins in the future is refused.
    Expired,
}

/// The kind of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// The object is new.
    Added,
    /// The object has changed.
    Modified,
    /// The object is gone; the event has its last state, with the version of the deletion.
    Deleted,
    /// Everything up to `metadata.resourceVersion` has been delivered; the object has no other field.
    Bookmark,
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchEvent {
    /// The kind of the event.
    pub kind: EventKind,
    /// The object.
    pub object: Object,
}

/// The changes of one kind, newest last, and the position of the first.
#[derive(Clone, Debug, Default)]
struct Log {
    entries: VecDeque<Entry>,
    /// The position of the first entry, counted from the first change ever.
    first: u64,
    /// Changes up to this version are dropped.
    compacted: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    version: u64,
    event: WatchEvent,
}

#[derive(Clone, Debug)]
struct WatchReader {
    kind: Kind,
    /// The position of the next entry.
    next: u64,
    /// Objects up to this version were delivered, or never will be.
    delivered: u64,
    bookmark_asked: bool,
    bookmarked: Timestamp,
}

#[derive(Clone, Debug)]
pub(crate) struct Watches {
    logs: [Log; 5],
    readers: BTreeMap<WatchId, WatchReader>,
    log_max: usize,
    bookmark_every: Duration,
    opened: u64,
    /// Whether a watch may begin in the future.
    are_patient: bool,
}

impl Log {
    fn push(&mut self, entry: Entry, log_max: usize) {
        self.entries.push_back(entry);
        while self.entries.len() > log_max {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.first += 1;
            self.compacted = entry.version;
        }
    }

    fn position_after(&self, version: u64) -> u64 {
        let is_known = |entry: &Entry| entry.version <= version;
        self.first + self.entries.partition_point(is_known) as u64
    }

    /// The position of the next change.
    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn get(&self, position: u64) -> Option<&Entry> {
        let index = position.checked_sub(self.first)?;
        self.entries.get(usize::try_from(index).ok()?)
    }
}

impl Watches {
    pub(crate) fn new(log_max: usize, bookmark_every: Duration) -> Self {
        Self {
            logs: Default::default(),
            readers: BTreeMap::new(),
            log_max,
            bookmark_every,
            opened: 0,
            are_patient: false,
        }
    }

    pub(crate) fn record(&mut self, kind: Kind, event: WatchEvent) {
        let version = object::version(&event.object);
        self.logs[kind.index()].push(Entry { version, event }, self.log_max);
    }

    /// Opens a watch from a version.
    pub(crate) fn open(
        &mut self,
        kind: Kind,
        from: u64,
        now: Timestamp,
        version: u64,
    ) -> Result<WatchId, ApiError> {
        let log = &self.logs[kind.index()];
        let next = match from {
            from if from < log.compacted => return Err(ApiError::expired(from, log.compacted)),
            from if from > version && !self.are_patient => {
                return Err(ApiError::too_large_version(from, version));
            }
            from => log.position_after(from),
        };
        self.opened += 1;
        let id = WatchId(self.opened);
        let reader = WatchReader {
            kind,
            next,
            delivered: from,
            bookmark_asked: false,
            bookmarked: now,
        };
        self.readers.insert(id, reader);
        Ok(id)
    }

    pub(crate) fn close(&mut self, id: WatchId) {
        self.readers.remove(&id);
    }

    pub(crate) fn close_all(&mut self, kind: Kind) {
        self.readers.retain(|_, reader| reader.kind != kind);
    }

    pub(crate) fn compact(&mut self, kind: Kind, version: u64) {
        let log = &mut self.logs[kind.index()];
        while !log.entries.is_empty() {
            log.forget_first();
        }
        log.compacted = version;
    }

    /// Restores the logs. The store had reached the version `reached`, after which the watches that stay expect the next change.
    pub(crate) fn put_back(&mut self, backup: &Self, reached: u64, open: OpenWatches) {
        self.logs.clone_from(&backup.logs);
        self.are_patient = open == OpenWatches::Silent;
        if open == OpenWatches::Closed {
            self.readers.clear();
        }
        for reader in self.readers.values_mut() {
            if open == OpenWatches::Silent {
                reader.next = self.logs[reader.kind.index()].end();
                reader.delivered = reached;
            } else {
                reader.next = EXPIRED;
            }
        }
    }

    pub(crate) fn ask_for_bookmarks(&mut self) {
        for reader in self.readers.values_mut() {
            reader.bookmark_asked = true;
        }
    }

    pub(crate) fn poll(&mut self, id: WatchId, now: Timestamp, version: u64) -> WatchPoll {
        let Some(reader) = self.readers.get_mut(&id) else {
            return WatchPoll::Closed;
        };
        let log = &self.logs[reader.kind.index()];
        if reader.next < log.first || reader.next == EXPIRED {
            let error = ApiError::expired(log.compacted, log.compacted);
            self.readers.remove(&id);
            return WatchPoll::Expired(error);
        }
        while let Some(entry) = log.get(reader.next)
            && entry.version <= reader.delivered
        {
            reader.next += 1;
        }
        match log.get(reader.next) {
            Some(entry) => {
                reader.next += 1;
                WatchPoll::Event(entry.event.clone())
            }
            None => reader.poll_bookmark(now, version, self.bookmark_every),
        }
    }
}

impl WatchReader {
    fn poll_bookmark(
        &mut self,
        now: Timestamp,
        version: u64,
        bookmark_every: Duration,
    ) -> WatchPoll {
        let is_due = now.duration_since(self.bookmarked).unsigned_abs() >= bookmark_every;
        if version < self.delivered || !(self.bookmark_asked || is_due) {
            return WatchPoll::Pending;
        }
        self.bookmark_asked = false;
        self.bookmarked = now;
        let bookmark = json!({
            "kind": self.kind.name(),
            "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": version.to_string()},
        });
        WatchPoll::Event(WatchEvent {
            kind: EventKind::Bookmark,
            object: Object::new(bookmark),
        })
    }
}
