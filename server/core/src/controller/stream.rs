//! The versions that the stream has shown of a kind, compared with the server's own writes (spec 5.2), and the lists of the kind.
//!
//! Outcomes enter the view at once, so no decision waits for the stream. This module checks that lists are not older than our writes, and
//! that the stream shows our writes in time. If it does not, the server requests a new list from the agent.
//!
//! An outcome without an object says that a write was made, but does not show its result. So the sync continues only after a list that
//! began later.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    held::Held,
    object::{ByKind, Key, Kind, ResourceVersion, Span, Timestamp},
    sync::batch_result::BatchResult,
};

/// The maximum time until the stream shows a write: the time after which upstream's expectations expire (spec 4).
const UNSEEN_MAX: Span = Span::seconds(5 * 60);

/// The memory of unseen effects in bytes, without the names.
const UNSEEN_BYTES: usize = 200;
/// The memory in bytes of a name, of 63 bytes at most, that no pod has yet.
const NAME_BYTES: usize = 200;

/// After this time with only lists that are older than a write, the versions of the cluster went back. No cache lags for so long.
const OLDER_MAX: Span = Span::seconds(60);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    pub(super) seen: Option<ResourceVersion>,
    written: Option<ResourceVersion>,
    /// The version of the last complete list that had one.
    pub(super) listed: Option<ResourceVersion>,
    /// The version that the stream had shown before that list, if the list is older. An agent that continues from its list shows the
    /// versions in between again.
    repeated: Option<ResourceVersion>,
    /// A write that the stream has not shown, with the start of the wait.
    awaited: Option<(ResourceVersion, Timestamp)>,
    /// The number of the last complete list; 0 before the first. The numbers count the lists of both kinds, in the order in which they
    /// began.
    complete: u32,
    pub(super) open_list: Option<u32>,
    /// Whether a list was requested and none has begun since. There is one request at a time, for any number of waiting syncs.
    pub(super) is_list_requested: bool,
    older: OlderLists,
}

/// Lists in a row that cannot be used, since they are older than a write already reported.
#[derive(Clone, Copy, Debug, Default)]
struct OlderLists {
    since: Option<Timestamp>,
    delay: Span,
    request_at: Option<Timestamp>,
}

/// The effects that the outcomes of a batch did not show.
#[derive(Clone, Debug, Default)]
pub(super) struct Unseen {
    /// For each kind, the last list that had begun when such an outcome came.
    pub(super) after: BTreeMap<Kind, u32>,
    /// The names of created pods that are not in the view.
    pub(super) names: Vec<Arc<str>>,
}

/// A sync whose batch has all its outcomes, and which waits for lists that show its writes.
#[derive(Clone, Debug)]
pub(super) struct ListWait {
    pub(super) unseen: Unseen,
    pub(super) key: Key,
    pub(super) result: BatchResult,
}

impl Stream {
    pub(super) fn saw(&mut self, now: Timestamp, version: ResourceVersion) {
        self.seen = self.seen.max(Some(version));
        let awaited = self.awaited.map(|(awaited, _)| awaited);
        if awaited.is_some() && awaited <= self.seen {
            // A later write may be unseen still; it gets its own time, or a busy stream would never be in time.
            let unseen = self.written.filter(|written| Some(*written) > self.seen);
            self.awaited = unseen.map(|written| (written, now));
        }
    }

    pub(super) fn wrote(&mut self, now: Timestamp, version: Option<ResourceVersion>) {
        self.written = self.written.max(version);
        if let Some(version) = version.filter(|version| Some(*version) > self.seen) {
            self.awaited.get_or_insert((version, now));
        }
    }

    pub(super) const fn begin_list(&mut self, number: u32) {
        (self.open_list, self.is_list_requested) = (Some(number), false);
        self.older.request_at = None;
    }

    /// Records a list that is older than a write already reported, and the time of the next request: at once, then after 1, 2, 4, … seconds.
    /// Returns that write if there were only such lists for too long: the versions of the cluster went back.
    pub(super) fn refuse_list(&mut self, now: Timestamp) -> Option<ResourceVersion> {
        let OlderLists { since, delay, .. } = self.older;
        let since = since.unwrap_or(now);
        self.older = OlderLists {
            since: Some(since),
            delay: Span(delay.0.saturating_mul(2)).max(Span::seconds(1)),
            request_at: Some(now.plus(delay)),
        };
        self.written.filter(|_| since.plus(OLDER_MAX) <= now)
    }

    /// Records a complete list. The server trusts a list without a version to show everything (spec 5.2).
    pub(super) fn end_list(&mut self, number: u32, list: Option<ResourceVersion>) {
        self.repeated = self.seen.filter(|_| self.is_older(list));
        self.listed = self.listed.max(list);
        self.older = OlderLists::default();
        if list.is_none() {
            self.awaited = None;
        }
        (self.complete, self.open_list) = (number, None);
    }

    pub(super) const fn began_before(&self, other: &Self) -> bool {
        self.complete < other.complete
    }

    pub(super) const fn is_listed(&self) -> bool {
        self.complete > 0
    }

    /// Whether a list of this version is older than the stream was when the list began.
    pub(super) fn is_older(&self, list: Option<ResourceVersion>) -> bool {
        list.is_some() && list < self.seen
    }

    /// Whether the stream has shown everything up to this version.
    pub(super) fn has_passed(&self, version: Option<ResourceVersion>) -> bool {
        version.is_some() && version <= self.seen
    }

    /// Whether the stream shows this version again, after a list that was older than the stream.
    pub(super) fn is_repeated(&self, version: Option<ResourceVersion>) -> bool {
        version.is_some() && version <= self.repeated
    }

    /// Whether a list of this version shows all our writes. The server trusts unknown versions (spec 5.2).
    pub(super) fn covers_writes(&self, list: Option<ResourceVersion>) -> bool {
        list.is_none() || list >= self.written
    }

    /// The newest version of the view, from the stream or from an outcome.
    pub(super) fn view(&self) -> Option<ResourceVersion> {
        self.seen.max(self.written)
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        let overdue = self.awaited.map(|(_, since)| since.plus(UNSEEN_MAX));
        overdue.into_iter().chain(self.older.request_at).min()
    }

    /// Returns why to request a list now, if there is a reason: the stream is overdue, which restarts its time limit, or the last list was too
    /// old.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<&'static str> {
        if self.older.request_at.take_if(|at| *at <= now).is_some() {
            return Some("the list is older than a write already reported");
        }
        let since = self.awaited.as_mut().map(|(_, since)| since);
        *since.filter(|since| since.plus(UNSEEN_MAX) <= now)? = now;
        Some("the stream has not shown a write for 5 minutes")
    }
}

impl Held for Unseen {
    fn bytes(&self) -> usize {
        let Self { after: _, names } = self;
        UNSEEN_BYTES + names.len() * NAME_BYTES
    }
}

impl Unseen {
    pub(super) fn missing(&self, streams: &ByKind<Stream>) -> impl Iterator<Item = Kind> {
        let needed = self.after.iter();
        let missing = needed.filter(|(kind, after)| streams.of(**kind).complete <= **after);
        missing.map(|(kind, _)| *kind)
    }

    pub(super) fn is_shown(&self, streams: &ByKind<Stream>) -> bool {
        self.missing(streams).next().is_none()
    }
}

impl Held for ListWait {
    fn bytes(&self) -> usize {
        let Self {
            unseen,
            key: _,
            result,
        } = self;
        unseen.bytes() + result.bytes()
    }
}
