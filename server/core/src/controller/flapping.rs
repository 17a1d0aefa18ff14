//! The latest changes of the desired pods. Two controllers that fight over a ReplicaSet change them up and down.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    held::{Held, HeldMap, HeldQueue},
    index::SetId,
    object::{Span, Timestamp},
    report::Flapping,
};

/// How long a change counts.
const MINUTE: Span = Span::seconds(60);
/// A ReplicaSet flaps if it changes this often in a minute, and reverses its direction this often. A rollout does not reverse it.
const CHANGES_MIN: usize = 6;
const REVERSALS_MIN: usize = 3;
/// The approximate memory of a ReplicaSet in the order of the newest changes.
const BYTES: usize = 48;

/// The changes of the ReplicaSets that have changed in the last minute.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    by_set: HeldMap<SetId, HeldQueue<Change>>,
    /// The ReplicaSets by the time of their newest change.
    newest: BTreeSet<(Timestamp, SetId)>,
}

/// A change of the desired pods, with the manager who wrote it; empty if unknown.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) at: Timestamp,
    pub(super) from: i32,
    pub(super) to: i32,
    pub(super) manager: Arc<str>,
}

impl Changes {
    /// Records a change. Of a ReplicaSet with many, the oldest is forgotten.
    pub(super) fn note(&mut self, id: SetId, change: Change) {
        match self.last(id) {
            Some(last) => drop(self.newest.remove(&(last, id))),
            None => drop(self.by_set.insert(id, HeldQueue::default())),
        }
        self.newest.insert((change.at, id));
        self.by_set.change(&id, |changes| {
            changes.push_back(change);
            if changes.len() > Flapping::CHANGES_MAX {
                changes.pop_front();
            }
        });
    }

    pub(super) fn forget(&mut self, id: SetId) {
        if let Some(last) = self.last(id) {
            self.newest.remove(&(last, id));
            self.by_set.remove(&id);
        }
    }

    /// Forgets the ReplicaSets that have not changed for a minute.
    pub(super) fn tick(&mut self, now: Timestamp) {
        while let Some((last, id)) = self.newest.first().copied()
            && now.since(last) >= MINUTE
        {
            self.forget(id);
        }
    }

    /// Returns how a ReplicaSet flaps; `None` if it does not.
    pub(super) fn flapping(&self, now: Timestamp, id: SetId) -> Option<Flapping> {
        let changes = self.by_set.get(&id)?.iter();
        let changes: Vec<_> = changes.filter(|it| now.since(it.at) < MINUTE).collect();
        let is_up = |it: &Change| it.from < it.to;
        let pairs = changes.iter().zip(changes.iter().skip(1));
        let reversals = pairs
            .filter(|(one, next)| is_up(one) != is_up(next))
            .count();
        if changes.len() < CHANGES_MIN || reversals < REVERSALS_MIN {
            return None;
        }
        let sizes = || changes.iter().flat_map(|it| [it.from, it.to]);
        let managers: BTreeSet<_> = changes.iter().map(|it| &it.manager).collect();
        let managers = managers.into_iter().filter(|it| !it.is_empty());
        Some(Flapping {
            changes: changes.len(),
            least: sizes().min()?,
            most: sizes().max()?,
            managers: managers.cloned().collect(),
        })
    }

    fn last(&self, id: SetId) -> Option<Timestamp> {
        Some(self.by_set.get(&id)?.back()?.at)
    }
}

impl Held for Changes {
    fn bytes(&self) -> usize {
        let Self { by_set, newest } = self;
        by_set.bytes() + newest.len() * BYTES
    }
}

impl Held for Change {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.manager.len()
    }
}
