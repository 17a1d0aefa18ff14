//! Outcomes change the view at once: to the object after the write, or to a view without the pod.

use std::{collections::BTreeSet, sync::Arc};

use super::{Controller, in_flight::SentBatch, lists::ListWait};
use crate::{
    batch::{ActionKind, BatchId, Operation, PodRef},
    event::{After, FailureClass, OperationResult, Outcome},
    index::{CreatedPod, SetId, lasting},
    object::{Key, Kind, ReplicaSet, ResourceVersion, Timestamp},
    pod_view::PodView,
    queue::Priority,
    report::{Answered, ControllerReport},
};

/// An object after a write, as in [`After`].
enum AfterView<'a> {
    Pod(&'a PodView<'a>),
    ReplicaSet(Box<ReplicaSet>),
    Gone,
}

/// Whether an outcome showed the result of its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The result is in the view.
    Here,
    /// A list must show the result.
    InAList,
}

impl Controller {
    /// Records the outcome of an operation. Ignores unknown batches and repeated outcomes.
    pub fn handle_outcome(&mut self, now: Timestamp, mut outcome: Outcome) {
        let after = match &mut outcome.result {
            OperationResult::Done { after, .. } => after.take(),
            OperationResult::Failed { .. } | OperationResult::NotStarted(_) => None,
        };
        match after {
            None => self.take_answer(now, outcome, None),
            Some(After::Pod(pod)) => {
                pod.viewed(|pod| self.take_answer(now, outcome, Some(AfterView::Pod(pod))));
            }
            Some(After::ReplicaSet(set)) => {
                self.take_answer(now, outcome, Some(AfterView::ReplicaSet(set)));
            }
            Some(After::Gone) => self.take_answer(now, outcome, Some(AfterView::Gone)),
        }
    }

    /// Records the outcome of an operation and the pod after it, as [`Self::handle_outcome`] does for [`After::Pod`]. The outcome itself
    /// carries no object.
    pub fn handle_outcome_of_pod(&mut self, now: Timestamp, outcome: Outcome, pod: &PodView<'_>) {
        self.take_answer(now, outcome, Some(AfterView::Pod(pod)));
    }

    fn take_answer(&mut self, now: Timestamp, outcome: Outcome, after: Option<AfterView<'_>>) {
        let now = self.tick(now);
        let Outcome {
            batch,
            operation: at,
            result,
        } = outcome;
        let Some((sent, operation)) = self.in_flight.answer(now, (batch, at), &result) else {
            return;
        };
        let (set, key) = (sent.set, sent.key.clone());
        if self.handle_effect(now, (set, &key), &operation, (result, after)) == Shown::InAList {
            let last = self.index.last_list();
            let created = operation.created().cloned();
            if let Some(sent) = self.in_flight.get_mut(batch) {
                sent.unseen.add(operation.kind(), last, created);
            }
        }
        let Some(sent) = self.in_flight.take_answered(batch) else {
            return;
        };
        self.report_answered(now, batch, &sent);
        let sync = self.running.get(&set);
        let is_awaited = sync.is_some_and(|sync| sync.batch == batch);
        if !is_awaited {
            self.free_names(&key.namespace, &sent.unseen);
            self.abandoned.remove(&key.uid);
            let returned = self.index.set_named(&key.namespace, &key.name);
            returned
                .into_iter()
                .for_each(|id| self.queue.add(id, Priority::Live));
            return;
        }
        self.note_obstacle(&sent);
        if self.lists.show(&sent.unseen) {
            self.mark_listed(now, set, &key.namespace, &sent.unseen);
            self.free_names(&key.namespace, &sent.unseen);
            self.answered.push_back((set, sent.result));
        } else {
            let waiting = ListWait {
                unseen: sent.unseen,
                namespace: key.namespace,
                result: sent.result,
            };
            self.wait_for_lists(set, waiting);
        }
    }

