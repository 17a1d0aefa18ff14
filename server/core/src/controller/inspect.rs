//! What a person may ask a controller.

use std::collections::BTreeSet;

use super::{Controller, in_flight::SentBatch};
use crate::{
    batch::{Action, BatchId},
    decide::{decide, listed},
    index::{Set, SetId},
    object::{Pod, ReplicaSet, Status, Timestamp},
    queue::Unfinished,
    reason::{Reason, Rule},
    report::{Decision, State, View},
};

/// How much a controller holds, and what its queue has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Pods.
    pub pods: usize,
    /// ReplicaSets.
    pub replica_sets: usize,
    /// Batches in flight.
    pub batches_in_flight: usize,
    /// ReplicaSets that are queued (`workqueue_depth`).
    pub queued: usize,
    /// ReplicaSets whose sync has begun and not ended.
    pub syncing: usize,
    /// ReplicaSets that are quarantined.
    pub quarantined: usize,
    /// Keys ever added to the queue (`workqueue_adds_total`).
    pub adds: u64,
    /// Delayed adds ever, availability checks included (`workqueue_retries_total`).
    pub retries: u64,
}

impl Controller {
    /// Returns how much is known, queued and in flight.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let counters = self.queue.counters();
        Sizes {
            pods: self.index.pod_count(),
            replica_sets: self.index.set_count(),
            batches_in_flight: self.in_flight.count(),
            queued: self.queue.depth(),
            syncing: self.queue.processing(),
            quarantined: self.quarantined.len(),
            adds: counters.adds,
            retries: counters.retries,
        }
    }

    /// Returns how old the syncs are that have begun and not ended. Costs a look at each of them.
    #[must_use]
    pub fn unfinished(&self, now: Timestamp) -> Unfinished {
        self.queue.unfinished(now)
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

    /// Returns the action of a batch in flight.
    #[must_use]
    pub fn action(&self, batch: BatchId) -> Option<&Action> {
        Some(&self.in_flight.get(batch)?.action)
    }

    /// Returns the action in flight for a ReplicaSet.
    #[must_use]
    pub fn action_on(&self, namespace: &str, name: &str) -> Option<&Action> {
        let sent = self.sent_to(self.index.set_named(namespace, name)?)?;
        Some(&sent.action)
    }

    fn view_of(&self, now: Timestamp, id: SetId) -> Option<View> {
        let set = self.index.set(id)?;
        let (state, reasons) = self.state(now, id, set);
        let counts = set.counts_at(now);
        Some(View {
            key: set.object.key.clone(),
            replicas: set.object.replicas,
            status: Status {
                replicas: counts.active,
                fully_labeled_replicas: counts.fully_labeled,
                ready_replicas: counts.ready,
                available_replicas: counts.available,
                terminating_replicas: Some(counts.terminating),
                ..set.object.status.clone()
            },
            state,
            reasons,
            in_flight: self.sent_to(id).map(SentBatch::progress),
            next_sync: self.queue.due(id),
            failures: self.queue.failures(id),
        })
    }

    fn sent_to(&self, id: SetId) -> Option<&SentBatch> {
        self.in_flight.get(self.running.get(&id)?.batch)
    }

    /// Returns how a ReplicaSet stands, and why: the strongest reason first.
    fn state(&self, now: Timestamp, id: SetId, set: &Set) -> (State, Vec<Reason>) {
        let say = |state, rule, detail: String| (state, vec![Reason { rule, detail }]);
        if let Err(quarantine) = &set.object.selector {
            return say(
                State::Quarantined,
                Rule::Quarantined,
                quarantine.to_string(),
            );
        }
        if !self.is_view_whole() {
            return say(
                State::Waiting,
                Rule::PartialView,
                "a list is not complete".to_owned(),
            );
        }
        if let Some(sent) = self.sent_to(id) {
            let (operations, answered) = sent.progress();
            let detail = format!("{answered} of {operations} outcomes have come");
            return say(State::Acting, Rule::BatchInFlight, detail);
        }
        if self.waiting.contains_key(&id) {
            let detail = "an outcome did not carry the object: waiting for a list".to_owned();
            return say(State::Waiting, Rule::ViewOlderThanWrite, detail);
        }
        let parked = self.parked.as_ref().is_some_and(|parked| parked.set == id);
        if parked || self.running.contains_key(&id) || self.queue.is_queued(id) {
            return (State::Queued, vec![difference(set)]);
        }
        let waits: Vec<_> = self.waits(now, id, set).collect();
        if !waits.is_empty() {
            return (State::Waiting, waits);
        }
        if set.object.deleting {
            return say(
                State::InSync,
                Rule::BeingDeleted,
                "its pods are left alone".to_owned(),
            );
        }
        let state = if set.surplus() == 0 {
            State::InSync
        } else {
            State::Waiting
        };
        (state, vec![difference(set)])
    }

    /// Returns what a ReplicaSet waits for.
    fn waits(&self, now: Timestamp, id: SetId, set: &Set) -> impl Iterator<Item = Reason> {
        let failures = self.queue.failures(id);
        let due = self.queue.due(id).map(|due| {
            let wait = due.since(now).0.max(0) / 1_000_000;
            let (rule, detail) = if failures > 0 {
                (
                    Rule::Backoff,
                    format!("{failures} failures in a row, next try in {wait} ms"),
                )
            } else {
                (
                    Rule::AvailabilityCheck,
                    format!("availability is looked at in {wait} ms"),
                )
            };
            Reason { rule, detail }
        });
        let lacks = due.is_some() && set.surplus() != 0 && !set.object.deleting;
        due.into_iter().chain(lacks.then(|| difference(set)))
    }

    /// Returns the decision for a known ReplicaSet if `replicas` pods were wanted, all operations taken to succeed. Changes nothing.
    ///
    /// The snapshot that it is made from is what is known, also while a list is not complete.
    #[must_use]
    pub fn simulate(
        &self,
        now: Timestamp,
        namespace: &str,
        name: &str,
        replicas: Option<i32>,
    ) -> Option<Decision> {
        let (mut sets, pods) = self.surroundings(namespace, name)?;
        let mut asked = sets.iter_mut();
        let asked = asked.find(|set| *set.key.name == *name && *set.key.namespace == *namespace);
        if let (Some(set), Some(replicas)) = (asked, replicas) {
            set.replicas = replicas;
        }
        decide(
            now.max(self.clock),
            self.config.clone(),
            (namespace, name),
            sets,
            pods,
        )
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
        let pods = namespaces
            .iter()
            .flat_map(|namespace| self.index.pods_of(namespace));
        let pods = pods.map(|entry| self.index.pod_object(entry));
        Some((sets.map(|set| set.object.clone()).collect(), pods.collect()))
    }
}

/// Says how many pods there are against how many are wanted.
fn difference(set: &Set) -> Reason {
    let rule = match set.surplus() {
        0 => {
            return Reason {
                rule: Rule::InSync,
                detail: "as many pods as wanted".to_owned(),
            };
        }
        ..0 => Rule::TooFewReplicas,
        1.. => Rule::TooManyReplicas,
    };
    Reason {
        rule,
        detail: format!("{} active pods, {} wanted", set.counts.active, set.wanted()),
    }
}
