//! The effect of a change of the cluster on its ReplicaSets. The same state machine gets a copy of the affected ReplicaSets and the change.
//! It runs until it knows how many pods each of them lacks. There is no second algorithm.

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

/// Some ReplicaSets of a cluster with the pods that they own or may adopt, independent of their controller.
#[derive(Clone, Debug, Default)]
pub struct ReplicaSetsCopy {
    now: Timestamp,
    config: Config,
    replica_sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    /// The last copied ReplicaSet, if further ReplicaSets had no room.
    cut_after: Option<Key>,
    /// Whether the first ReplicaSet had no room.
    is_too_large: bool,
}

/// The effect of a change on one ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impact {
    /// The ReplicaSet.
    pub key: Key,
    /// The number of desired pods.
    pub replicas: i32,
    /// The number of active pods before the change.
    pub active: i32,
    /// The active pods that the change deletes, sorted.
    pub deleted: Vec<Arc<str>>,
    /// The number of missing pods after the change. The server creates as many, if the cluster accepts them.
    pub creates: i64,
    /// The number of surplus pods after the change, which the server deletes.
    pub surplus: i64,
}

/// Copies ReplicaSets with their pods, as far as there is room.
struct Gathered<'a> {
    index: &'a Index,
    copy: ReplicaSetsCopy,
    /// The orphans that a copied ReplicaSet may adopt. Several ReplicaSets may adopt the same orphan.
    orphans: BTreeSet<u32>,
    objects_max: usize,
}

// === impl Gathered ===

impl<'a> Gathered<'a> {
    fn new(controller: &'a Controller, now: Timestamp, objects_max: usize) -> Self {
        let config = Config {
            names: NameSeed::default(),
            // The first create says how many pods are missing.
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

    /// Copies a ReplicaSet with its pods. Returns whether there was room for it.
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
    /// Copies up to `limit` ReplicaSets with an active pod on a node, after `after` in the order of namespace and name. The copy has at
    /// most `objects_max` objects. The cost is a step for each group of pods with the same labels, and for each pod of the copied
    /// ReplicaSets.
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

    /// Copies the ReplicaSets of a namespace that have something to create, delete or adopt, up to `objects_max` objects. Also returns the
    /// number of pods of the namespace that have not ended. The cost is a step for each pod of the namespace.
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
            let is_left_alone = set.object.deleting || set.selector().is_none();
            let is_settled = is_left_alone
                || (set.surplus() == 0
                    && set.releases.is_empty()
                    && index.adoptable(id).is_empty());
            if !is_settled && !gathered.take(id) {
                break;
            }
        }
        let pods = index.pods_in(namespace);
        let counted = pods.filter(|pod| !pod.state.phase.has_ended()).count();
        (gathered.copy, counted)
    }

    /// The number of copied objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.replica_sets.len() + self.pods.len()
    }

    /// Whether nothing was copied, since the first ReplicaSet had more pods than there was room for.
    #[must_use]
    pub const fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// The last copied ReplicaSet, if further ReplicaSets had no room.
    #[must_use]
    pub const fn cut_after(&self) -> Option<&Key> {
        self.cut_after.as_ref()
    }

    /// Returns the effect of a drain of a node on each ReplicaSet, by key. Leaves out ReplicaSets without an active pod on the node.
    ///
    /// # Errors
    /// If `go_on` ended the computation.
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
            // Without a version, the pod counts as the latest news.
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

    /// Returns the creates and deletes of each ReplicaSet in its current state, by key.
    ///
    /// # Errors
    /// If `go_on` ended the computation.
    pub fn settle(self, go_on: &dyn Fn() -> bool) -> Result<Vec<Impact>, Interrupted> {
        let now = self.now;
        let (mut controller, mut impacts) = self.start(go_on)?;
        run(now, &mut controller, &mut impacts, go_on)?;
        let mut impacts: Vec<_> = impacts.into_values().collect();
        impacts.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(impacts)
    }

    /// Creates a controller with the objects, and notes the state of each ReplicaSet before the change.
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

/// Runs all syncs until each ReplicaSet has reported its missing or surplus pods. The first decision of a ReplicaSet reports them all; the
/// rest would only follow one by one.
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