    /// Reports the results of a batch, except for a successful status write. Status writes are many, and the view shows their effect
    /// anyway.
    fn report_answered(&mut self, at: Timestamp, batch: BatchId, sent: &SentBatch) {
        let (action, counts) = (sent.operations.kind(), sent.result.counts);
        if action == ActionKind::WriteStatus && counts.done > 0 {
            return;
        }
        let (failure, words) = sent
            .result
            .failure
            .as_ref()
            .map(|(_, it)| (it.0, &it.1))
            .unzip();
        let refusal = sent.result.guarded.as_ref().map(|(_, message)| message);
        self.reports
            .push_back(ControllerReport::Answered(Box::new(Answered {
                key: sent.key.clone(),
                at,
                batch,
                action,
                counts,
                failure,
                message: words.or(refusal).cloned().unwrap_or_default(),
            })));
    }

    /// Records the obstacle of a batch, or forgets an earlier one. A status write says nothing about the earlier batches of its sync.
    fn note_obstacle(&mut self, sent: &SentBatch) {
        match sent.result.obstacle() {
            Some(obstacle) => self.obstacles.insert(sent.set, obstacle),
            None if sent.operations.kind() == ActionKind::WriteStatus => {}
            None => self.obstacles.remove(sent.set),
        }
    }

    /// Lets a sync wait for the lists that its batch needs.
    fn wait_for_lists(&mut self, id: SetId, waiting: ListWait) {
        if let Some(set) = self.index.set(id) {
            for kind in self.lists.missing(&waiting.unseen) {
                let key = set.object.key.clone();
                self.reports
                    .push_back(ControllerReport::StaleViewSkipped { key, kind });
            }
        }
        // The syncs that wait already have requested their lists.
        let missing: BTreeSet<_> = self.lists.missing(&waiting.unseen).collect();
        self.waiting.insert(id, waiting);
        self.request_lists(missing);
    }

