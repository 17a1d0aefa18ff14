//! Removes what a complete list did not name, a little at a time: first it is found, then it is taken out in the order of its names.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Index, LOOKS_PER_UNIT, PodChange,
    pod::{Entry, PodId},
    pods::is_after,
    set::{Set, SetId},
};
use crate::{object::ResourceVersion, work::Work};

/// How many pods are looked at in a row.
const LOOKS_IN_A_ROW: usize = 64;

/// How far the objects are gone through after a list.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    /// The list's number and version.
    snapshot: u32,
    version: Option<ResourceVersion>,
    /// What the stream had shown when the list began, if the list is older.
    shown: Option<ResourceVersion>,
    /// The next place of a pod, or the next ReplicaSet.
    next: u64,
    stale_pods: BTreeMap<(Arc<str>, Arc<str>), PodId>,
    stale_sets: BTreeSet<SetId>,
}

// === impl Sweep ===

impl Sweep {
    /// Returns the way through all objects after the list of this number and version. `shown` is what the stream had shown when the list began,
    /// if the list is older than that.
    pub(crate) const fn new(
        snapshot: u32,
        version: Option<ResourceVersion>,
        shown: Option<ResourceVersion>,
    ) -> Self {
        Self {
            snapshot,
            version,
            shown,
            next: 0,
            stale_pods: BTreeMap::new(),
            stale_sets: BTreeSet::new(),
        }
    }

    /// Returns whether an object of this state is gone: the list did not name it, and it is not newer than the list.
    fn is_stale(&self, named: u32, version: Option<ResourceVersion>) -> bool {
        named < self.snapshot && !is_after(version, self.version)
    }

    /// Returns whether an object of this state is gone that was not known, and that the stream had passed, when a list named it.
    fn is_disproved(&self, version: Option<ResourceVersion>) -> bool {
        version.is_some() && version <= self.shown
    }
}

// === impl Index ===

impl Index {
    /// Goes on to find the pods that the list did not name. Returns whether all are found, or the work is spent.
    pub(crate) fn find_stale_pods(&self, sweep: &mut Sweep, work: &mut Work) -> bool {
        loop {
            let from = usize::try_from(sweep.next).unwrap_or(usize::MAX);
            let places = self.pods_from(from, LOOKS_IN_A_ROW);
            if places.is_empty() {
                return true;
            }
            if work.is_spent() {
                return false;
            }
            let entries = (from..).zip(places).filter_map(|(at, entry)| {
                let id = PodId::try_from(at).expect("it is the place of a pod");
                Some((id, entry.as_ref()?))
            });
            let is_stale = |id: PodId, entry: &Entry| {
                sweep.is_stale(entry.snapshot, entry.version)
                    || sweep.is_disproved(entry.version) && self.doubtful_pods.contains(&id)
            };
            let stale: Vec<_> = entries.filter(|(id, entry)| is_stale(*id, entry)).collect();
            work.spend(places.len() / LOOKS_PER_UNIT + stale.len());
            for (id, entry) in stale {
                let namespace = Arc::clone(&self.groups.at(entry.group).namespace);
                let place = (namespace, Arc::clone(&entry.name));
                sweep.stale_pods.insert(place, id);
            }
            sweep.next += places.len() as u64;
        }
    }

    /// Takes out the next of the pods that were found, by namespace and name.
    pub(crate) fn take_stale_pod(&mut self, sweep: &mut Sweep) -> Option<PodChange> {
        let (_, id) = sweep.stale_pods.pop_first()?;
        Some(self.take_out_pod(id))
    }

    /// Goes on to find the ReplicaSets that the list did not name. Returns whether all are found, or the work is spent.
    pub(crate) fn find_stale_sets(&self, sweep: &mut Sweep, work: &mut Work) -> bool {
        let is_stale = |sweep: &Sweep, id: SetId, set: &Set| {
            let version = set.object.version;
            sweep.is_stale(set.snapshot, version)
                || sweep.is_disproved(version) && self.doubtful_sets.contains(&id)
        };
        for (looked_at, (id, set)) in self.sets.range(sweep.next..).enumerate() {
            if work.is_spent() {
                return false;
            }
            sweep.next = *id + 1;
            work.spend(usize::from(looked_at.is_multiple_of(LOOKS_PER_UNIT)));
            if is_stale(sweep, *id, set) {
                sweep.stale_sets.insert(*id);
            }
        }
        true
    }

    /// Takes out the next of the ReplicaSets that were found, in the order in which they came.
    pub(crate) fn take_stale_set(&mut self, sweep: &mut Sweep, work: &mut Work) -> Option<SetId> {
        let id = sweep.stale_sets.pop_first()?;
        let owned = self.set(id).map_or(0, |set| set.owned.len());
        work.spend(1 + owned / LOOKS_PER_UNIT);
        self.take_out_set(id);
        Some(id)
    }
}
