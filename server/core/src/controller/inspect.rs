//! Questions about a controller: sizes, ReplicaSets, and batches in flight.

use std::{borrow::Cow, cmp::Reverse, collections::BTreeMap, sync::Arc};

use super::{Inspect, in_flight::SentBatch};
use crate::{
    batch::{ActionKind, BatchId},
    held::Held,
    index::{Set, SetId},
    object::{Key, Span, Status, Timestamp},
    reason::{Reason, Rule},
    report::{NotReady, State, View},
    sync::{limits::blocking, manage::difference},
    wording::{self, count},
};

/// The maximum number of reasons in a view; one more entry counts the others.
const REASONS_MAX: usize = 8;

const LEFT_ALONE: &str = "its pods are left alone";

/// The number of objects of a controller, and the counters of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Pods.
    pub pods: usize,
    /// ReplicaSets.
    pub replica_sets: usize,
    /// The largest number of pods that any ReplicaSet has had.
    pub largest_replica_set: usize,
    /// Batches in flight.
    pub batches_in_flight: usize,
    /// Queued ReplicaSets (`workqueue_depth`).
    pub queued: usize,
    /// ReplicaSets with an unfinished sync.
    pub syncing: usize,
    /// Quarantined ReplicaSets.
    pub quarantined: usize,
    /// ReplicaSets that have had missing or surplus pods for 10 minutes.
    pub miscounted_for_long: usize,
    /// ReplicaSets that have had the desired number of pods for 10 minutes, of which some were not available.
    pub unavailable_for_long: usize,
    /// Objects whose content was forgotten for lack of memory: ReplicaSets, and groups of pods with the same labels.
    pub beyond_memory: usize,
    /// The approximate memory of everything that the session holds, in bytes.
    pub bytes: usize,
}

impl<'a> Inspect<'a> {
    /// Whether a batch in flight has had no outcome since `since`, although a batch sent later has all its outcomes. The cost is a step for
    /// each batch in flight.
    pub fn is_batch_overlooked(self, since: Timestamp) -> bool {
        self.0.in_flight.is_any_overlooked(since)
    }

    /// The number of pods, ReplicaSets, and nodes that the agent shows.
    pub fn objects(self) -> usize {
        let index = &self.0.index;
        index.pod_count + index.sets.len() + index.nodes.shown
    }

    /// The sizes of the view, the queue and the batches in flight.
    pub fn sizes(self) -> Sizes {
        Sizes {
            pods: self.0.index.pod_count,
            replica_sets: self.0.index.sets.len(),
            largest_replica_set: self.0.index.largest_set,
            batches_in_flight: self.0.in_flight.batches.len(),
            queued: self.0.queue.dirty.len(),
            syncing: self.0.queue.processing.len(),
            quarantined: self.0.quarantined.len(),
            miscounted_for_long: self.0.miscounted.long(),
            unavailable_for_long: self.0.unavailable.long(),
            beyond_memory: self.0.index.forgotten(),
            bytes: Held::bytes(self.0),
        }
    }

    /// The names of the nodes with active pods, in no order, each with the number of these pods. The cost is a step for each node.
    pub fn nodes(self) -> impl Iterator<Item = (&'a Arc<str>, u32)> {
        self.0.index.nodes.active()
    }

    /// The age of the oldest unfinished sync (`workqueue_longest_running_processor_seconds`). The cost is a step for each of them.
    pub fn longest_sync(self, now: Timestamp) -> Option<Span> {
        self.0.queue.longest(now)
    }

    /// Returns up to `limit` ReplicaSets after `after`, in the order of namespace and name.
    pub fn views(self, now: Timestamp, after: Option<(&str, &str)>, limit: usize) -> Vec<View> {
        let sets = self.0.index.sets_after(after).take(limit);
        sets.filter_map(|id| self.view_of(now, id)).collect()
    }

    /// The desired, active, ready and terminating pods of each ReplicaSet, and its operations in flight, in the order of namespace and
    /// name. The cost is a step for each ReplicaSet.
    pub fn counts(self) -> impl Iterator<Item = (&'a Key, [i64; 5])> {
        let sets = self.0.index.sets_after(None);
        sets.filter_map(move |id| {
            let set = self.0.index.set(id)?;
            let (sent, came) = self.sent_to(id).map_or((0, 0), SentBatch::progress);
            let in_flight = i64::try_from(sent - came).unwrap_or(i64::MAX);
            let pods = [set.counts.active, set.counts.ready, set.counts.terminating];
            let [active, ready, terminating] = pods.map(i64::from);
            let desired = i64::from(set.wanted());
            let counts = [desired, active, ready, terminating, in_flight];
            Some((&set.object.key, counts))
        })
    }

