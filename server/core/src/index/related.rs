//! Counts the active related pods of a ReplicaSet by node (spec 7.3), a little at a time.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use super::{Group, Index, LOOKS_PER_UNIT, ids::Ids, nodes::NodeId, set::SetId};
use crate::work::Work;

/// Up to so many siblings are asked one by one whether they select a group.
const FEW_SIBLINGS: usize = 8;

/// How many nodes of a group are gone through in a row.
const NODES_IN_A_ROW: usize = 1_024;

/// The counts, as far as the groups of pods have been gone through.
#[derive(Clone, Debug)]
pub(crate) struct Related {
    siblings: Ids<SetId>,
    namespaces: BTreeSet<Arc<str>>,
    /// The next group, and the last of the nodes of its counts that was gone through.
    next: (usize, Option<Option<NodeId>>),
    /// By the number of the node.
    by_node: Vec<u32>,
    unassigned: u32,
}

// === impl Related ===

impl Related {
    /// Returns how many there are on a node, or on none.
    pub(crate) fn on(&self, node: Option<NodeId>) -> u32 {
        let Some(node) = node else {
            return self.unassigned;
        };
        self.by_node.get(node.number()).copied().unwrap_or(0)
    }

    fn count(&mut self, node: Option<NodeId>, pods: u32) {
        let Some(at) = node.map(NodeId::number) else {
            self.unassigned += pods;
            return;
        };
        if self.by_node.len() <= at {
            self.by_node.resize(at + 1, 0);
        }
        self.by_node[at] += pods;
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
            next: (0, None),
            by_node: Vec::new(),
            unassigned: 0,
        }
    }

    /// Returns about how many times a sibling and a group are compared for the counts.
    pub(crate) fn related_looks(&self, id: SetId) -> usize {
        let set = self.set(id);
        let owner = set.and_then(|set| set.object.controller.as_ref());
        let siblings = owner.and_then(|owner| self.siblings.get(&owner.uid));
        let groups = set.map_or(0, |set| self.groups.count_in(&set.object.key.namespace));
        siblings.map_or(0, Ids::len).saturating_mul(groups)
    }

    /// Goes on to count. Returns whether all is counted, or the work is spent.
    pub(crate) fn count_related(&self, related: &mut Related, work: &mut Work) -> bool {
        if related.siblings.is_empty() {
            return true;
        }
        loop {
            let (at, last) = related.next;
            let Some(group) = self.groups.place(at) else {
                return true;
            };
            if work.is_spent() {
                return false;
            }
            work.spend(usize::from(at.is_multiple_of(LOOKS_PER_UNIT)));
            let group = group.filter(|group| {
                last.is_some()
                    || related.namespaces.contains(&group.namespace) && {
                        work.spend(1);
                        self.is_related(&related.siblings, group)
                    }
            });
            let from = last.map_or(Bound::Unbounded, Bound::Excluded);
            let counts = group.map(|group| group.active_by_node.range((from, Bound::Unbounded)));
            let counts = counts.into_iter().flatten().take(NODES_IN_A_ROW);
            let (mut counted, mut last) = (0, None);
            for (node, pods) in counts {
                related.count(*node, *pods);
                (counted, last) = (counted + 1, Some(*node));
            }
            work.spend(counted / LOOKS_PER_UNIT);
            let is_more = counted == NODES_IN_A_ROW;
            related.next = if is_more { (at, last) } else { (at + 1, None) };
        }
    }

    fn is_related(&self, siblings: &Ids<SetId>, group: &Group) -> bool {
        let selects = |id: SetId| {
            let set = self.set(id);
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
        candidates.any(|id| siblings.contains(id) && selects(id))
    }
}
