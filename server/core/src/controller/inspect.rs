//! What a person may ask a controller.

use std::{collections::BTreeSet, sync::Arc};

use super::{Controller, Sizes};
use crate::{
    decide::{decide, listed},
    index::{Entry, Set, SetId},
    object::{Pod, ReplicaSet, Status, Timestamp},
    report::{Decision, Reason, Rule, State, View},
};

impl Controller {
    /// Returns how much is known, queued and in flight.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let counters = self.queue.counters();
        Sizes {
            pods: self.index.pod_count(),
            replica_sets: self.index.set_count(),
            batches_in_flight: self.flights.len(),
            queued: self.queue.depth(),
            quarantined: self.quarantined.len(),
            adds: counters.adds,
            retries: counters.retries,
        }
    }

    /// Returns up to `limit` ReplicaSets after `after` in the order of namespace and name, for inspection.
    #[must_use]
    pub fn views(&self, now: Timestamp, after: Option<(&str, &str)>, limit: usize) -> Vec<View> {
        self.index
            .sets_after(after)
            .take(limit)
            .filter_map(|id| self.view_of(now, id))
            .collect()
    }

    /// Returns one ReplicaSet for inspection.
    #[must_use]
    pub fn view(&self, now: Timestamp, namespace: &str, name: &str) -> Option<View> {
        self.view_of(now, self.index.set_named(namespace, name)?)
    }

    fn view_of(&self, now: Timestamp, id: SetId) -> Option<View> {
        let set = self.index.set(id)?;
        let (state, reason) = self.state(now, id, set);
        let flight = self
            .runs
            .get(&id)
            .and_then(|run| self.flights.get(&run.batch));
        Some(View {
            key: set.object.key.clone(),
            replicas: set.object.replicas,
            status: Status {
                replicas: set.counts.active,
                fully_labeled_replicas: set.counts.fully_labeled,
                ready_replicas: set.counts.ready,
                available_replicas: set.counts.available,
                terminating_replicas: Some(set.counts.terminating),
                ..set.object.status.clone()
            },
            state,
            reasons: vec![reason],
            in_flight: flight.map(|flight| {
                (
                    flight.answered.len(),
                    flight.answered.len() - flight.remaining,
                )
            }),
            next_sync: self.queue.due(id),
            failures: self.queue.failures(id),
        })
    }

    fn state(&self, now: Timestamp, id: SetId, set: &Set) -> (State, Reason) {
        let say = |state, rule, detail: String| (state, Reason { rule, detail });
        if let Err(quarantine) = &set.object.selector {
            return say(
                State::Quarantined,
                Rule::Quarantined,
                format!("{}: {}", quarantine.field, quarantine.detail),
            );
        }
        if !self.is_view_whole() {
            return say(
                State::Waiting,
                Rule::PartialView,
                "a list is not complete".to_owned(),
            );
        }
        if let Some(flight) = self
            .runs
            .get(&id)
            .and_then(|run| self.flights.get(&run.batch))
        {
            return say(
                State::Acting,
                Rule::BatchInFlight,
                format!(
                    "waiting for {} of {} outcomes",
                    flight.remaining,
                    flight.answered.len()
                ),
            );
        }
        if self.queue.is_queued(id) || self.runs.contains_key(&id) {
            return say(State::Queued, difference(set), "a sync is due".to_owned());
        }
        let due = self
            .queue
            .due(id)
            .map(|due| due.since(now).0.max(0) / 1_000_000);
        match (due, self.queue.failures(id)) {
            (Some(wait), failures) if failures > 0 => say(
                State::Waiting,
                Rule::Backoff,
                format!("{failures} failures in a row, next try in {wait} ms"),
            ),
            (Some(wait), _) => say(
                State::Waiting,
                Rule::AvailabilityCheck,
                format!("availability is looked at in {wait} ms"),
            ),
            (None, _) if set.object.deleting => say(
                State::InSync,
                Rule::BeingDeleted,
                "its pods are left alone".to_owned(),
            ),
            (None, _) if set.counts.active != set.object.replicas => say(
                State::Waiting,
                difference(set),
                "waiting for the next event".to_owned(),
            ),
            (None, _) => say(State::InSync, Rule::InSync, "as wanted".to_owned()),
        }
    }

    /// Returns the decision for a known ReplicaSet if `replicas` pods were wanted, all operations taken to succeed. Changes nothing.
    #[must_use]
    pub fn simulate(
        &self,
        now: Timestamp,
        namespace: &str,
        name: &str,
        replicas: Option<i32>,
    ) -> Option<Decision> {
        let (mut sets, pods) = self.surroundings(namespace, name)?;
        let asked = sets
            .iter_mut()
            .find(|set| *set.key.name == *name && *set.key.namespace == *namespace);
        if let (Some(set), Some(replicas)) = (asked, replicas) {
            set.replicas = replicas;
        }
        decide(now, self.config.clone(), (namespace, name), sets, pods)
    }

    /// Returns the counts of a known ReplicaSet taken anew from the pods: the door through which tests check those kept incrementally.
    #[must_use]
    pub fn recount(&self, now: Timestamp, namespace: &str, name: &str) -> Option<Status> {
        let (sets, pods) = self.surroundings(namespace, name)?;
        let fresh = listed(now.max(self.clock), self.config.clone(), sets, pods);
        fresh.view(now, namespace, name).map(|view| view.status)
    }

    /// Returns the ReplicaSets and pods that a decision on this ReplicaSet reads: those of its namespace and of its siblings'.
    fn surroundings(&self, namespace: &str, name: &str) -> Option<(Vec<ReplicaSet>, Vec<Pod>)> {
        let id = self.index.set_named(namespace, name)?;
        let siblings = self
            .index
            .siblings(id)
            .map(|set| &*set.object.key.namespace);
        let namespaces: BTreeSet<&str> = siblings.chain([namespace]).collect();
        let sets = namespaces
            .iter()
            .flat_map(|namespace| self.index.sets_of(namespace));
        let pods = namespaces.iter().flat_map(|namespace| {
            let shared: Arc<str> = (*namespace).into();
            self.index
                .pods_of(namespace)
                .map(move |entry| self.pod(Arc::clone(&shared), entry))
        });
        Some((sets.map(|set| set.object.clone()).collect(), pods.collect()))
    }

    fn pod(&self, namespace: Arc<str>, entry: &Entry) -> Pod {
        Pod {
            namespace,
            name: entry.name.clone(),
            uid: entry.uid.clone(),
            version: entry.version,
            labels: (**self.index.labels(entry)).clone(),
            controller: entry.controller.as_deref().cloned(),
            created: entry.created,
            deleting: entry.deleting,
            node: entry.node.clone(),
            phase: entry.phase,
            ready: entry.ready,
            deletion_cost: entry.deletion_cost,
            restarts: entry.restarts,
            sidecar_restarts: entry.sidecar_restarts,
        }
    }
}

fn difference(set: &Set) -> Rule {
    match set.counts.active.cmp(&set.object.replicas) {
        std::cmp::Ordering::Less => Rule::TooFewReplicas,
        std::cmp::Ordering::Greater => Rule::TooManyReplicas,
        std::cmp::Ordering::Equal => Rule::InSync,
    }
}
