//! How far the lists of both kinds are, and which ReplicaSets wait for one: an outcome that carries no object says that a write was
//! made and not what it led to, so the sync goes on only after a list that began later.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Controller;
use crate::{
    index::SetId,
    object::{Kind, ResourceVersion, Timestamp},
    queue::Lane,
    report::Report,
    sync::Tally,
};

/// The lists of one kind. Lists of both kinds are numbered through, in the order in which they began.
#[derive(Clone, Copy, Debug, Default)]
struct Lists {
    /// The last complete list; 0 before the first.
    complete: u32,
    /// The list that is open.
    open: Option<u32>,
    /// Whether a list was asked for and none has begun since: there is one request at a time, however many wait.
    requested: bool,
}

/// The lists of both kinds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pods: Lists,
    replica_sets: Lists,
}

/// What outcomes of a batch left open.
#[derive(Clone, Debug, Default)]
pub(super) struct Unseen {
    /// By kind the list that had begun last when such an outcome came.
    after: BTreeMap<Kind, u32>,
    /// The names of pods that were created and are not in the view.
    names: Vec<Arc<str>>,
}

/// A sync whose batch is answered, and which waits for lists that show its writes.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) unseen: Unseen,
    pub(super) namespace: Arc<str>,
    pub(super) tally: Tally,
}

// === impl Progress ===

impl Progress {
    /// Returns whether both kinds have been listed.
    pub(super) const fn is_synced(&self) -> bool {
        self.is_listed(Kind::Pod) && self.is_listed(Kind::ReplicaSet)
    }

    /// Returns whether both kinds have been listed and no list is open.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_synced() && self.pods.open.is_none() && self.replica_sets.open.is_none()
    }

    /// Returns whether the kind has been listed.
    pub(super) const fn is_listed(&self, kind: Kind) -> bool {
        self.of(kind).complete > 0
    }

    /// Returns whether a list of the kind is open.
    pub(super) const fn is_open(&self, kind: Kind) -> bool {
        self.of(kind).open.is_some()
    }

    /// Returns whether complete lists have shown what a batch left open.
    pub(super) fn show(&self, unseen: &Unseen) -> bool {
        self.missing(unseen).next().is_none()
    }

    /// Returns the kinds of which a list is missing.
    fn missing(&self, unseen: &Unseen) -> impl Iterator<Item = Kind> {
        let missing = unseen.after.iter();
        missing.filter_map(|(kind, after)| (self.of(*kind).complete <= *after).then_some(*kind))
    }

    const fn of(&self, kind: Kind) -> &Lists {
        match kind {
            Kind::Pod => &self.pods,
            Kind::ReplicaSet => &self.replica_sets,
        }
    }

    const fn of_mut(&mut self, kind: Kind) -> &mut Lists {
        match kind {
            Kind::Pod => &mut self.pods,
            Kind::ReplicaSet => &mut self.replica_sets,
        }
    }
}

// === impl Unseen ===

impl Unseen {
    /// Notes a write of which the outcome carried no object, when list number `last` had begun last.
    pub(super) fn add(&mut self, kind: Kind, last: u32, created: Option<Arc<str>>) {
        self.after.insert(kind, last);
        self.names.extend(created);
    }
}

// === impl Controller ===

impl Controller {
    pub(super) fn begin_list(&mut self, kind: Kind) {
        let number = self.index.begin_snapshot(kind);
        let lists = self.lists.of_mut(kind);
        (lists.open, lists.requested) = (Some(number), false);
    }

    /// Completes a list. One that is older than a write of ours is not used: the view stays partial until a newer one is complete.
    pub(super) fn end_list(
        &mut self,
        now: Timestamp,
        kind: Kind,
        version: Option<ResourceVersion>,
    ) {
        let Some(number) = self.lists.of(kind).open else {
            return;
        };
        if !self.consistency.covers(kind, version) {
            return self.request_list(kind, "the list is older than a write already reported");
        }
        let lists = self.lists.of_mut(kind);
        (lists.complete, lists.open) = (number, None);
        self.take_list(now, kind, number, version);
        if version.is_none() {
            self.consistency.saw_all(kind);
        }
        self.saw(now, kind, version);
        self.resume_waiting();
    }

    /// Asks for a list, whether one was asked for or not.
    pub(super) fn request_list(&mut self, kind: Kind, cause: &str) {
        self.lists.of_mut(kind).requested = true;
        let cause = cause.to_owned();
        self.reports.push(Report::ResyncNeeded { kind, cause });
    }

    /// Lets a sync wait for the lists that its batch calls for.
    pub(super) fn wait_for_lists(&mut self, id: SetId, waiting: Waiting) {
        if let Some(set) = self.index.set(id) {
            for kind in self.lists.missing(&waiting.unseen) {
                let key = set.object.key.clone();
                self.reports.push(Report::StaleViewSkipped { key, kind });
            }
        }
        self.waiting.insert(id, waiting);
        self.request_missing();
    }

    /// Lets the syncs go on whose writes the lists have shown by now.
    fn resume_waiting(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let shown = self.waiting.iter();
        let shown = shown.filter(|(_, waiting)| self.lists.show(&waiting.unseen));
        let shown: Vec<_> = shown.map(|(id, _)| *id).collect();
        for id in shown {
            if let Some(waiting) = self.waiting.remove(&id) {
                self.free_names(&waiting.namespace, &waiting.unseen);
                self.answered.push_back((id, waiting.tally));
                // The lists may show another state than the sync that waited will leave.
                self.queue.add(id, Lane::Live);
            }
        }
        self.request_missing();
    }

    /// Asks for the lists that somebody waits for, unless one is open or asked for already.
    fn request_missing(&mut self) {
        let waiting = self.waiting.values();
        let missing = waiting.flat_map(|waiting| self.lists.missing(&waiting.unseen));
        let missing: BTreeSet<_> = missing.collect();
        for kind in missing {
            let lists = self.lists.of(kind);
            if lists.open.is_none() && !lists.requested {
                self.request_list(kind, "an outcome did not carry the object after the write");
            }
        }
    }

    /// Ends what kept the names of created pods that are not in the view.
    pub(super) fn free_names(&mut self, namespace: &str, unseen: &Unseen) {
        let names = unseen.names.iter();
        names.for_each(|name| self.index.end_making(namespace, name));
    }
}
