//! What a person may ask a controller.

use std::{collections::BTreeSet, sync::Arc};

use super::{Controller, in_flight::SentBatch};
use crate::{
    batch::{ActionKind, BatchId},
    config::Config,
    decide::{Interrupted, decide_while, listed},
    index::{Entry, Group, Set, SetId},
    object::{Key, OwnerReference, Pod, ReplicaSet, Status, Timestamp},
    queue::Unfinished,
    reason::{Reason, Rule},
    report::{Decision, State, View},
    wording::{self, count},
};

/// How much a controller holds, and what its queue has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Pods.
    pub pods: usize,
    /// ReplicaSets.
    pub replica_sets: usize,
    /// The most pods that a ReplicaSet has had.
    pub largest_replica_set: usize,
    /// Batches in flight.
    pub batches_in_flight: usize,
    /// ReplicaSets that are queued (`workqueue_depth`).
    pub queued: usize,
    /// ReplicaSets whose sync has begun and not ended.
    pub syncing: usize,
    /// ReplicaSets that are quarantined.
    pub quarantined: usize,
    /// ReplicaSets that have had too few or too many pods for 10 minutes.
    pub miscounted_for_long: usize,
    /// ReplicaSets that have had as many pods as are wanted for 10 minutes, of which not all were available.
    pub unavailable_for_long: usize,
    /// About how many bytes all that is known takes.
    pub bytes: usize,
    /// Keys ever added to the queue (`workqueue_adds_total`).
    pub adds: u64,
    /// Delayed adds ever, availability checks included (`workqueue_retries_total`).
    pub retries: u64,
}

/// What a decision on one ReplicaSet reads, apart from its controller so that it can be made elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    namespace: Arc<str>,
    name: Arc<str>,
    now: Timestamp,
    config: Config,
    replica_sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
}

impl Controller {
    /// Returns whether a batch in flight has had no outcome after `since`, though all have come of one that was sent later. It looks through all
    /// batches in flight.
    #[must_use]
    pub fn is_batch_overlooked(&self, since: Timestamp) -> bool {
        self.in_flight.is_any_overlooked(since)
    }

