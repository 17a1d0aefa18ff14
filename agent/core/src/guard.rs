//! The agent's own conditions: what must hold before a batch is taken, and again just before each operation starts.
//!
//! **Invariant:** a batch of another session or epoch has no effect. **Invariant:** no effect leaves the allow list of
//! namespaces, whatever the server asks for. **Invariant:** a batch serves exactly the ReplicaSet that it names, by namespace, name
//! and uid, or has no effect.

use std::collections::BTreeSet;

use decree::v1::{self, NotStartedCause, batch::Action};

use crate::view::{Ownership, View};

/// The most operations that one batch may carry: the upper end of what `burst_replicas` allows.
pub const OPERATIONS_MAX: usize = 5_000;

/// What a batch and its operations are checked against. Changed only when a session begins or ends.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// The session that batches must belong to; `None` refuses all.
    pub session_id: Option<String>,
    /// The epoch that batches must belong to.
    pub epoch: i64,
    /// The namespaces in which effects are allowed; empty for all.
    pub namespaces: BTreeSet<String>,
    /// How many operations may be in flight in the session; 0 for no bound.
    pub operations_in_flight_max: usize,
}

/// Why an operation is not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The contract's word.
    pub cause: NotStartedCause,
    /// The same for people.
    pub message: String,
}

/// The verdict on one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Go,
    Refuse(Refusal),
    /// The pod is not there any more as far as the agent has seen.
    Absent,
}

// === impl Guard ===

impl Guard {
    /// Returns whether objects of a namespace concern this agent.
    #[must_use]
    pub fn allows_namespace(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(namespace)
    }

    /// Checks a batch on arrival, `in_flight` being the operations under way.
    ///
    /// # Errors
    /// Says why none of its operations starts.
    pub fn check_batch(&self, batch: &v1::Batch, in_flight: usize) -> Result<(), Refusal> {
        let guard = batch.guard.clone().unwrap_or_default();
        if self.session_id.as_deref() != Some(guard.session_id.as_str()) {
            return Err(refuse(format!(
                "the batch is of session {:?}",
                guard.session_id
            )));
        }
        if guard.epoch != self.epoch {
            return Err(refuse(format!("the batch is of epoch {}", guard.epoch)));
        }
        let count = operation_count(batch);
        // A batch that is larger than the whole bound comes alone: refused, it would come again for ever.
        let bound = self.operations_in_flight_max;
        let is_over = bound != 0 && in_flight != 0 && in_flight.saturating_add(count) > bound;
        if count > OPERATIONS_MAX || is_over {
            return Err(refuse(format!("{count} more operations are too many")));
        }
        Ok(())
    }

    /// Checks the ReplicaSet of a batch: when the batch comes, and again before each operation, as time has passed since.
    ///
    /// The uid finds the template and the owner of new pods, the namespace and the name say where calls go: were they of different
    /// ReplicaSets, a batch could carry the template of one namespace into another.
    pub(crate) fn check_replica_set(&self, view: &View, batch: &v1::Batch) -> Result<(), Refusal> {
        let Some(owner) = &batch.replica_set else {
            return Err(refuse("the batch names no replica set".into()));
        };
        if !self.allows_namespace(&owner.namespace) {
            return Err(refuse(format!(
                "namespace {:?} is not allowed",
                owner.namespace
            )));
        }
        let Some(known) = view.templates.newest(&owner.uid) else {
            return Err(refuse(format!("replica set {} is gone", display(owner))));
        };
        if (&known.namespace, &known.name) != (&owner.namespace, &owner.name) {
            return Err(refuse(format!(
                "replica set {} has another uid than {}, which is that of {}/{}",
                display(owner),
                owner.uid,
                known.namespace,
                known.name
            )));
        }
        let writes_status = matches!(batch.action, Some(Action::WriteStatus(_)));
        if known.deleted.is_some() && !writes_status {
            return Err(refuse(format!(
                "replica set {} is being deleted",
                display(owner)
            )));
        }
        Ok(())
    }

    /// Checks that a pod to delete or release is controlled by the ReplicaSet.
    pub(crate) fn check_owned(view: &View, owner: &v1::ObjectRef, pod: &v1::ObjectRef) -> Verdict {
        if pod.namespace != owner.namespace {
            return Verdict::Refuse(refuse(format!("pod {} is elsewhere", display(pod))));
        }
        match view.ownership(&pod.uid) {
            Ownership::Controlled(uid) if uid == owner.uid => Verdict::Go,
            Ownership::Controlled(_) | Ownership::Orphan => Verdict::Refuse(refuse(format!(
                "pod {} is not controlled by replica set {}",
                display(pod),
                display(owner)
            ))),
            Ownership::Unknown => Verdict::Absent,
        }
    }

    /// Checks that a pod to adopt is controlled by no other.
    pub(crate) fn check_adoptable(
        view: &View,
        owner: &v1::ObjectRef,
        pod: &v1::ObjectRef,
    ) -> Verdict {
        if pod.namespace != owner.namespace {
            return Verdict::Refuse(refuse(format!("pod {} is elsewhere", display(pod))));
        }
        match view.ownership(&pod.uid) {
            Ownership::Orphan => Verdict::Go,
            Ownership::Controlled(uid) if uid == owner.uid => Verdict::Go,
            Ownership::Controlled(_) => Verdict::Refuse(refuse(format!(
                "pod {} has another controller",
                display(pod)
            ))),
            Ownership::Unknown => Verdict::Absent,
        }
    }
}

/// Returns how many operations a batch carries.
#[must_use]
pub fn operation_count(batch: &v1::Batch) -> usize {
    match &batch.action {
        None => 0,
        Some(Action::Create(create)) => create.names.len(),
        Some(Action::Delete(delete)) => delete.victims.len(),
        Some(Action::Claim(claim)) => claim.adopts.len() + claim.releases.len(),
        Some(Action::WriteStatus(_)) => 1,
    }
}

pub(crate) fn display(object: &v1::ObjectRef) -> String {
    format!("{}/{}", object.namespace, object.name)
}

const fn refuse(message: String) -> Refusal {
    Refusal {
        cause: NotStartedCause::Guard,
        message,
    }
}

#[cfg(test)]
mod tests;
