//! What has become of the operations of one batch, added up.

use crate::{
    batch::Operation,
    event::{Effect, FailureClass, NotStarted},
    object::Span,
    queue::Retry,
    reason::{Reason, Rule},
    report::OutcomeCounts,
};

/// What was said of an operation, and of which: the lowest speaks for all.
pub(crate) type Words = (u32, String);

/// The outcomes of a batch so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchResult {
    /// The failure of the lowest operation, which speaks for all.
    pub(crate) error: Option<Words>,
    /// Some name was taken, some precondition failed, or a guard did not hold: decide afresh.
    pub(crate) afresh: bool,
    /// Some operation had an effect, or a failure that is none.
    pub(crate) done: bool,
    /// The namespace is being deleted.
    pub(crate) namespace_terminating: bool,
    /// Some operation was not started, as slow start had stopped.
    pub(crate) skipped: bool,
    /// The agent did not execute.
    pub(crate) not_executed: bool,
    /// The cluster refused something, or did not answer.
    pub(crate) refused: bool,
    /// A guard of the agent did not hold.
    pub(crate) guarded: Option<Words>,
    /// The cluster asked to wait.
    pub(crate) throttled: Option<Words>,
    /// The longest wait that the cluster asked for.
    pub(crate) retry_after: Option<Span>,
    /// What became of how many operations.
    pub(crate) counts: OutcomeCounts,
    /// What failed first, whether it is an error or decided afresh.
    pub(crate) failure: Option<(FailureClass, Words)>,
}

// === impl BatchResult ===

impl BatchResult {
    /// Adds what became of an operation.
    pub(crate) fn count(&mut self, at: u32, operation: &Operation, effect: &Effect) {
        self.add(operation, effect);
        match effect {
            Effect::Done { .. } => self.done = true,
            Effect::NotStarted(NotStarted::SlowStart) => self.skipped = true,
            Effect::NotStarted(NotStarted::NotEnforcing) => self.not_executed = true,
            // What the guard knew and this view did not mostly comes as an event; should none come, nobody else would look again.
            Effect::NotStarted(NotStarted::Guard(message)) => {
                self.not_executed = true;
                self.afresh = true;
                keep_lowest(&mut self.guarded, at, message);
            }
            Effect::Failed { class, .. } if is_none(operation, *class) => self.done = true,
            Effect::Failed {
                class,
                message,
                retry_after,
            } => {
                self.retry_after = self.retry_after.max(*retry_after);
                if *class == FailureClass::Throttled {
                    keep_lowest(&mut self.throttled, at, message);
                }
                let first = self.failure.as_ref();
                if first.is_none_or(|(_, (lowest, _))| at < *lowest) {
                    self.failure = Some((*class, (at, message.clone())));
                }
                self.count_failure(at, operation, *class, message);
            }
        }
    }

    fn add(&mut self, operation: &Operation, effect: &Effect) {
        let OutcomeCounts {
            done,
            failed,
            not_started,
        } = &mut self.counts;
        *match effect {
            Effect::Done { .. } => done,
            Effect::Failed { class, .. } if is_none(operation, *class) => done,
            Effect::Failed { .. } => failed,
            Effect::NotStarted(_) => not_started,
        } += 1;
    }

    fn count_failure(
        &mut self,
        at: u32,
        operation: &Operation,
        class: FailureClass,
        message: &str,
    ) {
        match class {
            FailureClass::NameTaken => self.afresh = true,
            FailureClass::Precondition if !matches!(operation, Operation::Adopt(_)) => {
                self.afresh = true
            }
            FailureClass::NamespaceTerminating if matches!(operation, Operation::Create(_)) => {
                self.namespace_terminating = true;
            }
            FailureClass::Precondition | FailureClass::Conflict | FailureClass::OwnerChanged => {
                keep_lowest(&mut self.error, at, message);
            }
            FailureClass::NamespaceTerminating
            | FailureClass::NotFound
            | FailureClass::Forbidden
            | FailureClass::Quota
            | FailureClass::Invalid
            | FailureClass::Timeout
            | FailureClass::Throttled
            | FailureClass::Unavailable => {
                self.refused = true;
                keep_lowest(&mut self.error, at, message);
            }
        }
    }

    /// Returns why it is tried again, if it is.
    pub(crate) const fn retry(&self) -> Option<Retry> {
        if self.refused {
            Some(Retry::Refused)
        } else if self.guarded.is_some() {
            Some(Retry::Guard)
        } else if self.afresh || self.error.is_some() {
            Some(Retry::Conflict)
        } else {
            None
        }
    }

    /// Returns whether a claim with these outcomes ends its sync (spec 5.3).
    pub(crate) const fn ends_sync(&self) -> bool {
        self.error.is_some() || self.afresh || self.not_executed
    }

    /// Returns what held operations back that may well be done later as they are: the agent, or a cluster that has too much to do.
    pub(crate) fn obstacle(&self) -> Option<Reason> {
        let guarded = self.guarded.as_ref().map(|it| (Rule::RefusedByAgent, it));
        let throttled = self.throttled.as_ref().map(|it| (Rule::Throttled, it));
        let (rule, (_, words)) = guarded.or(throttled)?;
        Some(Reason {
            rule,
            detail: words.clone(),
        })
    }

    /// Returns the words of the failure that speaks for all.
    pub(crate) fn message(self) -> Option<String> {
        self.error.map(|(_, message)| message)
    }
}

/// Takes over what was said of an operation, unless a lower one has spoken.
fn keep_lowest(kept: &mut Option<Words>, at: u32, message: &str) {
    if kept.as_ref().is_none_or(|(lowest, _)| at < *lowest) {
        *kept = Some((at, message.to_owned()));
    }
}

/// Returns whether a failure is none: the pod to delete, adopt or release is gone, or the one to release is another by now (spec 5.3, 6.6).
const fn is_none(operation: &Operation, class: FailureClass) -> bool {
    match operation {
        Operation::Delete(_) | Operation::Adopt(_) => matches!(class, FailureClass::NotFound),
        Operation::Release(_) => {
            matches!(
                class,
                FailureClass::NotFound | FailureClass::Invalid | FailureClass::Precondition
            )
        }
        Operation::Create(_) | Operation::WriteStatus => false,
    }
}
