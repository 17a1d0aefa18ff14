//! Outcomes change the view at once: to the object after the write, or to a view without the pod.

use std::collections::BTreeSet;

use super::{Controller, events::UNSEEN, in_flight::SentBatch, stream::ListWait};
use crate::{
    batch::{ActionKind, Advice, BatchId, Operation, PodRef},
    event::{After, FailureClass, OperationResult, Outcome},
    index::{Ledger, Loss, SetId, paid},
    object::{Key, Kind, Pod, ReplicaSet, ResourceVersion, Span, Timestamp},
    pod_view::PodView,
    queue::Priority,
    report::{Answered, ControllerReport},
};

/// How long pods count as adopted whose adoption took effect, although its answer shows no owner.
const PRESUMED_FOR: Span = Span::seconds(60);

impl Controller {
    /// Records the outcome of an operation. Ignores unknown batches and repeated outcomes.
    pub fn handle_outcome(&mut self, now: Timestamp, outcome: Outcome) {
        self.tick(now);
        let Outcome {
            batch,
            operation: at,
            result,
        } = outcome;
        let answered = self.in_flight.answer(self.clock, (batch, at), &result);
        let Some((set, key, operation)) = answered else {
            return;
        };
        if !self.handle_effect((set, &key), &operation, result) {
            let list = self.index.snapshot;
            self.in_flight.note_unseen(batch, operation, list);
        }
        let Some(sent) = self.in_flight.take_answered(batch) else {
            return;
        };
        self.index.count_names(set);
        self.report_answered(batch, &sent);
        let sync = self.running.get(&set);
        if sync.is_none_or(|sync| sync.batch != batch) {
            self.free_names(&key.namespace, &sent.unseen);
            self.abandoned.remove(&key.uid);
            if let Some(returned) = self.index.set_named(&key.namespace, &key.name) {
                self.queue.add(returned, Priority::Live);
            }
            return;
        }
        self.note_obstacle(&sent);
        if sent.unseen.is_shown(&self.streams) {
            self.take_listed(set, &key.namespace, &sent.unseen);
            // While a list is open, the sync waits, too.
            let is_next = self.is_view_whole();
            let result = sent.result;
            let result = if is_next { result } else { result.cut() };
            self.answered.push_back((set, result));
        } else {
            let waiting = ListWait {
                unseen: sent.unseen,
                key,
                result: sent.result.cut(),
            };
            self.wait_for_lists(set, waiting);
        }
    }

    /// Reports the results of a batch, except for a successful status write. Status writes are many, and the view shows their effect
    /// anyway.
    fn report_answered(&mut self, batch: BatchId, sent: &SentBatch) {
        let (action, result) = (sent.action, &sent.result);
        if action == ActionKind::WriteStatus && result.counts.done > 0 {
            return;
        }
        let (failure, message) = result.failure();
        let answered = Answered {
            key: sent.key.clone(),
            at: self.clock,
            batch,
            action,
            counts: result.counts,
            failure,
            message: message.to_owned(),
        };
        let report = ControllerReport::Answered(Box::new(answered));
        self.reports.push_back(report);
    }

    /// Records the obstacle of a batch, or forgets an earlier one. A status write says nothing about the earlier batches of its sync.
    fn note_obstacle(&mut self, sent: &SentBatch) {
        match sent.result.obstacle() {
            Some(obstacle) => drop(self.obstacles.insert(sent.set, obstacle)),
            None if sent.action == ActionKind::WriteStatus => {}
            None => drop(self.obstacles.remove(&sent.set)),
        }
    }

    fn wait_for_lists(&mut self, id: SetId, waiting: ListWait) {
        let missing: BTreeSet<_> = waiting.unseen.missing(&self.streams).collect();
        if let Some(set) = self.index.set(id) {
            self.reports.extend(missing.iter().map(|kind| {
                let (key, kind) = (set.object.key.clone(), *kind);
                ControllerReport::StaleViewSkipped { key, kind }
            }));
        }
        // The syncs that wait already have requested their lists.
        self.waiting.insert(id, waiting);
        self.request_lists(missing, UNSEEN);
    }

