//! Counts the active related pods of a ReplicaSet by node (spec 7.3), a little at a time.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{Group, Index, LOOKS_PER_UNIT, set::SetId};
use crate::work::Work;

/// Up to so many siblings are asked one by one whether they select a group.
const FEW_SIBLINGS: usize = 8;

/// The counts, as far as the groups of pods have been gone through.
#[derive(Clone, Debug)]
pub(crate) struct Related {
    siblings: BTreeSet<SetId>,
    namespaces: BTreeSet<Arc<str>>,
    /// The next group, and the next of the shards of its counts.
    next: (usize, usize),
    by_node: HashMap<Arc<str>, u32>,
    unassigned: u32,
}

// === impl Related ===

impl Related {
    /// Returns how many there are on a node, or on none.
    pub(crate) fn on(&self, node: Option<&str>) -> u32 {
        let Some(node) = node else {
            return self.unassigned;
        };
        self.by_node.get(node).copied().unwrap_or(0)
    }

    fn count(&mut self, node: Option<&Arc<str>>, pods: u32) {
        match node {
            Some(node) => *self.by_node.entry(Arc::clone(node)).or_default() += pods,
            None => self.unassigned += pods,
        }
    }
}

// === impl Index ===

impl Index {
    /// Returns the counts for a ReplicaSet, before anything is counted.
    pub(crate) fn related(&self, id: SetId) -> Related {
        let namespaces = self.siblings(id).map(|set| &set.object.key.namespace);
        let owner = self.set(id).and_then(|set| set.object.controller.as_ref());
        let siblings = owner.and_then(|owner| self.siblings.get(&owner.uid));
        Related {
            siblings: siblings.cloned().unwrap_or_default(),
            namespaces: namespaces.cloned().collect(),
            next: (0, 0),
            by_node: HashMap::new(),
            unassigned: 0,
        }
    }

    /// Returns about how many times a sibling and a group are compared for the counts.
    pub(crate) fn related_looks(&self, id: SetId) -> usize {
        let set = self.set(id);
        let owner = set.and_then(|set| set.object.controller.as_ref());
        let siblings = owner.and_then(|owner| self.siblings.get(&owner.uid));
        let groups = set.map_or(0, |set| self.groups.count_in(&set.object.key.namespace));
        siblings.map_or(0, BTreeSet::len).saturating_mul(groups)
    }

    /// Goes on to count. Returns whether all is counted, or the work is spent.
    pub(crate) fn count_related(&self, related: &mut Related, work: &mut Work) -> bool {
        if related.siblings.is_empty() {
            return true;
        }
        loop {
            let (at, shard) = related.next;
            let Some(group) = self.groups.place(at) else {
                return true;
            };
            if work.is_spent() {
                return false;
            }
            work.spend(usize::from(at.is_multiple_of(LOOKS_PER_UNIT)));
            let group = group.filter(|group| {
                shard > 0
                    || related.namespaces.contains(&group.namespace) && {
                        work.spend(1);
                        self.is_related(&related.siblings, group)
                    }
            });
            let counts = group.and_then(|group| group.active_by_node.shard(shard));
            let Some(counts) = counts else {
                related.next = (at + 1, 0);
                continue;
            };
            related.next = (at, shard + 1);
            for (node, pods) in counts {
                related.count(node.as_ref(), *pods);
            }
            work.spend(counts.len() / LOOKS_PER_UNIT);
        }
    }

    fn is_related(&self, siblings: &BTreeSet<SetId>, group: &Group) -> bool {
        let selects = |id: &SetId| {
            let set = self.set(*id);
            let set = set.filter(|set| set.object.key.namespace == group.namespace);
            let selector = set.and_then(|set| set.selector());
            selector.is_some_and(|selector| selector.matches(&group.labels))
        };
        if siblings.len() <= FEW_SIBLINGS {
            return siblings.iter().any(selects);
        }
        let content = self.namespaces.get(&group.namespace);
        let candidates = content.map(|content| content.selectors.candidates(&group.labels));
        let mut candidates = candidates.into_iter().flatten();
        candidates.any(|id| siblings.contains(&id) && selects(&id))
    }
}
