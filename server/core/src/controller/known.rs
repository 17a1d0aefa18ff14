//! Views of single objects, and the order of deletion within a ReplicaSet, for shadow mode.

use std::{collections::BTreeSet, sync::Arc};

use super::Inspect;
use crate::{
    index::{Entry, Index, Set, SetId},
    object::{Key, Kind, Pod, ReplicaSet, Span, Status, Timestamp, Uid},
    pod_view::OwnerView,
    reason::Reason,
    sync::{
        manage::candidates,
        rank::{Candidate, choose, deletion_positions},
    },
};

/// A ReplicaSet with its pods, as a controller currently knows them.
#[derive(Clone, Copy)]
pub struct KnownSet<'a> {
    index: &'a Index,
    id: SetId,
    set: &'a Set,
}

/// The pods that a scale-down deletes.
#[derive(Clone, Debug)]
pub struct Deletable {
    /// The number of pods.
    pub count: usize,
    /// The names of the chosen pods, each with the reason.
    pub chosen: Vec<(Arc<str>, Reason)>,
    /// The UIDs of the pods that upstream can choose: more than `chosen`, if its comparison leaves the order open (spec 7.2, 7.5).
    pub allowed: BTreeSet<Uid>,
}

impl<'a> Inspect<'a> {
    /// The pod as the controller knows it.
    pub fn pod(self, namespace: &str, name: &str) -> Option<Pod> {
        let (_, entry) = self.0.index.pod_named(namespace, name)?;
        Some(self.0.index.pod_object(entry))
    }

    /// Whether the controller knows that a pod was deleted.
    pub fn is_gone_pod(self, uid: &Uid) -> bool {
        let tombstones = &self.0.index.tombstones;
        tombstones.covers(Kind::Pod, &uid.0, None)
    }

    /// The ReplicaSet as the controller knows it.
    pub fn replica_set(self, key: &Key) -> Option<KnownSet<'a>> {
        let id = self.0.index.set_named(&key.namespace, &key.name)?;
        self.known(id).filter(|known| known.object().key == *key)
    }

    /// The ReplicaSet that a controller reference in a namespace resolves to.
    pub fn owner(self, namespace: &str, owner: OwnerView<'_>) -> Option<KnownSet<'a>> {
        self.known(self.0.index.resolve(namespace, owner)?)
    }

    fn known(self, id: SetId) -> Option<KnownSet<'a>> {
        let (index, set) = (&self.0.index, self.0.index.set(id)?);
        Some(KnownSet { index, id, set })
    }
}

impl<'a> KnownSet<'a> {
    /// The ReplicaSet.
    pub const fn object(&self) -> &'a ReplicaSet {
        &self.set.object
    }

    /// The number of active pods.
    pub const fn active(&self) -> i32 {
        self.set.counts.active
    }

    /// The number of desired pods.
    pub fn wanted(&self) -> i32 {
        self.set.wanted()
    }

    /// The active pods minus the desired pods; negative if pods are missing.
    pub fn surplus(&self) -> i64 {
        self.set.surplus()
    }

    /// Whether it is quarantined.
    pub fn is_quarantined(&self) -> bool {
        self.set.quarantine().is_some()
    }

    /// Whether it selects a pod.
    pub fn selects(&self, pod: &Pod) -> bool {
        let selector = self.set.selector();
        selector.is_some_and(|selector| selector.matches(&pod.labels))
    }

    /// The keys of the ReplicaSets under the same controller, this one included; none without a controller.
    pub fn siblings(&self) -> impl Iterator<Item = &'a Key> + use<'a> {
        self.index.siblings(self.id).map(|set| &set.object.key)
    }

    /// The first by name of the orphans to adopt. The cost is a test for each group of orphans of the namespace.
    pub fn first_to_adopt(&self) -> Option<&'a Arc<str>> {
        let adoptable = self.index.adoptable(self.id);
        Some(&self.index.pod(*adoptable.first()?)?.name)
    }

    /// The first by name of the pods to release.
    pub fn first_to_release(&self) -> Option<&'a Arc<str>> {
        self.set.releases.first().map(|(name, _)| name)
    }

    /// Whether its namespace seems to terminate: the namespace has pods, and all of them are terminating. Takes one of `looks` for each pod;
    /// false if too few are left.
    pub fn is_namespace_ending(&self, looks: &mut usize) -> bool {
        let namespace = &self.set.object.key.namespace;
        let names = self.index.names_in(namespace);
        let pods = self.index.pod_ids_in(namespace);
        let mut pods = pods.filter_map(|id| self.index.pod(id));
        names > 0 && spend(looks, names).is_some() && pods.all(|pod| !pod.state.is_active())
    }

    /// The status that its pods call for; `None` if the status is up to date.
    pub fn status_due(&self, now: Timestamp) -> Option<Status> {
        self.set.status_due(now)
    }

    /// The number of its pods that are available at `at`, if none changes until then. The cost is a step for each of its pods.
    pub fn available_at(&self, at: Timestamp) -> i32 {
        let ready = self.index.active_pods(self.id);
        let ready = ready.filter(|(_, pod)| pod.counted.ready);
        let available = ready.filter(|(_, pod)| self.set.is_available(pod, at));
        i32::try_from(available.count()).unwrap_or(i32::MAX)
    }

    /// The pods that a scale-down by `count` deletes, if it is decided at any moment from `from` to `to`. Takes one of `looks` for each pod
    /// and each change of the order in that time; `None` if too few are left.
    pub fn deletable(
        &self,
        count: usize,
        [from, to]: [Timestamp; 2],
        looks: &mut usize,
    ) -> Option<Deletable> {
        let related = self.index.related_looks(self.id, *looks);
        spend(looks, related)?;
        spend(looks, self.set.owned.len())?;
        let mut pods = candidates(self.index, self.id);
        // The other controller follows no preferences, except by the costs that are advised.
        pods.iter_mut().for_each(|pod| pod.preferred = None);
        let moments = moments(&pods, from, to);
        spend(looks, pods.len().saturating_mul(moments.len()))?;
        let mut allowed = BTreeSet::new();
        for moment in moments {
            let positions = deletion_positions(moment, &pods).into_iter();
            let taken = positions
                .zip(&pods)
                .filter(|(position, _)| position.earliest <= count);
            allowed.extend(taken.map(|(_, pod)| pod.uid.clone()));
        }
        let name = |pod: &Entry| Arc::clone(&pod.name);
        let chosen = choose(&pods, count, to, &name).chosen.into_iter();
        let chosen = chosen.map(|chosen| (name(chosen.id), chosen.reason));
        Some(Deletable {
            count,
            chosen: chosen.collect(),
            allowed,
        })
    }
}

/// Returns the moments from `from` to `to` at which an age passes a power of two, so that the order of deletion can change, and `from`.
fn moments<I>(pods: &[Candidate<'_, I>], from: Timestamp, to: Timestamp) -> BTreeSet<Timestamp> {
    let times = pods
        .iter()
        .flat_map(|pod| [pod.state.ready.since, pod.state.created]);
    let times: BTreeSet<Timestamp> = times.flatten().collect();
    let passes = times
        .into_iter()
        .flat_map(|time| (0..63).map(move |power| time.plus(Span(1 << power))));
    let passes = passes.filter(|at| (from..=to).contains(at));
    passes.chain([from]).collect()
}

fn spend(looks: &mut usize, count: usize) -> Option<()> {
    *looks = looks.checked_sub(count)?;
    Some(())
}
