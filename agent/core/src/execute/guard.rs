//! The agent's own conditions for a batch, checked on arrival and again just before each operation starts.
//!
//! **Invariant:** a batch of another session or epoch has no effect. **Invariant:** no effect leaves the allow list of namespaces, for any
//! request of a server. **Invariant:** a batch serves exactly the ReplicaSet that it names, by namespace, name and UID, or has no effect.

use decree_api::v1::{self, batch::Action};

use crate::{
    agent::config::AgentConfig,
    api::{Object, display, object_ref},
    refusal::{Refusal, Rule},
    view::View,
};

/// The most operations that one batch may carry: the upper end of what `burst_replicas` allows.
pub(crate) const OPERATIONS_MAX: usize = 5_000;

/// The conditions for batches and their operations. Changed only when a session begins or ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// The session that batches must belong to; `None` refuses all.
    pub(crate) session_id: Option<String>,
    /// How many operations may be in flight in the session; 0 for no bound.
    pub(crate) operations_in_flight_max: usize,
    pub(crate) config: AgentConfig,
}

impl Guard {
    /// The reference of new pods to their ReplicaSet (spec 6.3).
    pub(crate) fn controller_reference(&self, owner: &v1::ObjectRef) -> v1::OwnerReference {
        v1::OwnerReference {
            api_version: self.config.api_version.clone(),
            kind: "ReplicaSet".into(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
            block_owner_deletion: Some(true),
        }
    }

    /// Applies the operator's policy to the preferences of a ReplicaSet. The other controller of shadow mode follows none.
    pub(crate) fn apply_preferences(&self, set: &mut v1::ReplicaSet) {
        if self.config.mode == v1::Mode::Shadow {
            set.preferences = None;
            set.ignored_annotations.clear();
        } else {
            self.config.preferences.apply(set, self.config.nodes());
        }
    }

    pub(crate) fn allows(&self, object: &Object) -> bool {
        match object {
            Object::Pod(pod) => self.config.allows_namespace(&pod.namespace),
            Object::ReplicaSet(set) => self.allows_replica_set(&set.projected),
        }
    }

    pub(crate) fn allows_replica_set(&self, set: &v1::ReplicaSet) -> bool {
        let left_out = self.config.left_out.as_ref();
        let is_left_out = left_out
            .is_some_and(|(namespace, name)| (namespace, name) == (&set.namespace, &set.name));
        self.config.allows_namespace(&set.namespace) && !is_left_out
    }

    /// Checks a batch on arrival; `in_flight` operations are under way.
    ///
    /// # Errors
    /// The reason why none of its operations starts.
    pub(crate) fn check_batch(&self, batch: &v1::Batch, in_flight: usize) -> Result<(), Refusal> {
        let refuse = |rule, text: String| Err(Refusal::new(rule, text));
        let v1::Guard { session_id, epoch } = batch.guard.clone().unwrap_or_default();
        if self.session_id.as_ref() != Some(&session_id) {
            let text = format!("the batch is of session {session_id:?}");
            return refuse(Rule::Session, text);
        }
        if epoch != self.config.epoch {
            return refuse(Rule::Session, format!("the batch is of epoch {epoch}"));
        }
        let count = operation_count(batch);
        // The server sends a batch above the bound only when nothing else is in flight. Refusing it would make the server resend it
        // forever.
        let bound = self.operations_in_flight_max;
        let is_over = bound != 0 && in_flight != 0 && in_flight.saturating_add(count) > bound;
        if count > OPERATIONS_MAX || is_over {
            let text = format!("{count} more operations are too many");
            return refuse(Rule::Limit, text);
        }
        Ok(())
    }

    /// Checks the ReplicaSet of a batch, and returns it: on arrival, and again before each operation.
    ///
    /// The UID finds the template and the owner of new pods; the namespace and the name direct the calls. If they named different
    /// ReplicaSets, a batch could copy a template into another namespace.
    pub(crate) fn check_replica_set<'a>(
        &self,
        view: &'a View,
        batch: &v1::Batch,
    ) -> Result<&'a v1::ReplicaSet, Refusal> {
        let refuse = |text: String| Err(Refusal::new(Rule::Reference, text));
        // A deletion can overtake any decision.
        let overtaken = |text: String| Err(Refusal::new(Rule::Inactive, text));
        let Some(owner) = &batch.replica_set else {
            return refuse("the batch names no replica set".into());
        };
        if !self.config.allows_namespace(&owner.namespace) {
            return refuse(format!("namespace {:?} is not allowed", owner.namespace));
        }
        let Some(known) = view.templates.newest(&owner.uid) else {
            return overtaken(format!("replica set {} is gone", display(owner)));
        };
        if (&known.namespace, &known.name) != (&owner.namespace, &owner.name) {
            let (owner, uid) = (display(owner), &owner.uid);
            let known = display(&object_ref(known));
            return refuse(format!(
                "replica set {owner} has another uid than {uid}, which is that of {known}"
            ));
        }
        let advises = matches!(batch.action, Some(Action::Advise(_)));
        if advises != (self.config.mode == v1::Mode::Advise) {
            let text = "an agent advises in mode advise, and does nothing else then";
            return Err(Refusal::new(Rule::Advice, text.to_owned()));
        }
        let writes_status = matches!(batch.action, Some(Action::WriteStatus(_)));
        if known.deletion_timestamp.is_some() && !writes_status {
            return overtaken(format!("replica set {} is being deleted", display(owner)));
        }
        Ok(known)
    }
}

pub(crate) fn operation_count(batch: &v1::Batch) -> usize {
    match &batch.action {
        None => 0,
        Some(Action::Create(create)) => create.names.len(),
        Some(Action::Delete(delete)) => delete.victims.len(),
        Some(Action::Claim(claim)) => claim.adopts.len() + claim.releases.len(),
        Some(Action::WriteStatus(_)) => 1,
        Some(Action::Advise(advise)) => advise.advices.len(),
    }
}

#[cfg(test)]
mod tests;
