//! The effect of a change of the cluster on its ReplicaSets. The same state machine gets a copy of the affected ReplicaSets and the change.
//! It runs until it knows how many pods each of them lacks. There is no second algorithm.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Controller;
use crate::{
    batch::Action,
    config::Config,
    decide::{Interrupted, check, listed, succeed},
    event::Event,
    index::{SetId, cluster},
    names::NameSeed,
    object::{Key, Pod, ReplicaSet, Timestamp},
};

/// Some ReplicaSets of a cluster with the pods that they own or may adopt, independent of their controller.
#[derive(Clone, Debug, Default)]
pub struct ReplicaSetsCopy {
    now: Timestamp,
    config: Config,
    replica_sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    /// The last copied ReplicaSet, if further ReplicaSets had no room.
    pub cut_after: Option<Key>,
    /// Whether nothing was copied, since the first ReplicaSet had more pods than there was room for.
    pub is_too_large: bool,
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
        let sets = cluster::sets_on(&controller.index, node, after).take(limit);
        Self::gather(controller, now, sets, objects_max)
    }

    /// Copies the ReplicaSets of a namespace that have something to create, delete or adopt, up to `objects_max` objects. Also returns the
    /// number of pods of the namespace that a ResourceQuota counts. The cost is a step for each pod of the namespace.
    #[must_use]
    pub fn unsettled_in(
        controller: &Controller,
        now: Timestamp,
        namespace: &str,
        objects_max: usize,
    ) -> (Self, usize) {
        let index = &controller.index;
        let unsettled = cluster::sets_in(index, namespace).filter(|(id, set)| {
            let is_left_alone = set.object.deleting || set.selector().is_none();
            let is_settled = || {
                let is_adopting = !index.adoptable(*id).is_empty();
                set.surplus() == 0 && set.releases.is_empty() && !is_adopting
            };
            !is_left_alone && !is_settled()
        });
        let sets = unsettled.map(|(id, _)| id);
        let counted = index.charged_in(namespace, now.max(controller.clock));
        let copy = Self::gather(controller, now, sets, objects_max);
        (copy, counted)
    }

    /// Copies ReplicaSets with their pods, as far as there is room.
    fn gather(
        controller: &Controller,
        now: Timestamp,
        sets: impl Iterator<Item = SetId>,
        objects_max: usize,
    ) -> Self {
        let index = &controller.index;
        let config = Config {
            names: NameSeed::default(),
            // The first create says how many pods are missing.
            burst_replicas: 1,
            operations_in_flight_max: usize::MAX,
            ..controller.config.clone()
        };
        let mut copy = Self {
            now: now.max(controller.clock),
            config,
            ..Self::default()
        };
        // Several ReplicaSets may adopt the same orphan.
        let mut orphans = BTreeSet::new();
        for id in sets {
            let Some(set) = index.set(id) else { continue };
            let mut adoptable = index.adoptable(id);
            adoptable.retain(|id| !orphans.contains(id));
            if copy.objects() + 1 + set.owned.len() + adoptable.len() > objects_max {
                copy.cut_after = copy.replica_sets.last().map(|last| last.key.clone());
                copy.is_too_large = copy.cut_after.is_none();
                break;
            }
            let pods = set.owned.iter().chain(&adoptable);
            let pods = pods.filter_map(|id| index.pod(*id));
            copy.pods.extend(pods.map(|pod| index.pod_object(pod)));
            copy.replica_sets.push(set.object.clone());
            orphans.extend(adoptable);
        }
        copy
    }

    /// The number of copied objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.replica_sets.len() + self.pods.len()
    }

    /// Returns the effect of a drain of a node on each ReplicaSet, by key. Leaves out ReplicaSets without an active pod on the node.
    ///
    /// # Errors
    /// If `go_on` ended the computation.
    pub fn drain(self, node: &str, go_on: &dyn Fn() -> bool) -> Result<Vec<Impact>, Interrupted> {
        let leaving = self.pods.iter();
        let leaving = leaving.filter(|pod| pod.node.as_deref() == Some(node));
        let leaving: Vec<_> = leaving.cloned().collect();
        let mut impacts = self.decide(leaving, go_on)?;
        impacts.retain(|impact| !impact.deleted.is_empty());
        Ok(impacts)
    }

    /// Returns the creates and deletes of each ReplicaSet in its current state, by key.
    ///
    /// # Errors
    /// If `go_on` ended the computation.
    pub fn settle(self, go_on: &dyn Fn() -> bool) -> Result<Vec<Impact>, Interrupted> {
        self.decide(Vec::new(), go_on)
    }

    /// Deletes pods, and returns the effect on each ReplicaSet, by key. The first decision of a ReplicaSet reports all its missing or
    /// surplus pods; the rest would only follow one by one.
    fn decide(
        self,
        leaving: Vec<Pod>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Vec<Impact>, Interrupted> {
        let now = self.now;
        let mut controller = listed(now, self.config, self.replica_sets, self.pods, go_on)?;
        let mut impacts = BTreeMap::new();
        for (id, set) in &controller.index.sets {
            let before = Impact {
                key: set.object.key.clone(),
                replicas: set.wanted(),
                active: set.counts.active,
                deleted: Vec::new(),
                creates: 0,
                surplus: 0,
            };
            impacts.insert(*id, before);
        }
        if !leaving.is_empty() {
            controller.queue.clear();
        }
        for mut pod in leaving {
            check(go_on)?;
            if let Some(id) = cluster::replica_of(&controller.index, &pod.namespace, &pod.name)
                && let Some(impact) = impacts.get_mut(&id)
            {
                impact.deleted.push(Arc::clone(&pod.name));
            }
            // Without a version, the pod counts as the latest news.
            pod.version = None;
            pod.state.deleting = true;
            controller.handle_event(now, Event::PodApplied(pod));
        }
        while let Some(batch) = controller.poll_batch(now) {
            check(go_on)?;
            while controller.poll_report().is_some() {}
            match &batch.action {
                Action::Create { .. } | Action::Delete(_) => {
                    let (namespace, name) = (&batch.key.namespace, &batch.key.name);
                    if let Some(id) = controller.index.set_named(namespace, name)
                        && let Some(set) = controller.index.set(id)
                        && let Some(impact) = impacts.get_mut(&id)
                    {
                        impact.creates = (-set.surplus()).max(0);
                        impact.surplus = set.surplus().max(0);
                    }
                }
                Action::Claim { .. } | Action::WriteStatus(_) => {
                    succeed(now, &mut controller, &batch);
                }
            }
        }
        let mut impacts: Vec<_> = impacts.into_values().collect();
        impacts.iter_mut().for_each(|impact| impact.deleted.sort());
        impacts.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(impacts)
    }
}
