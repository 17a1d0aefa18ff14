//! The orphans of a namespace, indexed by the labels that selectors require.
//!
//! The index does not keep which ReplicaSets select which orphans: a few thousand of each, all of which match, would be millions of pairs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    group::GroupId,
    ids::Ids,
    map::Map,
    pod::PodId,
    selectors::{Demand, remove_from},
};
use crate::{
    labels::{Label, Labels},
    selector::Selector,
};

/// The active pods of a namespace without a controller, grouped by their labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orphans {
    groups: BTreeMap<GroupId, OrphanGroup>,
    by_label: Map<Label, Ids<GroupId>>,
    by_key: Map<Arc<str>, Ids<GroupId>>,
}

#[derive(Clone, Debug)]
struct OrphanGroup {
    labels: Labels,
    pods: BTreeSet<(Arc<str>, PodId)>,
}

impl Orphans {
    pub(super) fn insert(&mut self, group: GroupId, labels: &Labels, name: &Arc<str>, id: PodId) {
        let Self {
            groups,
            by_label,
            by_key,
        } = self;
        let known = groups.entry(group).or_insert_with(|| {
            for (key, value) in labels.iter() {
                let label = (Arc::clone(key), Arc::clone(value));
                by_label.entry(label).or_default().insert(group);
                let by_key = by_key.entry(Arc::clone(key));
                by_key.or_default().insert(group);
            }
            OrphanGroup {
                labels: labels.clone(),
                pods: BTreeSet::new(),
            }
        });
        known.pods.insert((Arc::clone(name), id));
    }

    pub(super) fn remove(&mut self, group: GroupId, name: &Arc<str>, id: PodId) {
        let Some(known) = self.groups.get_mut(&group) else {
            return;
        };
        known.pods.remove(&(Arc::clone(name), id));
        if !known.pods.is_empty() {
            return;
        }
        self.remove_group(group);
    }

    pub(super) fn remove_group(&mut self, group: GroupId) {
        let Some(OrphanGroup { labels, .. }) = self.groups.remove(&group) else {
            return;
        };
        for (key, value) in labels.iter() {
            let label = (Arc::clone(key), Arc::clone(value));
            remove_from(&mut self.by_label, &label, group);
            remove_from(&mut self.by_key, key, group);
        }
    }

    /// Returns the pods that a selector matches, sorted by name.
    pub(super) fn selected(&self, selector: &Selector) -> Vec<PodId> {
        // Most namespaces have no orphans, so nothing is hashed.
        if self.groups.is_empty() {
            return Vec::new();
        }
        let groups: Box<dyn Iterator<Item = &OrphanGroup>> = match Demand::of(selector) {
            Demand::Label(label) => Box::new(self.named(self.by_label.get(&label))),
            Demand::Key(key) => Box::new(self.named(self.by_key.get(key))),
            Demand::Nothing => Box::new(self.groups.values()),
        };
        let groups = groups.filter(|group| selector.matches(&group.labels));
        let mut found: Vec<_> = groups.flat_map(|group| &group.pods).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| *id).collect()
    }

    fn named<'a>(&'a self, ids: Option<&'a Ids<GroupId>>) -> impl Iterator<Item = &'a OrphanGroup> {
        let ids = ids.into_iter().flat_map(Ids::iter);
        ids.filter_map(|id| self.groups.get(&id))
    }
}
