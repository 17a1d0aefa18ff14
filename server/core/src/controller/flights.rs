//! Batches on their way, and what their outcomes do to the view.

use std::sync::Arc;

use super::Controller;
use crate::{
    batch::{Action, Batch, BatchId, PodRef},
    event::{After, Effect, FailureClass, Outcome},
    index::{OWNER_KIND, PodChange, SetId},
    object::{Key, Kind, OwnerReference, Phase, Pod, Ready, ResourceVersion, Timestamp, Uid},
    queue::Lane,
    sync::{Flight, Tally},
};

/// What an operation was for.
enum Operation {
    Create(Arc<str>),
    Delete(PodRef),
    Adopt(PodRef),
    Release(PodRef),
    WriteStatus(Box<crate::object::Status>),
}

impl Controller {
    /// Keeps a batch until all its outcomes have come.
    pub(super) fn launch(&mut self, set: SetId, batch: &Batch) {
        let operations = batch.action.operations();
        self.operations_in_flight += operations;
        let flight = Flight {
            set,
            key: batch.key.clone(),
            action: batch.action.clone(),
            answered: vec![false; operations],
            remaining: operations,
            tally: Tally::default(),
        };
        self.flights.insert(batch.id, flight);
    }

    /// Records what became of an operation. Unknown batches and repeated outcomes are ignored.
    pub fn handle_outcome(&mut self, now: Timestamp, outcome: Outcome) {
        let now = self.tick(now);
        let Outcome {
            batch,
            operation,
            result,
        } = outcome;
        let Some(flight) = self.flights.get_mut(&batch) else {
            return;
        };
        match flight.answered.get_mut(operation as usize) {
            Some(answered) if !*answered => *answered = true,
            Some(_) | None => return,
        }
        flight.remaining -= 1;
        self.operations_in_flight -= 1;
        let (set, key) = (flight.set, flight.key.clone());
        if let Some(wanted) = operation_of(&flight.action, operation as usize) {
            let counted = self.take_effect(now, (set, &key), wanted, &result);
            if let Some(flight) = self.flights.get_mut(&batch).filter(|_| counted) {
                flight.tally.note(operation, &result);
            }
        }
        self.retire(batch);
    }

    fn retire(&mut self, batch: BatchId) {
        if self
            .flights
            .get(&batch)
            .is_none_or(|flight| flight.remaining > 0)
        {
            return;
        }
        if let Some(flight) = self.flights.remove(&batch)
            && self
                .runs
                .get(&flight.set)
                .is_some_and(|run| run.batch == batch)
        {
            self.answered.push_back((flight.set, flight.tally));
        }
    }

    /// Makes the view show what an outcome says. Returns whether the outcome counts for the tally: some failures are none (spec 5.3, 6.6).
    fn take_effect(
        &mut self,
        now: Timestamp,
        (set, key): (SetId, &Key),
        operation: Operation,
        effect: &Effect,
    ) -> bool {
        match effect {
            Effect::Done {
                uid,
                version,
                after,
            } => {
                self.done(
                    now,
                    (set, key),
                    operation,
                    uid.as_ref(),
                    *version,
                    after.clone(),
                );
                true
            }
            Effect::Failed { class, .. } => self.failed(now, (set, key), operation, *class),
            Effect::NotStarted(_) => {
                if let Operation::Create(name) = operation {
                    self.index.free_name(&key.namespace, &name);
                }
                true
            }
        }
    }

    fn done(
        &mut self,
        now: Timestamp,
        (set, key): (SetId, &Key),
        operation: Operation,
        uid: Option<&Uid>,
        version: Option<ResourceVersion>,
        after: After,
    ) {
        let kind = match operation {
            Operation::WriteStatus(_) => Kind::ReplicaSet,
            Operation::Create(_)
            | Operation::Delete(_)
            | Operation::Adopt(_)
            | Operation::Release(_) => Kind::Pod,
        };
        self.consistency.wrote(now, kind, version);
        let changes = match (operation, after) {
            (Operation::WriteStatus(_), After::ReplicaSet(object)) => {
                self.take_written(now, key, *object);
                Vec::new()
            }
            (Operation::WriteStatus(status), _) => {
                if let Some(set) = self.index.set_mut(set) {
                    set.object.status = *status;
                    set.object.version = set.object.version.max(version);
                }
                Vec::new()
            }
            (_, After::Pod(pod)) => self.index.apply_pod(now, *pod),
            (Operation::Create(name), _) => self.created(now, (set, key), &name, uid, version),
            (Operation::Delete(pod), After::Gone) => self.gone(key, &pod, version),
            (Operation::Delete(pod), _) => self
                .index
                .condemn_pod(now, &key.namespace, &pod.name, &pod.uid)
                .into_iter()
                .collect(),
            (Operation::Adopt(pod), _) => self.owned(now, key, &pod, Some(reference(key)), version),
            (Operation::Release(pod), _) => self.owned(now, key, &pod, None, version),
        };
        self.pods_changed(now, Lane::Live, changes);
    }

