//! One pass over one ReplicaSet, as a run that is resumed when the outcomes of its batch have come: claim, manage, status (spec 5.1).
//!
//! A run has at most one batch in flight. Between its steps the view may change; each step decides on the view of its moment, except that
//! the status counts the pods as they were before the manage step acted.

pub(crate) mod claim;
pub(crate) mod manage;
pub(crate) mod rank;
pub(crate) mod status;

use self::{manage::Attempt, status::Frozen};
use crate::{
    batch::{Action, BatchId},
    controller::Controller,
    event::{Effect, FailureClass, NotStarted},
    index::{Set, SetId},
    object::{Key, Span, Timestamp},
    report::{Reason, Report},
};

/// How far the sync of a ReplicaSet is.
#[derive(Debug)]
pub(crate) struct Run {
    /// The batch whose outcomes it waits for.
    pub(crate) batch: BatchId,
    pub(crate) step: Step,
}

/// The step whose outcomes a run waits for.
#[derive(Debug)]
pub(crate) enum Step {
    /// Pods are being adopted and released.
    Claim,
    /// Pods are being created or deleted.
    Manage(Frozen),
    /// The status is being written.
    Status {
        attempt: Attempt,
        requeue_after: Option<Span>,
    },
}

/// A batch on its way and what has become of its operations.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) set: SetId,
    pub(crate) key: Key,
    pub(crate) action: Action,
    pub(crate) answered: Vec<bool>,
    pub(crate) remaining: usize,
    pub(crate) tally: Tally,
}

/// What has become of the operations of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How many took effect.
    pub(crate) done: usize,
    /// The failure of the lowest operation, which speaks for all.
    pub(crate) error: Option<(u32, String)>,
    /// Some name was taken, or some precondition failed: decide afresh.
    pub(crate) afresh: bool,
    /// The namespace is being deleted.
    pub(crate) namespace_terminating: bool,
    /// The agent did not execute.
    pub(crate) not_executed: bool,
    /// The longest wait that the cluster asked for.
    pub(crate) retry_after: Option<Span>,
}

/// What a step of a run comes to.
#[derive(Debug)]
pub(crate) enum Next {
    /// A batch to send.
    Send(Action, Vec<Reason>, Step),
    /// The sync is over.
    Finished(End),
}

/// How a sync ends.
#[derive(Debug, Default)]
pub(crate) struct End {
    pub(crate) error: Option<String>,
    pub(crate) requeue_after: Option<Span>,
    /// Look again soon, though nothing is wrong.
    pub(crate) afresh: bool,
    pub(crate) retry_after: Option<Span>,
}

// === impl Tally ===

impl Tally {
    /// Notes a failure that the caller does not count as one of its own.
    pub(crate) fn note(&mut self, operation: u32, effect: &Effect) {
        match effect {
            Effect::Done { .. } => self.done += 1,
            Effect::NotStarted(NotStarted::SlowStart) => {}
            Effect::NotStarted(NotStarted::Guard | NotStarted::NotEnforcing) => {
                self.not_executed = true
            }
            Effect::Failed {
                class,
                message,
                retry_after,
            } => {
                self.retry_after = self.retry_after.max(*retry_after);
                self.note_failure(operation, *class, message);
            }
        }
    }

    fn note_failure(&mut self, operation: u32, class: FailureClass, message: &str) {
        match class {
            FailureClass::NameTaken | FailureClass::Precondition => self.afresh = true,
            FailureClass::NamespaceTerminating => self.namespace_terminating = true,
            FailureClass::NotFound
            | FailureClass::Forbidden
            | FailureClass::Quota
            | FailureClass::Invalid
            | FailureClass::Conflict
            | FailureClass::Timeout
            | FailureClass::Throttled
            | FailureClass::Unavailable
            | FailureClass::OwnerChanged => {
                if self
                    .error
                    .as_ref()
                    .is_none_or(|(lowest, _)| operation < *lowest)
                {
                    self.error = Some((operation, message.to_owned()));
                }
            }
        }
    }
}

// === impl Controller ===

impl Controller {
    /// Begins the sync of a ReplicaSet.
    pub(crate) fn begin(&mut self, now: Timestamp, id: SetId) -> Next {
        let Some(set) = self.index.set(id) else {
            return Next::Finished(End::default());
        };
        if let Err(quarantine) = &set.object.selector {
            let detail = format!("{}: {}", quarantine.field, quarantine.detail);
            let key = set.object.key.clone();
            self.quarantine(id, key, detail);
            return Next::Finished(End::default());
        }
        self.quarantined.remove(&id);
        match claim::decide(&self.index, id) {
            Some((action, reasons)) => Next::Send(action, reasons, Step::Claim),
            None => self.manage(now, id),
        }
    }

    /// Goes on with a sync whose batch is answered.
    pub(crate) fn resume(&mut self, now: Timestamp, id: SetId, step: Step, tally: Tally) -> Next {
        match step {
            Step::Claim if tally.error.is_some() || tally.afresh || tally.not_executed => {
                Next::Finished(End {
                    error: tally.error.map(|(_, message)| message),
                    afresh: tally.afresh,
                    retry_after: tally.retry_after,
                    requeue_after: None,
                })
            }
            Step::Claim => self.manage(now, id),
            Step::Manage(frozen) => {
                let attempt = Attempt::judge(&frozen, tally);
                self.write_status(now, id, frozen, attempt)
            }
            Step::Status {
                attempt,
                requeue_after,
            } => Next::Finished(attempt.end(tally, requeue_after)),
        }
    }

    fn quarantine(&mut self, id: SetId, key: Key, detail: String) {
        if self.quarantined.get(&id) != Some(&detail) {
            self.reports.push_back(Report::Quarantined {
                key,
                detail: detail.clone(),
            });
            self.quarantined.insert(id, detail);
        }
    }
}

/// Returns whether the ReplicaSet may have pods made, taken or given away.
pub(crate) const fn is_alive(set: &Set) -> bool {
    !set.object.deleting
}
