//! The orphans of a namespace, indexed by the labels that selectors require.
//!
//! The index does not keep which ReplicaSets select which orphans: a few thousand of each, all of which match, would be millions of pairs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{group::GroupId, pod::PodId, selectors::Demand};
use crate::{
    labels::{Label, Labels},
    selector::Selector,
};

/// The active pods of a namespace without a controller, grouped by their labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orphans {
    groups: BTreeMap<GroupId, OrphanGroup>,
    by_label: BTreeSet<(Label, GroupId)>,
}

#[derive(Clone, Debug)]
struct OrphanGroup {
    labels: Labels,
    pods: BTreeSet<(Arc<str>, PodId)>,
}

impl Orphans {
    pub(super) fn insert(&mut self, group: GroupId, labels: &Labels, name: &Arc<str>, id: PodId) {
        let known = self.groups.entry(group).or_insert_with(|| {
            let by_label = labels.iter().map(|label| (label.clone(), group));
            self.by_label.extend(by_label);
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
        if known.pods.is_empty() {
            self.remove_group(group);
        }
    }

    pub(super) fn remove_group(&mut self, group: GroupId) {
        if let Some(OrphanGroup { labels, .. }) = self.groups.remove(&group) {
            for label in labels.iter() {
                self.by_label.remove(&(label.clone(), group));
            }
        }
    }

    /// Returns the pods that a selector matches, sorted by name.
    pub(super) fn selected(&self, selector: &Selector) -> Vec<PodId> {
        // Most namespaces have no orphans.
        if self.groups.is_empty() {
            return Vec::new();
        }
        let groups: Box<dyn Iterator<Item = &OrphanGroup>> = match Demand::of(selector) {
            Demand::Label(label) => Box::new(self.from(label.clone(), move |it| *it == label)),
            Demand::Key(key) => {
                let first = (Arc::clone(&key), Arc::default());
                Box::new(self.from(first, move |(it, _)| *it == key))
            }
            Demand::Nothing => Box::new(self.groups.values()),
        };
        let groups = groups.filter(|group| selector.matches(&group.labels));
        let mut found: Vec<_> = groups.flat_map(|group| &group.pods).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| *id).collect()
    }

    /// Returns the groups with labels from `first` on, as long as the labels pass a test.
    fn from(
        &self,
        first: Label,
        is_meant: impl Fn(&Label) -> bool,
    ) -> impl Iterator<Item = &OrphanGroup> {
        let labels = self.by_label.range((first, GroupId::MIN)..);
        let meant = labels.take_while(move |(label, _)| is_meant(label));
        meant.filter_map(|(_, id)| self.groups.get(id))
    }
}
