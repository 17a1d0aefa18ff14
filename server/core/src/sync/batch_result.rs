//! The combined results of the operations of one batch.

use crate::{
    batch::Operation,
    event::{FailureClass, NotStarted, OperationResult},
    held::Held,
    object::Span,
    queue::Retry,
    reason::{Reason, Rule},
    report::OutcomeCounts,
};

/// The size in bytes to which the messages of a result that waits for a list are cut.
const WAITING_MESSAGE_MAX: usize = 512;
/// The size in bytes to which the message of an obstacle is cut, which is kept until an attempt succeeds.
const OBSTACLE_MAX: usize = 1_024;
const MESSAGE: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchResult {
    /// The lowest operation that failed with an error.
    error: Option<u32>,
    /// A name was taken, or a precondition failed: the server decides again.
    afresh: bool,
    pub(crate) namespace_terminating: bool,
    /// Some operation was not started, because slow start had stopped.
    pub(crate) skipped: bool,
    pub(crate) not_executed: bool,
    /// The cluster or a guard of the agent refused something, or the cluster did not respond.
    refused: bool,
    /// The lowest operation that a guard of the agent refused.
    guarded: Option<u32>,
    /// The lowest operation for which the cluster asked for a delay.
    throttled: Option<u32>,
    pub(crate) retry_after: Option<Span>,
    pub(crate) counts: OutcomeCounts,
    /// The lowest operation that failed, whether that is an error or leads to a new decision.
    failure: Option<(u32, FailureClass)>,
    /// The messages of the cluster or the agent about the operations above, once for each operation.
    messages: Vec<(u32, String)>,
}

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
                        (self.not_executed, self.refused) = (true, true);
                        keep_lowest(&mut self.guarded, at);
                        self.keep_message(at, message);
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
                    keep_lowest(&mut self.throttled, at);
                }
                if self.failure.is_none_or(|(lowest, _)| at < lowest) {
                    self.failure = Some((at, *class));
                }
                self.count_failure(at, operation, *class);
                self.keep_message(at, message);
            }
        }
    }

    fn count_failure(&mut self, at: u32, operation: &Operation, class: FailureClass) {
        match class {
            FailureClass::NameTaken => self.afresh = true,
            FailureClass::Precondition if !matches!(operation, Operation::Adopt(_)) => {
                self.afresh = true
            }
            FailureClass::Conflict if matches!(operation, Operation::Advise(_)) => {
                self.afresh = true
            }
            FailureClass::NamespaceTerminating if matches!(operation, Operation::Create(_)) => {
                self.namespace_terminating = true;
            }
            FailureClass::Precondition | FailureClass::Conflict | FailureClass::OwnerChanged => {
                keep_lowest(&mut self.error, at);
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
                keep_lowest(&mut self.error, at);
            }
        }
    }

    /// Keeps the message about an operation, if it is the lowest of some kind, and drops messages that no kind needs any more.
    fn keep_message(&mut self, at: u32, message: &str) {
        let failure = self.failure.map(|(at, _)| at);
        let kept = [self.error, self.guarded, self.throttled, failure];
        if kept.contains(&Some(at)) {
            self.messages.push((at, message.to_owned()));
            self.messages.retain(|(at, _)| kept.contains(&Some(*at)));
        }
    }

    fn message_of(&self, at: u32) -> &str {
        let message = self.messages.iter().find(|(of, _)| *of == at);
        message.map_or("", |(_, message)| message)
    }

    /// Cuts the messages, for a result that may have to wait for long.
    pub(crate) fn cut(mut self) -> Self {
        self.messages.iter_mut().for_each(|(_, it)| cut(it));
        self
    }

    pub(crate) const fn retry(&self) -> Option<Retry> {
        if self.refused {
            Some(Retry::Refused)
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
        let guarded = self.guarded.map(|at| (Rule::RefusedByAgent, at));
        let throttled = self.throttled.map(|at| (Rule::Throttled, at));
        let (rule, at) = guarded.or(throttled)?;
        let message = self.message_of(at);
        let end = message.floor_char_boundary(OBSTACLE_MAX);
        Some(Reason::new(rule, message[..end].to_owned()))
    }

    /// Returns the class of the lowest failure, and the message about it. If nothing failed, returns the message about the lowest operation
    /// that a guard refused.
    pub(crate) fn failure(&self) -> (Option<FailureClass>, &str) {
        let at = self.failure.map(|(at, _)| at).or(self.guarded);
        let class = self.failure.map(|(_, class)| class);
        (class, at.map_or("", |at| self.message_of(at)))
    }

    pub(crate) fn message(&self) -> Option<String> {
        Some(self.message_of(self.error?).to_owned())
    }
}

impl Held for BatchResult {
    fn bytes(&self) -> usize {
        let messages = self.messages.iter().map(|(_, message)| message);
        size_of::<Self>() + messages.map(|it| MESSAGE + it.len()).sum::<usize>()
    }
}

/// Cuts a message that may have to wait for long.
pub(super) fn cut(message: &mut String) {
    message.truncate(message.floor_char_boundary(WAITING_MESSAGE_MAX));
    message.shrink_to_fit();
}

fn keep_lowest(kept: &mut Option<u32>, at: u32) {
    *kept = Some(kept.map_or(at, |lowest| lowest.min(at)));
}

/// Returns whether a failure counts as success: the pod to delete, adopt or release is gone, or another pod has the name of the pod to
/// release (spec 5.3, 6.6).
const fn is_none(operation: &Operation, class: FailureClass) -> bool {
    match operation {
        Operation::Delete(_) | Operation::Adopt(_) | Operation::Advise(_) => {
            matches!(class, FailureClass::NotFound)
        }
        Operation::Release(_) => {
            matches!(
                class,
                FailureClass::NotFound | FailureClass::Invalid | FailureClass::Precondition
            )
        }
        Operation::Create(_) | Operation::WriteStatus => false,
    }
}