    /// Records the effect of an operation. Returns whether its result is in the view; if not, a list must show the result.
    fn handle_effect(
        &mut self,
        (set, key): (SetId, &Key),
        operation: &Operation,
        effect: OperationResult,
    ) -> bool {
        match effect {
            OperationResult::Done { version, after } => {
                if let Some(set) = self.index.set_mut(set) {
                    match operation {
                        Operation::Create(name) => {
                            set.cursor.mark_taken(name);
                        }
                        Operation::WriteStatus => set.pace.rewrites.note_done(),
                        Operation::Delete(_)
                        | Operation::Adopt(_)
                        | Operation::Release(_)
                        | Operation::Advise(_) => {}
                    }
                }
                if let Operation::Advise(Advice { pod, .. }) = operation {
                    self.index.advised.note(self.clock, pod.uid.clone());
                }
                let stream = self.streams.of_mut(operation.kind());
                stream.wrote(self.clock, version);
                stream.wrote(self.clock, after.as_ref().and_then(After::version));
                return self.handle_done((set, key), operation, version, after);
            }
            OperationResult::Failed { class, .. } => {
                self.handle_failure((set, key), operation, class);
            }
            OperationResult::NotStarted(_) => match operation {
                Operation::Create(name) => {
                    self.index.namespaces.end_making(&key.namespace, name);
                }
                Operation::Delete(pod) => {
                    paid::mark_victims(&mut self.index, &key.namespace, [&*pod.name], false);
                }
                Operation::Adopt(_)
                | Operation::Release(_)
                | Operation::WriteStatus
                | Operation::Advise(_) => {}
            },
        }
        true
    }

    /// Records the object after a write. An object of another owner, or one that does not show the write, counts as not carried.
    fn handle_done(
        &mut self,
        (set, key): (SetId, &Key),
        operation: &Operation,
        version: Option<ResourceVersion>,
        after: Option<After>,
    ) -> bool {
        match (operation, after) {
            (Operation::Create(name), Some(After::Pod(pod)))
                if pod.namespace == key.namespace && pod.name == *name =>
            {
                return pod.viewed(|pod| self.created((set, key), name, pod));
            }
            (Operation::Delete(pod), Some(After::Gone)) => self.gone(key, pod, version),
            (Operation::Delete(pod), Some(After::Pod(after)))
                if is_same(key, pod, &after) && after.state.deleting =>
            {
                self.changed(&after);
            }
            (Operation::Adopt(pod), Some(After::Pod(after)))
                if is_same(key, pod, &after) && is_owned(key, &after) =>
            {
                self.changed(&after);
            }
            (Operation::Adopt(pod), Some(After::Pod(after)))
                if is_same(key, pod, &after)
                    && after.controller.is_none()
                    && version.is_some()
                    && after.version >= version =>
            {
                let news = after.viewed(|after| self.index.apply_adopted_pod(after, key));
                self.pod_applied(Priority::Live, news);
                if let Some(set) = self.index.set_mut(set) {
                    let until = self.clock.plus(PRESUMED_FOR);
                    set.pace.presumed_until.get_or_insert(until);
                }
            }
            (Operation::Release(pod), Some(After::Pod(after)))
                if is_same(key, pod, &after) && !is_owned(key, &after) =>
            {
                self.changed(&after);
            }
            (Operation::Advise(Advice { pod, cost }), Some(After::Pod(after)))
                if is_same(key, pod, &after) && after.state.advised_cost() == Some(*cost) =>
            {
                self.changed(&after);
            }
            (Operation::WriteStatus, Some(After::ReplicaSet(object))) if object.key == *key => {
                self.status_written(set, *object);
            }
            _ => return false,
        }
        true
    }

    fn handle_failure(
        &mut self,
        (set, key): (SetId, &Key),
        operation: &Operation,
        class: FailureClass,
    ) {
        match operation {
            Operation::Create(name) => {
                let has_gone = self.index.namespaces.end_making(&key.namespace, name);
                let Some(known) = self.index.set_mut(set) else {
                    return;
                };
                let is_unanswered = is_of_unknown_effect(class);
                let has_made_a_pod = if class == FailureClass::NameTaken {
                    // An earlier create of the name, which had no answer, may have made the pod.
                    known.cursor.mark_taken(name)
                } else {
                    known.cursor.retry(name, is_unanswered);
                    known.pace.is_unanswered |= is_unanswered;
                    is_unanswered && has_gone
                };
                if has_made_a_pod {
                    paid::pay(&mut self.index, set, (&key.namespace, name, None));
                }
            }
            Operation::Delete(pod)
            | Operation::Adopt(pod)
            | Operation::Release(pod)
            | Operation::Advise(Advice { pod, .. })
                if class == FailureClass::NotFound =>
            {
                self.gone(key, pod, None);
            }
            Operation::Delete(pod) if !is_of_unknown_effect(class) => {
                paid::mark_victims(&mut self.index, &key.namespace, [&*pod.name], false);
            }
            Operation::Delete(_)
            | Operation::Adopt(_)
            | Operation::Release(_)
            | Operation::WriteStatus
            | Operation::Advise(_) => {}
        }
    }