    /// Returns one ReplicaSet.
    pub fn view(self, now: Timestamp, namespace: &str, name: &str) -> Option<View> {
        self.view_of(now, self.0.index.set_named(namespace, name)?)
    }

    /// The kind of action of a batch in flight.
    pub fn action(self, batch: BatchId) -> Option<ActionKind> {
        Some(self.0.in_flight.get(batch)?.action)
    }

    /// The kind of action of the batch in flight for a ReplicaSet.
    pub fn action_on(self, namespace: &str, name: &str) -> Option<ActionKind> {
        let sent = self.sent_to(self.0.index.set_named(namespace, name)?)?;
        Some(sent.action)
    }

    fn view_of(self, now: Timestamp, id: SetId) -> Option<View> {
        let set = self.0.index.set(id)?;
        let (state, reasons) = self.state(now, id, set);
        let counts = set.counts_at(now);
        Some(View {
            key: set.object.key.clone(),
            replicas: set.object.replicas,
            controller: set.object.controller.clone(),
            template_labels: set.object.template_labels.clone(),
            status: Status {
                observed_generation: set.object.status.observed_generation,
                conditions: set.object.status.conditions.clone(),
                ..counts.status()
            },
            state,
            reasons,
            in_flight: self.sent_to(id).map(SentBatch::progress),
            next_sync: self.0.queue.due(id),
            failures: self.0.queue.failures(id),
            unconverged_since: set.unconverged_since,
            unready: (counts.ready < counts.active)
                .then(|| self.unready(id))
                .flatten(),
            in_advance: set.extra(),
            preferences: set.object.preferences.clone(),
            not_ready: self.not_ready(set),
        })
    }

    fn unready(self, id: SetId) -> Option<Arc<str>> {
        let pods = self.0.index.active_pods(id).map(|(_, pod)| pod);
        let mut unready = pods.filter(|pod| !pod.state.ready.ready);
        unready.next().map(|pod| Arc::clone(&pod.name))
    }

    /// The active pods that are not ready, and the pods that have ended, by waiting reason. The cost is a step for each pod, unless all are
    /// ready or no pod of the session has a reason.
    fn not_ready(self, set: &Set) -> Vec<NotReady> {
        let index = &self.0.index;
        let all_ready = usize::try_from(set.counts.ready) == Ok(set.owned.len());
        if all_ready || index.waiting.is_empty() {
            return Vec::new();
        }
        let mut counts = [BTreeMap::new(), BTreeMap::new()];
        for pod in set.owned.iter().filter_map(|id| index.pod(*id)) {
            let ended = pod.state.phase.has_ended();
            let counts_here = ended || pod.counted.active && !pod.state.ready.ready;
            if let Some(reason) = index.waiting_of(pod).filter(|_| counts_here) {
                *counts[usize::from(ended)].entry(reason).or_insert(0) += 1;
            }
        }
        let groups = [false, true].into_iter().zip(counts);
        groups
            .flat_map(|(ended, counts)| most_frequent(ended, counts))
            .collect()
    }

