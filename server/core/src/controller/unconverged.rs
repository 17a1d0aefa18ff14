//! The ReplicaSets that have not converged, and how many of them have not for long.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use crate::{
    held::Held,
    index::SetId,
    object::{Span, Timestamp},
};

/// A state that lasts longer needs a person: back-offs, slow starts and the usual time until a pod is ready are over by then.
const LONG: Span = Span::seconds(10 * 60);

/// The approximate memory of one ReplicaSet in both collections.
const BYTES: usize = 96;

/// ReplicaSets in a temporary state. Each costs a step when it enters the state, when it leaves it, and when the state has lasted for long.
#[derive(Clone, Debug, Default)]
pub(super) struct Unconverged {
    since: BTreeMap<SetId, Timestamp>,
    /// The ReplicaSets that have not been in the state for long, ordered by the time at which they will have been.
    recent: BTreeSet<(Timestamp, SetId)>,
}

impl Unconverged {
    /// Records whether a ReplicaSet is in the state. The state lasts from the first record of it.
    pub(super) fn note(&mut self, now: Timestamp, id: SetId, is_in: bool) {
        if !is_in {
            self.forget(id);
        } else if let Entry::Vacant(entry) = self.since.entry(id) {
            entry.insert(now);
            self.recent.insert((now, id));
        }
    }

    pub(super) fn forget(&mut self, id: SetId) {
        if let Some(since) = self.since.remove(&id) {
            self.recent.remove(&(since, id));
        }
    }

    pub(super) fn tick(&mut self, now: Timestamp) {
        while let Some(first) = self.recent.first().copied()
            && first.0.plus(LONG) <= now
        {
            self.recent.remove(&first);
        }
    }

    /// The number of ReplicaSets in the state for long, at the last [`Self::tick`].
    pub(super) fn long(&self) -> usize {
        self.since.len() - self.recent.len()
    }
}

impl Held for Unconverged {
    fn bytes(&self) -> usize {
        let Self { since, recent: _ } = self;
        since.len() * BYTES
    }
}