    /// Records a created pod. The stream may have passed the pod's version without showing the pod, and the pod may still exist: the
    /// cluster's versions went back, or the stream left the pod out. The server creates another pod only after a list.
    fn created(&mut self, (set, key): (SetId, &Key), name: &str, pod: &PodView<'_>) -> bool {
        let has_passed = self.streams.of(Kind::Pod).has_passed(pod.version);
        let Some(news) = self.index.apply_created_pod(pod, has_passed) else {
            return false;
        };
        self.pod_applied(Priority::Live, news);
        let tombstones = &mut self.index.tombstones;
        tombstones.remove_unversioned(Kind::Pod, pod.uid);
        let made = (&*key.namespace, name, Some(pod.uid));
        let is_lost = paid::pay(&mut self.index, set, made);
        self.index.namespaces.end_making(&key.namespace, name);
        if is_lost && self.index.set(set).is_some() {
            // The pod came and went before its outcome, or has no owner: no change of the view queues the ReplicaSet.
            self.queue.add(set, Priority::Live);
        }
        true
    }

    fn changed(&mut self, pod: &Pod) {
        let news = pod.viewed(|pod| self.index.apply_written_pod(pod));
        self.pod_applied(Priority::Live, news);
    }

    fn gone(&mut self, key: &Key, pod: &PodRef, version: Option<ResourceVersion>) {
        let (namespace, index) = (&key.namespace, &mut self.index);
        let change = index.remove_written_pod(namespace, &pod.name, &pod.uid, version);
        self.pods_changed(Priority::Live, change);
    }

    /// Records the ReplicaSet that a status write returned. Our own status queues nothing; a new spec does.
    fn status_written(&mut self, id: SetId, object: ReplicaSet) {
        let Some(known) = self.index.set(id) else {
            return;
        };
        let asks = |set: &ReplicaSet| (set.generation, set.deleting, set.replicas);
        let changed = asks(&known.object) != asks(&object);
        self.index.apply_written_set(id, object);
        self.resume_creates();
        if changed {
            self.queue.add(id, Priority::Live);
            self.note_wanted(id);
        }
    }

    /// The lost creates, for the next session of the cluster, with times that count from now. Creates whose pods are young or not shown count
    /// as lost, since nobody follows these pods.
    pub fn leave(&self) -> Ledger {
        let Some(mut ledger) = self.index.ledger.clone() else {
            return Ledger::default();
        };
        let mut lose = |key, desired: i32, creates: usize| {
            let creates = u32::try_from(creates).unwrap_or(u32::MAX);
            let lost = (creates, Loss::Unfollowed);
            ledger.lose(self.clock, key, desired.unsigned_abs(), lost);
        };
        for (id, set) in &self.index.sets {
            lose(
                &set.object.key,
                set.wanted(),
                paid::young_creates(&self.index, *id),
            );
        }
        let running = self.running.values();
        for sent in running.filter_map(|sync| self.in_flight.get(sync.batch)) {
            lose(&sent.key, 0, sent.unfollowed());
        }
        for waiting in self.waiting.values() {
            lose(&waiting.key, 0, waiting.unseen.names.len());
        }
        let sets = self.index.sets.values().map(|set| &set.object);
        ledger.leave(self.clock, sets)
    }
}

impl After {
    const fn version(&self) -> Option<ResourceVersion> {
        match self {
            Self::Pod(pod) => pod.version,
            Self::ReplicaSet(set) => set.version,
            Self::Gone => None,
        }
    }
}

/// Whether a write that failed like this may have taken effect.
const fn is_of_unknown_effect(class: FailureClass) -> bool {
    matches!(class, FailureClass::Timeout | FailureClass::Unavailable)
}

fn is_same(key: &Key, asked: &PodRef, after: &Pod) -> bool {
    after.namespace == key.namespace && after.name == asked.name && after.uid == asked.uid
}

fn is_owned(key: &Key, pod: &Pod) -> bool {
    let owner = pod.controller.as_ref();
    owner.is_some_and(|owner| owner.uid == key.uid)
}
