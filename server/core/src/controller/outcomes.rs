//! What outcomes say enters the view at once: the object after the write, or that the pod is gone.

use std::{collections::BTreeSet, sync::Arc};

use super::{Controller, leftover::Leftover, lists::Waiting};
use crate::{
    batch::{Operation, PodRef},
    event::{After, Effect, FailureClass, Outcome},
    index::SetId,
    object::{Key, Kind, Pod, ReplicaSet, ResourceVersion, Timestamp},
    queue::Priority,
    report::Report,
    work::Work,
};

/// Whether an outcome showed what its write led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// It is in the view.
    Here,
    /// A list must show it.
    InAList,
}

impl Controller {
    /// Records what became of an operation. Unknown batches and repeated outcomes are ignored.
    pub fn handle_outcome(&mut self, now: Timestamp, outcome: Outcome) {
        self.handle_outcome_within(now, outcome, &mut Work::units(0));
    }

    /// Records what became of an operation as [`Self::handle_outcome`] does, and pauses as [`Self::handle_event_within`].
    pub fn handle_outcome_within(&mut self, now: Timestamp, outcome: Outcome, work: &mut Work) {
        self.finish_leftovers(now);
        self.take_outcome(now, outcome);
        self.resume(now, work);
    }

    fn take_outcome(&mut self, now: Timestamp, outcome: Outcome) {
        let now = self.tick(now);
        let Outcome {
            batch,
            operation: at,
            result,
        } = outcome;
        let Some((sent, operation)) = self.in_flight.answer(batch, at) else {
            return;
        };
        sent.result.count(at, &operation, &result);
        let (set, key) = (sent.set, sent.key.clone());
        if self.handle_effect(now, (set, &key), &operation, result) == Shown::InAList {
            let last = self.index.last_list();
            let created = operation.created().cloned();
            if let Some(sent) = self.in_flight.get_mut(batch) {
                sent.unseen.add(operation.kind(), last, created);
            }
        }
        let Some(sent) = self.in_flight.take_answered(batch) else {
            return;
        };
        let sync = self.running.get(&set);
        if sync.is_none_or(|sync| sync.batch != batch) {
            self.free_names(&key.namespace, &sent.unseen);
            self.abandoned.remove(&key.uid);
            let returned = self.index.set_named(&key.namespace, &key.name);
            returned
                .into_iter()
                .for_each(|id| self.queue.add(id, Priority::Live));
        } else if self.lists.show(&sent.unseen) {
            self.free_names(&key.namespace, &sent.unseen);
            self.answered.push_back((set, sent.result));
        } else {
            let waiting = Waiting {
                unseen: sent.unseen,
                namespace: key.namespace,
                result: sent.result,
            };
            self.wait_for_lists(set, waiting);
        }
    }

    /// Lets a sync wait for the lists that its batch calls for.
    fn wait_for_lists(&mut self, id: SetId, waiting: Waiting) {
        if let Some(set) = self.index.set(id) {
            for kind in self.lists.missing(&waiting.unseen) {
                let key = set.object.key.clone();
                self.reports.push(Report::StaleViewSkipped { key, kind });
            }
        }
        // Those that wait already have asked for theirs.
        let missing: BTreeSet<_> = self.lists.missing(&waiting.unseen).collect();
        self.waiting.insert(id, waiting);
        self.request_lists(missing);
    }

    fn handle_effect(
        &mut self,
        now: Timestamp,
        (set, key): (SetId, &Key),
        operation: &Operation,
        effect: Effect,
    ) -> Shown {
        match effect {
            Effect::Done { version, after } => {
                if let Operation::Create(name) = operation
                    && let Some(set) = self.index.set_mut(set)
                {
                    set.cursor.mark_taken(name);
                }
                let kind = operation.kind();
                self.consistency.wrote(now, kind, version);
                if let Some(version) = after.as_ref().and_then(After::version) {
                    self.consistency.wrote(now, kind, Some(version));
                }
                self.handle_done(now, (set, key), operation, version, after)
            }
            Effect::Failed { class, .. } => {
                self.handle_failure(now, (set, key), operation, class);
                Shown::Here
            }
            Effect::NotStarted(_) => {
                if let Operation::Create(name) = operation {
                    self.index.end_making(&key.namespace, name);
                }
                Shown::Here
            }
        }
    }

