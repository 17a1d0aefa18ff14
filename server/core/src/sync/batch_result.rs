//! The combined results of the operations of one batch.

use crate::{
    batch::Operation,
    event::{FailureClass, NotStarted, OperationResult},
    object::Span,
    queue::Retry,
    reason::{Reason, Rule},
    report::OutcomeCounts,
};

/// A value with the number of its operation. Only the value of the lowest operation is kept.
pub(crate) type Lowest<T> = Option<(u32, T)>;

/// The outcomes of a batch so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchResult {
    /// The message of the lowest operation that failed with an error.
    pub(crate) error: Lowest<String>,
    /// A name was taken, a precondition failed, or a guard was not met: the server decides again.
    pub(crate) afresh: bool,
    pub(crate) namespace_terminating: bool,
    /// Some operation was not started, because slow start had stopped.
    pub(crate) skipped: bool,
    /// The agent did not execute.
    pub(crate) not_executed: bool,
    /// The cluster refused something, or did not respond.
    pub(crate) refused: bool,
    /// A guard of the agent was not met.
    pub(crate) guarded: Lowest<String>,
    /// The cluster asked for a delay.
    pub(crate) throttled: Lowest<String>,
    pub(crate) retry_after: Option<Span>,
    pub(crate) counts: OutcomeCounts,
    /// The first failure, whether it is an error or leads to a new decision.
    pub(crate) failure: Lowest<(FailureClass, String)>,
}

// === impl BatchResult ===

impl BatchResult {
    pub(crate) fn count(&mut self, at: u32, operation: &Operation, effect: &OperationResult) {
        match effect {
            OperationResult::Done { .. } => self.counts.done += 1,
            OperationResult::Failed { class, .. } if is_none(operation, *class) => {
                self.counts.done += 1
            }
            OperationResult::NotStarted(why) => {
                self.counts.not_started += 1;
                match why {
                    NotStarted::SlowStart => self.skipped = true,
                    NotStarted::NotEnforcing => self.not_executed = true,
                    // The guard knew something that the view did not. An event mostly brings it; if none comes, only a retry notices.
                    NotStarted::Guard(message) => {
                        (self.not_executed, self.afresh) = (true, true);
                        keep_lowest(&mut self.guarded, at, || message.clone());
                    }
                }
            }
            OperationResult::Failed {
                class,
                message,
                retry_after,
            } => {
                self.counts.failed += 1;
                self.retry_after = self.retry_after.max(*retry_after);
                if *class == FailureClass::Throttled {
                    keep_lowest(&mut self.throttled, at, || message.clone());
                }
                keep_lowest(&mut self.failure, at, || (*class, message.clone()));
                self.count_failure(at, operation, *class, message);
            }
        }
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
                keep_lowest(&mut self.error, at, || message.to_owned());
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
                keep_lowest(&mut self.error, at, || message.to_owned());
            }
        }
    }

    /// Returns the size of the messages of the cluster and of the agent.
    pub(crate) fn bytes(&self) -> usize {
        let words = [&self.error, &self.guarded, &self.throttled];
        let words = words.into_iter().flatten().map(|(_, text)| text.len());
        let failure = self.failure.as_ref().map(|(_, (_, text))| text.len());
        words.chain(failure).sum()
    }

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

    /// Returns the obstacle to operations that may succeed later without a change: the agent, or an overloaded cluster.
    pub(crate) fn obstacle(&self) -> Option<Reason> {
        let guarded = self.guarded.as_ref().map(|it| (Rule::RefusedByAgent, it));
        let throttled = self.throttled.as_ref().map(|it| (Rule::Throttled, it));
        let (rule, (_, words)) = guarded.or(throttled)?;
        Some(Reason::new(rule, words.clone()))
    }

    pub(crate) fn message(self) -> Option<String> {
        self.error.map(|(_, message)| message)
    }
}

/// Keeps the value of an operation, unless there is a value of a lower operation.
fn keep_lowest<T>(kept: &mut Lowest<T>, at: u32, of_this: impl FnOnce() -> T) {
    if kept.as_ref().is_none_or(|(lowest, _)| at < *lowest) {
        *kept = Some((at, of_this()));
    }
}

/// Returns whether a failure counts as success: the pod to delete, adopt or release is gone, or another pod has the name of the pod to
/// release (spec 5.3, 6.6).
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
