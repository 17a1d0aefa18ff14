//! The pods that are expected to be evicted, of ReplicaSets that prefer replacements before that. Their number depends on nodes, so no
//! change of a pod updates it: each sync counts anew.

use std::collections::BTreeSet;

use super::{Entry, Index, Set, SetId, nodes::NodeId};
use crate::{node::Hint, wording::count};

/// The active pods of a ReplicaSet that are expected to be evicted, as its last sync found them.
#[derive(Clone, Debug)]
pub(crate) struct Evictions {
    pub(crate) hinted: i32,
    /// Those that may be deleted once they have replacements.
    pub(crate) leaving: i32,
    pub(crate) leaving_available: i32,
    /// All of them, in words.
    pub(crate) pods: String,
}

impl Set {
    /// The maximum number of pods to create in advance.
    pub(crate) fn surge(&self) -> i32 {
        let preferences = self.object.preferences.as_deref();
        preferences.map_or(0, |it| it.surge(self.wanted()))
    }

    /// The number of pods to have in advance.
    pub(crate) fn extra(&self) -> i32 {
        self.target() - self.wanted()
    }

    /// The desired pods, and those in advance.
    pub(crate) fn target(&self) -> i32 {
        self.target_without(0)
    }

    /// The same, after the eviction of some of the pods for which others are there in advance.
    pub(crate) fn target_without(&self, evicted: i32) -> i32 {
        let hinted = self.evictions.as_ref().map_or(0, |it| it.hinted);
        let extra = (hinted - evicted).clamp(0, self.surge());
        self.wanted().saturating_add(extra)
    }
}

impl Index {
    /// Returns why a pod is expected to be evicted; `None` if nothing says so.
    pub(crate) fn hint_of(&self, pod: &Entry) -> Option<Hint> {
        Hint::of(pod.state.leaving, self.nodes.shown(pod.node))
    }

    /// Whether the pod may be deleted once it has a replacement.
    pub(crate) fn leaves(&self, pod: &Entry) -> bool {
        self.hint_of(pod).is_some_and(Hint::is_leaving)
    }

    /// Counts the pods that are expected to be evicted, if the ReplicaSet prefers replacements before that. The cost is a step for each of
    /// its pods then.
    pub(crate) fn count_evictions(&mut self, id: SetId) {
        let Some(set) = self.set(id) else { return };
        let surges = set.surge() > 0;
        if !surges && set.evictions.is_none() {
            return;
        }
        let found = surges.then(|| {
            self.let_become_available(id);
            self.evictions(id)
        });
        if let Some(set) = self.set_mut(id) {
            set.evictions = found.flatten().map(Box::new);
        }
    }

    fn evictions(&self, id: SetId) -> Option<Evictions> {
        let [mut hinted, mut leaving, mut leaving_available] = [0; 3];
        let mut places = BTreeSet::new();
        for (_, pod) in self.active_pods(id) {
            let Some(hint) = self.hint_of(pod) else {
                continue;
            };
            hinted += 1;
            leaving += i32::from(hint.is_leaving());
            leaving_available += i32::from(hint.is_leaving() && pod.counted.available);
            places.insert(hint.words(self.node_of(pod).map(|node| &**node)));
        }
        let place = places.first()?;
        let others = if places.len() > 1 { " and others" } else { "" };
        Some(Evictions {
            hinted,
            leaving,
            leaving_available,
            pods: match hinted {
                1 => format!("a pod {place}"),
                _ => format!("{} {place}{others}", count(hinted, "pod")),
            },
        })
    }

    /// Returns the ReplicaSets with active pods on some nodes, among those that prefer replacements before evictions. The cost is a step for
    /// each ReplicaSet, and for each pod of these.
    pub(crate) fn evicted_from(&self, nodes: &BTreeSet<NodeId>) -> Vec<SetId> {
        let is_there =
            |pod: &Entry| pod.counted.active && pod.node.is_some_and(|it| nodes.contains(&it));
        let sets = self.sets.iter();
        let surging = sets.filter(|(_, set)| set.object.prefers_surge());
        let found = surging.filter(|(_, set)| {
            let mut pods = set.owned.iter().filter_map(|pod| self.pod(*pod));
            pods.any(is_there)
        });
        found.map(|(id, _)| *id).collect()
    }
}