    fn handle_effect(
        &mut self,
        now: Timestamp,
        (set, key): (SetId, &Key),
        operation: &Operation,
        (effect, after): (OperationResult, Option<AfterView<'_>>),
    ) -> Shown {
        match effect {
            OperationResult::Done { version, .. } => {
                if let Operation::Create(name) = operation
                    && let Some(set) = self.index.set_mut(set)
                {
                    set.cursor.mark_taken(name);
                }
                let kind = operation.kind();
                self.consistency.wrote(now, kind, version);
                if let Some(version) = after.as_ref().and_then(AfterView::version) {
                    self.consistency.wrote(now, kind, Some(version));
                }
                self.handle_done(now, (set, key), operation, version, after)
            }
            OperationResult::Failed { class, .. } => {
                self.handle_failure(now, (set, key), operation, class);
                Shown::Here
            }
            OperationResult::NotStarted(_) => {
                if let Operation::Create(name) = operation {
                    self.index.namespaces.end_making(&key.namespace, name);
                }
                Shown::Here
            }
        }
    }

    /// Records the object after a write. An object of another owner, or one that does not show the write, counts as not carried.
    fn handle_done(
        &mut self,
        now: Timestamp,
        (set, key): (SetId, &Key),
        operation: &Operation,
        version: Option<ResourceVersion>,
        after: Option<AfterView<'_>>,
    ) -> Shown {
        match (operation, after) {
            (Operation::Create(name), Some(AfterView::Pod(pod)))
                if *pod.namespace == *key.namespace && *pod.name == **name =>
            {
                return self.created(now, (set, key), name, pod);
            }
            (Operation::Delete(pod), Some(AfterView::Gone)) => self.gone(now, key, pod, version),
            (Operation::Delete(pod), Some(AfterView::Pod(after)))
                if is_same(key, pod, after) && after.state.deleting =>
            {
                self.changed(now, after);
            }
            (Operation::Adopt(pod), Some(AfterView::Pod(after)))
                if is_same(key, pod, after) && is_owned(key, after) =>
            {
                self.changed(now, after);
            }
            (Operation::Release(pod), Some(AfterView::Pod(after)))
                if is_same(key, pod, after) && !is_owned(key, after) =>
            {
                self.changed(now, after);
            }
            (Operation::WriteStatus, Some(AfterView::ReplicaSet(object))) if object.key == *key => {
                self.status_written(now, set, *object);
            }
            (_, None | Some(AfterView::Pod(_) | AfterView::ReplicaSet(_) | AfterView::Gone)) => {
                return Shown::InAList;
            }
        }
        Shown::Here
    }

    fn handle_failure(
        &mut self,
        now: Timestamp,
        (set, key): (SetId, &Key),
        operation: &Operation,
        class: FailureClass,
    ) {
        match operation {
            Operation::Create(name) => {
                if let Some(set) = self.index.set_mut(set) {
                    match class {
                        FailureClass::NameTaken => set.cursor.mark_taken(name),
                        FailureClass::Timeout | FailureClass::Unavailable => {
                            set.cursor.retry(name);
                        }
                        FailureClass::NotFound
                        | FailureClass::Precondition
                        | FailureClass::Forbidden
                        | FailureClass::Quota
                        | FailureClass::NamespaceTerminating
                        | FailureClass::Invalid
                        | FailureClass::Conflict
                        | FailureClass::Throttled
                        | FailureClass::OwnerChanged => set.cursor.retry_refused(name),
                    }
                }
                self.index.namespaces.end_making(&key.namespace, name);
            }
            Operation::Delete(pod) | Operation::Adopt(pod) | Operation::Release(pod) => {
                if class == FailureClass::NotFound {
                    self.gone(now, key, pod, None);
                }
            }
            Operation::WriteStatus => {}
        }
    }

    /// Records a created pod. The stream may have passed the pod's version without showing the pod, and the pod may still exist: the
    /// cluster's versions went back, or the stream left the pod out. The server creates another pod only after a list.
    fn created(
        &mut self,
        now: Timestamp,
        (set, key): (SetId, &Key),
        name: &Arc<str>,
        pod: &PodView<'_>,
    ) -> Shown {
        let has_passed = self.consistency.has_passed(Kind::Pod, pod.version);
        match self.index.apply_created_pod(now, pod, has_passed) {
            CreatedPod::Known(news) => self.pod_applied(now, Priority::Live, news),
            CreatedPod::Gone => {}
            CreatedPod::Unseen => return Shown::InAList,
        }
        self.index.forget_gone_pod(pod.uid);
        let made = (&*key.namespace, &**name, Some(pod.uid));
        let ended = lasting::mark_made(&mut self.index, now, set, made);
        self.index.namespaces.end_making(&key.namespace, name);
        if let Some(ended) = ended {
            // The pod came and went before its outcome, or has no owner: no change of the view queues the ReplicaSet.
            self.replica_ended(now, ended);
            self.queue.add(set, Priority::Live);
        }
        Shown::Here
    }

    fn changed(&mut self, now: Timestamp, pod: &PodView<'_>) {
        let news = self.index.apply_written_pod(now, pod);
        self.pod_applied(now, Priority::Live, news);
    }

    fn gone(&mut self, now: Timestamp, key: &Key, pod: &PodRef, version: Option<ResourceVersion>) {
        let change = self
            .index
            .remove_written_pod(&key.namespace, &pod.name, &pod.uid, version);
        self.pods_changed(now, Priority::Live, change);
    }

    /// Records the ReplicaSet that a status write returned. Our own status queues nothing; a new spec does.
    fn status_written(&mut self, now: Timestamp, id: SetId, object: ReplicaSet) {
        let Some(known) = self.index.set(id) else {
            return;
        };
        let asks = |set: &ReplicaSet| (set.generation, set.deleting, set.replicas);
        let changed = asks(&known.object) != asks(&object);
        self.index.apply_written_set(now, id, object);
        if changed {
            self.queue.add(id, Priority::Live);
            self.note_wanted(now, id);
        }
    }
}

// === impl AfterView ===

impl AfterView<'_> {
    const fn version(&self) -> Option<ResourceVersion> {
        match self {
            Self::Pod(pod) => pod.version,
            Self::ReplicaSet(set) => set.version,
            Self::Gone => None,
        }
    }
}

fn is_same(key: &Key, asked: &PodRef, after: &PodView<'_>) -> bool {
    *after.namespace == *key.namespace && *after.name == *asked.name && asked.uid.is(after.uid)
}

fn is_owned(key: &Key, pod: &PodView<'_>) -> bool {
    pod.controller.is_some_and(|owner| *owner.uid == *key.uid.0)
}