    /// Takes the object after a write. One that is another's, or that does not show the write, counts as not carried.
    fn handle_done(
        &mut self,
        now: Timestamp,
        (set, key): (SetId, &Key),
        operation: &Operation,
        version: Option<ResourceVersion>,
        after: Option<After>,
    ) -> Shown {
        match (operation, after) {
            (Operation::Create(name), Some(After::Pod(pod)))
                if pod.namespace == key.namespace && pod.name == *name =>
            {
                self.created(now, set, *pod);
            }
            (Operation::Delete(pod), Some(After::Gone)) => self.gone(now, key, pod, version),
            (Operation::Delete(pod), Some(After::Pod(after)))
                if is_same(key, pod, &after) && after.state.deleting =>
            {
                self.changed(now, *after);
            }
            (Operation::Adopt(pod), Some(After::Pod(after)))
                if is_same(key, pod, &after) && is_owned(key, &after) =>
            {
                self.changed(now, *after);
            }
            (Operation::Release(pod), Some(After::Pod(after)))
                if is_same(key, pod, &after) && !is_owned(key, &after) =>
            {
                self.changed(now, *after);
            }
            (Operation::WriteStatus, Some(After::ReplicaSet(object))) if object.key == *key => {
                self.status_written(set, *object);
            }
            (_, None | Some(After::Pod(_) | After::ReplicaSet(_) | After::Gone)) => {
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
                self.index.end_making(&key.namespace, name);
            }
            Operation::Delete(pod) | Operation::Adopt(pod) | Operation::Release(pod) => {
                if class == FailureClass::NotFound {
                    self.gone(now, key, pod, None);
                }
            }
            Operation::WriteStatus => {}
        }
    }

    fn created(&mut self, now: Timestamp, set: SetId, pod: Pod) {
        let (namespace, name) = (Arc::clone(&pod.namespace), Arc::clone(&pod.name));
        let uid = pod.uid.clone();
        let seen = self.consistency.seen(Kind::Pod);
        let changes = self.index.apply_created_pod(now, pod, seen);
        self.pods_changed(now, Priority::Live, changes);
        self.index.forget_gone_pod(&uid);
        self.index.end_making(&namespace, &name);
        if !self.index.is_taken(&namespace, &name) {
            // The pod came and went before its outcome: no change of the view wakes the ReplicaSet.
            self.queue.add(set, Priority::Live);
        }
    }

    fn changed(&mut self, now: Timestamp, pod: Pod) {
        let change = self.index.apply_written_pod(now, pod);
        self.pods_changed(now, Priority::Live, change);
    }

    fn gone(&mut self, now: Timestamp, key: &Key, pod: &PodRef, version: Option<ResourceVersion>) {
        let change = self
            .index
            .remove_written_pod(&key.namespace, &pod.name, &pod.uid, version);
        self.pods_changed(now, Priority::Live, change);
    }

    /// Takes a ReplicaSet as a status write returned it. Our own status wakes nobody; another spec does.
    fn status_written(&mut self, id: SetId, object: ReplicaSet) {
        let Some(known) = self.index.set(id) else {
            return;
        };
        let asks = |set: &ReplicaSet| (set.generation, set.deleting, set.replicas);
        let changed = asks(&known.object) != asks(&object);
        self.index.apply_written_set(id, object);
        self.leftovers.push_back(Leftover::Count(id));
        if changed {
            self.queue.add(id, Priority::Live);
        }
    }
}

fn is_same(key: &Key, asked: &PodRef, after: &Pod) -> bool {
    after.namespace == key.namespace && after.name == asked.name && after.uid == asked.uid
}

fn is_owned(key: &Key, pod: &Pod) -> bool {
    pod.controller
        .as_ref()
        .is_some_and(|owner| owner.uid == key.uid)
}
