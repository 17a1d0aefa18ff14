//! What a change of the cluster does to its ReplicaSets: the same machine, on a copy of those that are concerned, is told of the change and
//! polled until it knows how many pods each of them lacks. There is no second algorithm.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Controller;
use crate::{
    batch::{Action, Batch},
    config::Config,
    decide::{Interrupted, check, listed, succeed},
    event::Event,
    index::{Entry, Index, Set, SetId, cluster},
    names::NameSeed,
    object::{Key, Pod, PodState, ReplicaSet, Timestamp},
};

/// Some ReplicaSets of a cluster with the pods that they own or may adopt, apart from their controller.
#[derive(Clone, Debug, Default)]
pub struct ReplicaSetsCopy {
    now: Timestamp,
    config: Config,
    replica_sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    /// The last ReplicaSet, if others that were asked for had no room after it.
    cut_after: Option<Key>,
    /// Whether the first of them had no room at all.
    is_too_large: bool,
}

/// What a change does to one ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impact {
    /// The ReplicaSet.
    pub key: Key,
    /// How many pods are desired.
    pub replicas: i32,
    /// How many of its pods were active before.
    pub active: i32,
    /// The active pods that the change deletes, sorted.
    pub deleted: Vec<Arc<str>>,
    /// How many pods it lacks then: so many are created, if the cluster takes them.
    pub creates: i64,
    /// How many pods it has too many then: so many are deleted.
    pub surplus: i64,
}

/// Gathers ReplicaSets with their pods, as far as there is room.
struct Gathered<'a> {
    index: &'a Index,
    copy: ReplicaSetsCopy,
    /// The orphans that one of them may adopt; several may.
    orphans: BTreeSet<u32>,
    objects_max: usize,
}

// === impl Gathered ===

impl<'a> Gathered<'a> {
    fn new(controller: &'a Controller, now: Timestamp, objects_max: usize) -> Self {
        let config = Config {
            names: NameSeed::default(),
            // How many are lacking is known from the first of them.
            burst_replicas: 1,
            operations_in_flight_max: usize::MAX,
            ..controller.config.clone()
        };
        Self {
            index: &controller.index,
            copy: ReplicaSetsCopy {
                now: now.max(controller.clock),
                config,
                ..ReplicaSetsCopy::default()
            },
            orphans: BTreeSet::new(),
            objects_max,
        }
    }

    /// Copies a ReplicaSet with its pods; returns whether there was room for it.
    fn take(&mut self, id: SetId) -> bool {
        let Self { index, copy, .. } = self;
        let Some(set) = index.set(id) else {
            return true;
        };
        let adoptable = index.adoptable(id).into_iter();
        let orphans: Vec<_> = adoptable.filter(|id| !self.orphans.contains(id)).collect();
        let objects = copy.objects() + 1 + set.owned_count() + orphans.len();
        if objects > self.objects_max {
            copy.cut_after = copy.replica_sets.last().map(|last| last.key.clone());
            copy.is_too_large = copy.cut_after.is_none();
            return false;
        }
        let owned = cluster::owned_pods(index, id);
        let pods = owned.chain(orphans.iter().filter_map(|id| index.pod(*id)));
        copy.pods
            .extend(pods.map(|pod: &Entry| index.pod_object(pod)));
        copy.replica_sets.push(set.object.clone());
        self.orphans.extend(orphans);
        true
    }
}

// === impl ReplicaSetsCopy ===

impl ReplicaSetsCopy {
    /// Copies up to `limit` ReplicaSets with an active pod on a node, those after `after` in the order of namespace and name. Of more than
    /// `objects_max` objects it copies only so many. It looks at each group of pods with the same labels, and at
    /// the pods of the ReplicaSets that it copies.
    #[must_use]
    pub fn on_node(
        controller: &Controller,
        now: Timestamp,
        node: &str,
        after: (&str, &str),
        (limit, objects_max): (usize, usize),
    ) -> Self {
        let mut gathered = Gathered::new(controller, now, objects_max);
        for id in cluster::sets_on(&controller.index, node, after).take(limit) {
            if !gathered.take(id) {
                break;
            }
        }
        gathered.copy
    }

    /// Copies the ReplicaSets of a namespace that have something to create, delete or adopt, and returns how many pods of the namespace have
    /// not ended. Of more than `objects_max` objects it copies only so many. It looks at each pod of the namespace.
    #[must_use]
    pub fn unsettled_in(
        controller: &Controller,
        now: Timestamp,
        namespace: &str,
        objects_max: usize,
    ) -> (Self, usize) {
        let index = &controller.index;
        let mut gathered = Gathered::new(controller, now, objects_max);
        for (id, set) in cluster::sets_in(index, namespace) {
            let is_settled =
                set.surplus() == 0 && set.releases.is_empty() && index.adoptable(id).is_empty();
            if !is_settled && !gathered.take(id) {
                break;
            }
        }
        let pods = index.pods_in(namespace);
        let counted = pods.filter(|pod| !pod.state.phase.has_ended()).count();
        (gathered.copy, counted)
    }