    fn sent_to(self, id: SetId) -> Option<&'a SentBatch> {
        self.0.in_flight.get(self.0.running.get(&id)?.batch)
    }

    /// Returns the state of a ReplicaSet and the reasons, the strongest first; pods in advance and its deletion are among them. The obstacle
    /// of the last attempt stays until an attempt succeeds.
    fn state(self, now: Timestamp, id: SetId, set: &Set) -> (State, Vec<Reason>) {
        let (state, mut reasons) = self.standing(now, id, set);
        let in_advance = (set.extra() > 0).then(|| difference(set));
        let deletion = || Reason::new(Rule::BeingDeleted, LEFT_ALONE);
        let deletion = set.object.deleting.then(deletion);
        for more in in_advance.into_iter().chain(deletion) {
            if reasons.iter().all(|known| known.rule != more.rule) {
                reasons.push(more);
            }
        }
        if !matches!(state, State::InSync | State::Quarantined) {
            reasons.extend(self.0.obstacles.get(&id).cloned());
        }
        (state, reasons)
    }

    fn standing(self, now: Timestamp, id: SetId, set: &Set) -> (State, Vec<Reason>) {
        if let Some(quarantine) = set.quarantine() {
            let detail = quarantine.to_string();
            return say(State::Quarantined, Rule::Quarantined, detail);
        }
        if !self.0.is_view_whole() {
            let lists = if self.0.is_synced() && self.0.nodes_awaited {
                wording::NODES_AWAITED
            } else {
                "a list is not complete"
            };
            return say(State::Waiting, Rule::PartialView, lists);
        }
        if let Some(sent) = self.sent_to(id) {
            let (operations, answered) = sent.progress();
            let detail = format!("{answered} of {operations} outcomes have come");
            return say(State::Acting, Rule::BatchInFlight, detail);
        }
        if self.0.waiting.contains_key(&id) {
            let detail = "an outcome did not carry the object: waiting for a list";
            return say(State::Waiting, Rule::ViewOlderThanWrite, detail);
        }
        let without_room = self.0.without_room.as_ref();
        if without_room.is_some_and(|ready| ready.set == id)
            || self.0.running.contains_key(&id)
            || self.0.queue.dirty.contains_key(&id)
        {
            return (State::Queued, vec![difference(set)]);
        }
        let waits: Vec<_> = self.waits(now, id, set).collect();
        if !waits.is_empty() {
            return (State::Waiting, waits);
        }
        if set.object.deleting {
            return say(State::InSync, Rule::BeingDeleted, LEFT_ALONE);
        }
        let state = match set.surplus() {
            0 => State::InSync,
            _ => State::Waiting,
        };
        (state, vec![difference(set)])
    }

    fn waits(self, now: Timestamp, id: SetId, set: &Set) -> impl Iterator<Item = Reason> {
        let failures = self.0.queue.failures(id);
        let limits = blocking(&self.0.index, &self.0.config, id).into_iter();
        let limit = limits.max_by_key(|it| it.until);
        let limit = limit
            .map(|limit| limit.reason)
            .filter(|it| it.rule != Rule::Backoff);
        let asked = self.0.index.questions.explain(id, now);
        // All else matters more for advice, which waits for no silent pod.
        let (asked, told) = if self.0.config.advises {
            (None, asked)
        } else {
            (asked, None)
        };
        let wait = self.0.queue.due(id).map(|due| wording::until(due, now));
        let why = match (limit, wait) {
            _ if asked.is_some() => asked,
            // Objects of a file wait for nothing but a limit.
            (limit, None) => limit,
            (Some(Reason { rule, detail }), Some(wait)) => {
                Some(Reason::new(rule, format!("{detail}; next try in {wait}")))
            }
            (None, Some(wait)) if failures > 0 => {
                let failures = count(failures, "failure");
                let detail = format!("{failures} in a row, next try in {wait}");
                Some(Reason::new(Rule::Backoff, detail))
            }
            (None, Some(wait)) if set.pace.presumed_until.is_some() => {
                let detail = format!("adopted pods show no owner, next try in {wait}");
                Some(Reason::new(Rule::Backoff, detail))
            }
            (None, Some(_)) if told.is_some() => told,
            (None, Some(wait)) if set.awaits_availability() => {
                let detail = format!("next availability check in {wait}");
                Some(Reason::new(Rule::AvailabilityCheck, detail))
            }
            // Nothing waits for a look at advice, or for a status that is written at intervals.
            (None, Some(_)) => None,
        };
        let lacks = why.is_some() && set.surplus() != 0 && !set.object.deleting;
        why.into_iter().chain(lacks.then(|| difference(set)))
    }
}

/// Returns the most frequent reasons, and one group for all others.
fn most_frequent(ended: bool, counts: BTreeMap<&Arc<str>, usize>) -> Vec<NotReady> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, pods)| Reverse(*pods));
    let others = counts.split_off(counts.len().min(REASONS_MAX));
    let others: usize = others.iter().map(|(_, pods)| pods).sum();
    let shown = counts
        .into_iter()
        .map(|(reason, pods)| (Arc::clone(reason), pods));
    let all = shown.chain((others > 0).then(|| (Arc::default(), others)));
    let group = |(reason, pods)| NotReady {
        reason,
        pods,
        ended,
    };
    all.map(group).collect()
}

fn say(state: State, rule: Rule, detail: impl Into<Cow<'static, str>>) -> (State, Vec<Reason>) {
    (state, vec![Reason::new(rule, detail)])
}