    /// Returns how much is known, queued and in flight.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let counters = self.queue.counters();
        Sizes {
            pods: self.index.pod_count(),
            replica_sets: self.index.set_count(),
            largest_replica_set: self.index.largest_set(),
            batches_in_flight: self.in_flight.count(),
            queued: self.queue.depth(),
            syncing: self.queue.processing(),
            quarantined: self.quarantined.len(),
            miscounted_for_long: self.miscounted.long(),
            unavailable_for_long: self.unavailable.long(),
            bytes: self.index.bytes()
                + self.in_flight.bytes()
                + self.obstacles.bytes()
                + self.miscounted.bytes()
                + self.unavailable.bytes(),
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

    /// Returns what a batch in flight does.
    #[must_use]
    pub fn action(&self, batch: BatchId) -> Option<ActionKind> {
        Some(self.in_flight.get(batch)?.operations.kind())
    }

    /// Returns the ReplicaSet of a batch in flight.
    #[must_use]
    pub fn key(&self, batch: BatchId) -> Option<&Key> {
        Some(&self.in_flight.get(batch)?.key)
    }

    /// Returns what the batch in flight for a ReplicaSet does.
    #[must_use]
    pub fn action_on(&self, namespace: &str, name: &str) -> Option<ActionKind> {
        let sent = self.sent_to(self.index.set_named(namespace, name)?)?;
        Some(sent.operations.kind())
    }

    fn view_of(&self, now: Timestamp, id: SetId) -> Option<View> {
        let set = self.index.set(id)?;
        let (state, reasons) = self.state(now, id, set);
        let counts = set.counts_at(now);
        let lacks = set.unconverged_since().is_some() && counts.ready < counts.active;
        let mut pods = self.index.active_pods(id).filter(|_| lacks);
        let unready = pods.find(|(_, pod)| !pod.state.ready.ready);
        Some(View {
            key: set.object.key.clone(),
            replicas: set.object.replicas,
            template_labels: set.object.template_labels.clone(),
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
            unconverged_since: set.unconverged_since(),
            unready: unready.map(|(_, pod)| Arc::clone(&pod.name)),
        })
    }

    fn sent_to(&self, id: SetId) -> Option<&SentBatch> {
        self.in_flight.get(self.running.get(&id)?.batch)
    }

    /// Returns how a ReplicaSet stands, and why: the strongest reason first. What held its last attempt back is said until one gets through.
    fn state(&self, now: Timestamp, id: SetId, set: &Set) -> (State, Vec<Reason>) {
        let (state, mut reasons) = self.standing(now, id, set);
        if !matches!(state, State::InSync | State::Quarantined) {
            reasons.extend(self.obstacles.get(id).cloned());
        }
        (state, reasons)
    }

    fn standing(&self, now: Timestamp, id: SetId, set: &Set) -> (State, Vec<Reason>) {
        let say = |state, rule, detail| (state, vec![Reason { rule, detail }]);
        if let Err(quarantine) = &set.object.selector {
            return say(
                State::Quarantined,
                Rule::Quarantined,
                quarantine.to_string().into(),
            );
        }
        if !self.is_view_whole() {
            return say(
                State::Waiting,
                Rule::PartialView,
                "a list is not complete".into(),
            );
        }
        if let Some(sent) = self.sent_to(id) {
            let (operations, answered) = sent.progress();
            let detail = format!("{answered} of {operations} outcomes have come").into();
            return say(State::Acting, Rule::BatchInFlight, detail);
        }
        if self.waiting.contains_key(&id) {
            let detail = "an outcome did not carry the object: waiting for a list".into();
            return say(State::Waiting, Rule::ViewOlderThanWrite, detail);
        }
        let without_room = self.without_room.iter().map(|(ready, _)| ready);
        let mut ready = without_room.chain(&self.status_without_room);
        if ready.any(|ready| ready.set == id)
            || self.running.contains_key(&id)
            || self.queue.is_queued(id)
        {
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
                "its pods are left alone".into(),
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
            let wait = wording::until(due, now);
            let (rule, detail) = if let Some((back_off, _)) = set.closed_creates(now) {
                let Reason { rule, detail } = back_off.reason();
                (rule, format!("{detail}; next try in {wait}"))
            } else if failures > 0 {
                (
                    Rule::Backoff,
                    format!(
                        "{} in a row, next try in {wait}",
                        count(failures, "failure")
                    ),
                )
            } else {
                (
                    Rule::AvailabilityCheck,
                    format!("availability is looked at in {wait}"),
                )
            };
            let detail = detail.into();
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
        let surroundings = self.surroundings(now, namespace, name, usize::MAX);
        surroundings.decide(replicas, &|| true).unwrap_or(None)
    }

    /// Returns the counts of a known ReplicaSet taken anew from the pods: the door through which tests check those kept incrementally.
    #[must_use]
    pub fn recount(&self, now: Timestamp, namespace: &str, name: &str) -> Option<Status> {
        let around = self.surroundings(now, namespace, name, usize::MAX);
        let (sets, pods) = (around.replica_sets, around.pods);
        let fresh = listed(around.now, around.config, sets, pods, &|| true).ok()?;
        fresh.view(now, namespace, name).map(|view| view.status)
    }

    /// Returns what a decision on a ReplicaSet reads: of more than `pods_max` pods only so many, and one more.
    #[must_use]
    pub fn surroundings(
        &self,
        now: Timestamp,
        namespace: &str,
        name: &str,
        pods_max: usize,
    ) -> Surroundings {
        let mut around = Surroundings {
            namespace: namespace.into(),
            name: name.into(),
            now: now.max(self.clock),
            config: self.config.clone(),
            ..Surroundings::default()
        };
        let Some(id) = self.index.set_named(namespace, name) else {
            return around;
        };
        let own = self.index.set(id).into_iter();
        let siblings = self.index.siblings(id).filter(|set| {
            let Key {
                namespace, name, ..
            } = &set.object.key;
            (&**namespace, &**name) != (&*around.namespace, &*around.name)
        });
        let related: Vec<&Set> = own.chain(siblings).collect();
        let namespaces = related.iter().map(|set| &*set.object.key.namespace);
        let namespaces: BTreeSet<&str> = namespaces.collect();
        let pods = namespaces
            .into_iter()
            .flat_map(|namespace| self.index.pods_in(namespace));
        let read = pods.filter(|pod| {
            let group = self.index.group_of(pod);
            related.iter().any(|set| is_read(set, group, pod))
        });
        let read = read.take(pods_max.saturating_add(1));
        around.pods = read.map(|pod| self.index.pod_object(pod)).collect();
        around.replica_sets = related.iter().map(|set| set.object.clone()).collect();
        around
    }
}

/// Returns whether a decision on a ReplicaSet or one of its siblings reads a pod: it is theirs, their selector matches it, or it has
/// a name that the ReplicaSet could choose.
fn is_read(set: &Set, group: &Group, pod: &Entry) -> bool {
    let object = &set.object;
    let is_owner = |owner: &OwnerReference| owner.uid == object.key.uid;
    object.key.namespace == group.namespace
        && (pod.controller.as_deref().is_some_and(is_owner)
            || pod.name.starts_with(set.name_base())
            || set
                .selector()
                .is_some_and(|selector| selector.matches(&group.labels)))
}

// === impl Surroundings ===

impl Surroundings {
    /// Returns how many objects have been gathered.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.replica_sets.len() + self.pods.len()
    }

    /// Returns the pods that name the ReplicaSet as their controller, among those that have been gathered.
    pub fn owned(&self) -> impl Iterator<Item = &Pod> {
        let own = self.replica_sets.first().map(|set| &set.key.uid);
        self.pods.iter().filter(move |pod| {
            let owner = pod.controller.as_ref();
            owner.is_some_and(|owner| Some(&owner.uid) == own)
        })
    }

    /// Returns the ReplicaSet itself, if it is there, and then those with the same owner.
    #[must_use]
    pub fn replica_sets(&self) -> &[ReplicaSet] {
        &self.replica_sets
    }

    /// Returns a pod of its namespace by its name, for a decision on a pod that is otherwise.
    pub fn pod_mut(&mut self, name: &str) -> Option<&mut Pod> {
        let namespace = &*self.namespace;
        let mut pods = self.pods.iter_mut();
        pods.find(|pod| &*pod.namespace == namespace && &*pod.name == name)
    }

    /// Returns the decision if `replicas` pods were wanted, or as many as are; `None` if there is no such ReplicaSet.
    ///
    /// # Errors
    /// If `go_on` ended it.
    pub fn decide(
        self,
        replicas: Option<i32>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Decision>, Interrupted> {
        let Self {
            namespace,
            name,
            now,
            config,
            mut replica_sets,
            pods,
        } = self;
        let mut asked = replica_sets.iter_mut();
        let asked = asked.find(|set| set.key.name == name && set.key.namespace == namespace);
        if let (Some(set), Some(replicas)) = (asked, replicas) {
            set.replicas = replicas;
        }
        decide_while(now, config, (&namespace, &name), replica_sets, pods, go_on)
    }
}

/// Says how many pods there are against how many are wanted.
fn difference(set: &Set) -> Reason {
    let rule = match set.surplus() {
        0 => {
            return Reason {
                rule: Rule::InSync,
                detail: "as many pods as wanted".into(),
            };
        }
        ..0 => Rule::TooFewReplicas,
        1.. => Rule::TooManyReplicas,
    };
    Reason {
        rule,
        detail: format!(
            "{}, {} wanted",
            count(set.counts.active, "active pod"),
            set.wanted()
        )
        .into(),
    }
}