    /// Returns how many objects have been copied.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.replica_sets.len() + self.pods.len()
    }

    /// Returns whether nothing was copied, as the first ReplicaSet had more pods than there was room for.
    #[must_use]
    pub const fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Returns the last ReplicaSet that was copied, if others that were asked for had no room after it.
    #[must_use]
    pub const fn cut_after(&self) -> Option<&Key> {
        self.cut_after.as_ref()
    }

    /// Returns what becomes of the ReplicaSets if all pods of a node are asked to go, by key. Those without an active pod there are left out.
    ///
    /// # Errors
    /// If `go_on` ended it.
    pub fn drain(self, node: &str, go_on: &dyn Fn() -> bool) -> Result<Vec<Impact>, Interrupted> {
        let now = self.now;
        let leaving = self.pods.iter();
        let leaving = leaving.filter(|pod| pod.node.as_deref() == Some(node));
        let leaving: Vec<_> = leaving.cloned().collect();
        let (mut controller, mut impacts) = self.start(go_on)?;
        controller.queue.clear();
        for pod in leaving {
            check(go_on)?;
            if let Some(id) = cluster::replica_of(&controller.index, &pod.namespace, &pod.name)
                && let Some(impact) = impacts.get_mut(&id)
            {
                impact.deleted.push(Arc::clone(&pod.name));
            }
            let state = PodState {
                deleting: true,
                ..pod.state
            };
            // Without a version it counts as the latest news.
            let asked_to_go = Pod {
                version: None,
                state,
                ..pod
            };
            controller.handle_event(now, Event::PodApplied(asked_to_go));
        }
        run(now, &mut controller, &mut impacts, go_on)?;
        let mut impacts: Vec<_> = impacts.into_values().collect();
        impacts.retain(|impact| !impact.deleted.is_empty());
        impacts.iter_mut().for_each(|impact| impact.deleted.sort());
        impacts.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(impacts)
    }

    /// Returns what the ReplicaSets create and delete as they are, by key.
    ///
    /// # Errors
    /// If `go_on` ended it.
    pub fn settle(self, go_on: &dyn Fn() -> bool) -> Result<Vec<Impact>, Interrupted> {
        let now = self.now;
        let (mut controller, mut impacts) = self.start(go_on)?;
        run(now, &mut controller, &mut impacts, go_on)?;
        let mut impacts: Vec<_> = impacts.into_values().collect();
        impacts.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(impacts)
    }

    /// Returns a controller that knows the objects, and the ReplicaSets as they are before the change.
    fn start(
        self,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(Controller, BTreeMap<SetId, Impact>), Interrupted> {
        let Self {
            now,
            config,
            replica_sets,
            pods,
            cut_after: _,
            is_too_large: _,
        } = self;
        let controller = listed(now, config, replica_sets, pods, go_on)?;
        let before = |set: &Set| Impact {
            key: set.object.key.clone(),
            replicas: set.wanted(),
            active: set.counts.active,
            deleted: Vec::new(),
            creates: 0,
            surplus: 0,
        };
        let sets = cluster::all_sets(&controller.index);
        let impacts = sets.map(|(id, set)| (id, before(set))).collect();
        Ok((controller, impacts))
    }
}

/// Lets all syncs run until each ReplicaSet has said how many pods it lacks or has too many. What is decided first says that; the rest would
/// only follow one by one.
fn run(
    now: Timestamp,
    controller: &mut Controller,
    impacts: &mut BTreeMap<SetId, Impact>,
    go_on: &dyn Fn() -> bool,
) -> Result<(), Interrupted> {
    while let Some(batch) = controller.poll_batch(now) {
        check(go_on)?;
        while controller.poll_report().is_some() {}
        match &batch.action {
            Action::Create { .. } | Action::Delete(_) => note(controller, impacts, &batch),
            Action::Claim { .. } | Action::WriteStatus(_) => succeed(now, controller, &batch),
        }
    }
    Ok(())
}

fn note(controller: &Controller, impacts: &mut BTreeMap<SetId, Impact>, batch: &Batch) {
    let Key {
        namespace, name, ..
    } = &batch.key;
    let id = controller.index.set_named(namespace, name);
    let set = id.and_then(|id| Some((controller.index.set(id)?, impacts.get_mut(&id)?)));
    if let Some((set, impact)) = set {
        impact.creates = (-set.surplus()).max(0);
        impact.surplus = set.surplus().max(0);
    }
}
