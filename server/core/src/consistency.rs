//! The versions that the stream has shown of each kind, compared with the server's own writes (spec 5.2).
//!
//! Outcomes enter the view at once, so no decision waits for the stream. This module checks that lists are not older than our writes, and
//! that the stream shows our writes in time. If it does not, the server requests a new list from the agent.

use crate::object::{ByKind, Kind, ResourceVersion, Span, Timestamp};

/// The maximum time until the stream shows a write: the time after which upstream's expectations expire (spec 4).
pub(crate) const UNSEEN_MAX: Span = Span::seconds(5 * 60);

/// The versions of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Versions {
    seen: Option<ResourceVersion>,
    written: Option<ResourceVersion>,
    /// The version of the last complete list that had one.
    listed: Option<ResourceVersion>,
    /// The version that the stream had shown before that list, if the list is older. An agent that continues from its list shows the
    /// versions in between again.
    repeated: Option<ResourceVersion>,
    /// A write that the stream has not shown, with the start of the wait.
    awaited: Option<(ResourceVersion, Timestamp)>,
}

/// The versions of both kinds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Consistency(ByKind<Versions>);

// === impl Consistency ===

impl Consistency {
    /// Notes that the stream has shown everything up to a version.
    pub(crate) fn saw(&mut self, now: Timestamp, kind: Kind, version: ResourceVersion) {
        let versions = self.0.of_mut(kind);
        versions.seen = versions.seen.max(Some(version));
        if versions
            .awaited
            .is_some_and(|(awaited, _)| Some(awaited) <= versions.seen)
        {
            // A later write may be unseen still; it gets its own time, or a busy stream would never be in time.
            let unseen = versions
                .written
                .filter(|written| Some(*written) > versions.seen);
            versions.awaited = unseen.map(|written| (written, now));
        }
    }

    /// Records a complete list. The server trusts a list without a version to show everything (spec 5.2).
    pub(crate) fn listed(&mut self, kind: Kind, list: Option<ResourceVersion>) {
        let is_older = self.is_older(kind, list);
        let versions = self.0.of_mut(kind);
        versions.repeated = versions.seen.filter(|_| is_older);
        versions.listed = versions.listed.max(list);
        if list.is_none() {
            versions.awaited = None;
        }
    }

    pub(crate) const fn last_list(&self, kind: Kind) -> Option<ResourceVersion> {
        self.0.of(kind).listed
    }

    /// Whether a list of this version is older than the stream was when the list began.
    pub(crate) fn is_older(&self, kind: Kind, list: Option<ResourceVersion>) -> bool {
        list.is_some() && list < self.0.of(kind).seen
    }

    /// Whether the stream has shown everything up to this version.
    pub(crate) fn has_passed(&self, kind: Kind, version: Option<ResourceVersion>) -> bool {
        version.is_some() && version <= self.0.of(kind).seen
    }

    /// Whether the stream shows this version again, after a list that was older than the stream.
    pub(crate) fn is_repeated(&self, kind: Kind, version: Option<ResourceVersion>) -> bool {
        version.is_some() && version <= self.0.of(kind).repeated
    }

    pub(crate) fn wrote(&mut self, now: Timestamp, kind: Kind, version: Option<ResourceVersion>) {
        let versions = self.0.of_mut(kind);
        versions.written = versions.written.max(version);
        if let Some(version) = version.filter(|version| Some(*version) > versions.seen) {
            versions.awaited.get_or_insert((version, now));
        }
    }

    /// Whether a list of this version shows all our writes. The server trusts unknown versions (spec 5.2).
    pub(crate) fn covers(&self, kind: Kind, list: Option<ResourceVersion>) -> bool {
        list.is_none()
            || self
                .0
                .of(kind)
                .written
                .is_none_or(|written| list >= Some(written))
    }

    pub(crate) const fn seen(&self, kind: Kind) -> Option<ResourceVersion> {
        self.0.of(kind).seen
    }

    /// The newest version of the view, from the stream or from an outcome.
    pub(crate) fn view(&self, kind: Kind) -> Option<ResourceVersion> {
        self.0.of(kind).seen.max(self.0.of(kind).written)
    }

    /// Returns the kinds whose stream is overdue, and restarts the time limit of each.
    pub(crate) fn overdue(&mut self, now: Timestamp) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for kind in [Kind::Pod, Kind::ReplicaSet] {
            if let Some((_, since)) = &mut self.0.of_mut(kind).awaited
                && since.plus(UNSEEN_MAX) <= now
            {
                *since = now;
                kinds.push(kind);
            }
        }
        kinds
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let kinds = [Kind::Pod, Kind::ReplicaSet].into_iter();
        let awaited = kinds.filter_map(|kind| self.0.of(kind).awaited);
        awaited.map(|(_, since)| since.plus(UNSEEN_MAX)).min()
    }
}