    fn failed(
        &mut self,
        now: Timestamp,
        (set, key): (SetId, &Key),
        operation: Operation,
        class: FailureClass,
    ) -> bool {
        match (operation, class) {
            (Operation::Create(name), FailureClass::NameTaken) => {
                if let Some(set) = self.index.set_mut(set) {
                    set.cursor.burn(&name);
                }
                true
            }
            (Operation::Create(name), _) => {
                self.index.free_name(&key.namespace, &name);
                true
            }
            (
                Operation::Delete(pod) | Operation::Adopt(pod) | Operation::Release(pod),
                FailureClass::NotFound,
            ) => {
                let gone = self.gone(key, &pod, None);
                self.pods_changed(now, Lane::Live, gone);
                false
            }
            // Another pod bears the name, or it has changed hands: the stream will show it.
            (Operation::Release(_), FailureClass::Invalid | FailureClass::Precondition) => false,
            (
                Operation::Delete(_)
                | Operation::Adopt(_)
                | Operation::Release(_)
                | Operation::WriteStatus(_),
                _,
            ) => true,
        }
    }

    /// Takes the ReplicaSet as a status write returned it.
    fn take_written(&mut self, now: Timestamp, key: &Key, object: crate::object::ReplicaSet) {
        if object.key == *key {
            self.apply_set(now, object);
        }
    }

    /// A created pod of which nothing was told is taken to be as the template made it, until the stream shows more.
    fn created(
        &mut self,
        now: Timestamp,
        (set, key): (SetId, &Key),
        name: &Arc<str>,
        uid: Option<&Uid>,
        version: Option<ResourceVersion>,
    ) -> Vec<PodChange> {
        let (Some(set), Some(uid)) = (self.index.set(set), uid) else {
            return Vec::new();
        };
        let pod = Pod {
            namespace: Arc::clone(&key.namespace),
            name: Arc::clone(name),
            uid: uid.clone(),
            version,
            labels: set.object.template_labels.clone(),
            controller: Some(reference(key)),
            created: Some(now.truncated()),
            deleting: false,
            node: None,
            phase: Phase::Pending,
            ready: Ready::default(),
            deletion_cost: 0,
            restarts: 0,
            sidecar_restarts: 0,
        };
        self.index.apply_pod(now, pod)
    }

    fn gone(
        &mut self,
        key: &Key,
        pod: &PodRef,
        version: Option<ResourceVersion>,
    ) -> Vec<PodChange> {
        let change = self
            .index
            .remove_pod(&key.namespace, &pod.name, &pod.uid, version);
        if version.is_none() && self.consistency.seen(Kind::Pod).is_some() {
            self.index.bury_pod(&pod.uid, None);
        }
        change.into_iter().collect()
    }

    fn owned(
        &mut self,
        now: Timestamp,
        key: &Key,
        pod: &PodRef,
        owner: Option<OwnerReference>,
        version: Option<ResourceVersion>,
    ) -> Vec<PodChange> {
        let change = self
            .index
            .own_pod(now, (&key.namespace, &pod.name, &pod.uid), owner, version);
        change.into_iter().collect()
    }
}

fn operation_of(action: &Action, at: usize) -> Option<Operation> {
    match action {
        Action::Create { names, .. } => names.get(at).cloned().map(Operation::Create),
        Action::Delete(victims) => victims
            .get(at)
            .map(|victim| Operation::Delete(victim.pod.clone())),
        Action::Claim { adopts, releases } => match adopts.get(at) {
            Some(pod) => Some(Operation::Adopt(pod.clone())),
            None => releases
                .get(at - adopts.len())
                .cloned()
                .map(Operation::Release),
        },
        Action::WriteStatus(status) => (at == 0).then(|| Operation::WriteStatus(status.clone())),
    }
}

/// Returns the controller reference that an adopted or created pod bears (spec 5.3).
fn reference(key: &Key) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".into(),
        kind: OWNER_KIND.into(),
        name: Arc::clone(&key.name),
        uid: key.uid.clone(),
        block_owner_deletion: Some(true),
    }
}
