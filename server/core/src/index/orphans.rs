//! The orphans of a namespace, found by what a selector demands.
//!
//! Which ReplicaSets select which orphans is not kept: a few thousand of each, all of which match, would be millions of pairs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    growing_map::GrowingMap,
    ids::Ids,
    pod::PodId,
    selectors::{Demand, remove_from},
};
use crate::{
    labels::{Label, Labels},
    pieces::{Pieces, pieces},
    selector::Selector,
};

/// The active pods of a namespace that have no controller. Those with the same labels, a group, are found together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orphans {
    groups: BTreeMap<u32, Group>,
    by_label: GrowingMap<Label, Ids<u32>>,
    by_key: GrowingMap<Arc<str>, Ids<u32>>,
}

#[derive(Clone, Debug)]
struct Group {
    labels: Labels,
    pods: BTreeSet<(Arc<str>, PodId)>,
}

// === impl Orphans ===

impl Orphans {
    /// Adds a pod of a group.
    pub(super) fn insert(&mut self, group: u32, labels: &Labels, name: &Arc<str>, id: PodId) {
        let Self {
            groups,
            by_label,
            by_key,
        } = self;
        let known = groups.entry(group).or_insert_with(|| {
            for (key, value) in labels {
                let label = (Arc::clone(key), Arc::clone(value));
                by_label.or_default(label).insert(group);
                by_key.or_default(Arc::clone(key)).insert(group);
            }
            Group {
                labels: labels.clone(),
                pods: BTreeSet::new(),
            }
        });
        known.pods.insert((Arc::clone(name), id));
    }

    /// Removes a pod of a group, if it is there.
    pub(super) fn remove(&mut self, group: u32, name: &Arc<str>, id: PodId) {
        let Some(known) = self.groups.get_mut(&group) else {
            return;
        };
        known.pods.remove(&(Arc::clone(name), id));
        if !known.pods.is_empty() {
            return;
        }
        let labels = known.labels.clone();
        self.groups.remove(&group);
        for (key, value) in &labels {
            let label = (Arc::clone(key), Arc::clone(value));
            remove_from(&mut self.by_label, &label, group);
            remove_from(&mut self.by_key, key, group);
        }
    }

    /// Returns all of it, to be freed a piece at a time.
    pub(super) fn into_pieces(self) -> Pieces {
        let pods = self
            .groups
            .into_values()
            .flat_map(|group| pieces(group.pods));
        let demanded = self.by_label.into_values().chain(self.by_key.into_values());
        Box::new(pods.chain(demanded.flat_map(Ids::into_pieces)))
    }

    /// Returns the pods that a selector matches, by name, and how many groups and pods were looked at.
    pub(super) fn selected(&self, selector: &Selector) -> (Vec<PodId>, usize) {
        let groups: Box<dyn Iterator<Item = &Group>> = match Demand::of(selector) {
            // Most namespaces have none at all: nothing is asked for by hash.
            _ if self.groups.is_empty() => return (Vec::new(), 0),
            Demand::Label(key, value) => {
                let label = (Arc::clone(key), Arc::clone(value));
                Box::new(self.named(self.by_label.get(&label)))
            }
            Demand::Key(key) => Box::new(self.named(self.by_key.get(key))),
            Demand::Nothing => Box::new(self.groups.values()),
        };
        let (mut looked_at, mut found) = (0, Vec::new());
        for group in groups {
            looked_at += 1;
            if selector.matches(&group.labels) {
                looked_at += group.pods.len();
                found.extend(group.pods.iter().map(|(name, id)| (name, *id)));
            }
        }
        found.sort_unstable();
        (found.into_iter().map(|(_, id)| id).collect(), looked_at)
    }

    /// Returns the groups of these ids.
    fn named<'a>(&'a self, ids: Option<&'a Ids<u32>>) -> impl Iterator<Item = &'a Group> {
        let ids = ids.into_iter().flat_map(Ids::iter);
        ids.filter_map(|id| self.groups.get(&id))
    }
}
