//! The acts and observations of a session, for logs and metrics.

use std::{collections::BTreeMap, sync::Arc};

use decree_api::v1;
use decree_core::{Held, HeldQueue, Kind, ResourceVersion, Sizes, Span};
use prost::Message as _;

/// The maximum number of waiting reports. A shell drains them after every step; if it does not, the oldest are lost.
const WAITING_MAX: usize = 65_536;
/// The memory of the record of a decision in bytes, without its targets, and of a target.
const RECORD_BYTES: usize = 1_000;
const TARGET_BYTES: usize = 300;

/// One report, drained by `Session::poll_report`.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionReport {
    /// A batch was decided and leaves with the next frame.
    Decided {
        /// The decision.
        record: Arc<v1::DecisionRecord>,
        /// The word for its action.
        action: &'static str,
        /// The word for the rule of its first reason.
        rule: &'static str,
    },
    /// Outcomes came.
    Outcomes {
        /// The word for the action of their batches; `unknown` if the batches are not in flight.
        action: &'static str,
        /// The word for the result of the operations.
        result: &'static str,
        /// The number of outcomes.
        count: u64,
    },
    /// Objects of one frame were not accepted.
    NotAccepted {
        /// The number of refused objects by kind, without quarantined ones.
        rejected: Vec<(v1::Kind, u64)>,
        /// The fault of the first object.
        fault: Fault,
        /// The number of further objects of the frame that were not accepted.
        others: u64,
    },
    /// Another controller acted differently, in modes SHADOW and ADVISE.
    Differs(Box<v1::Difference>),
    /// The next frame asks the agent for a list.
    ListRequested {
        /// The kind of the list.
        kind: Kind,
        /// The cause.
        cause: String,
    },
    /// A report of the controller.
    Controller(decree_core::ControllerReport),
}

/// The fault of an object that was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The object's kind.
    pub kind: v1::Kind,
    /// The object, as far as it could be read.
    pub object: v1::ObjectRef,
    /// The fields and their faults, at most 1,000 bytes.
    pub text: String,
    /// Whether it is a ReplicaSet that was accepted and quarantined.
    pub is_quarantined: bool,
}

/// The state of a session in short, and its counters since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The sizes of the controller.
    pub sizes: Sizes,
    /// The acts of another controller that were compared, in modes SHADOW and ADVISE.
    pub comparisons: u64,
    /// The decisions that were not comparable with its acts.
    pub not_compared: u64,
    /// The age of the agent's view, from its latest heartbeat with an age.
    pub view_age: Option<Span>,
    /// Whether both lists are complete.
    pub synced: bool,
    /// The newest version of the pods.
    pub pods_version: Option<ResourceVersion>,
    /// The newest version of the ReplicaSets.
    pub replica_sets_version: Option<ResourceVersion>,
}

/// The waiting reports. Outcomes, which are many, wait as counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    waiting: HeldQueue<SessionReport>,
    outcomes: BTreeMap<(&'static str, &'static str), u64>,
}

impl Reports {
    pub(crate) fn push(&mut self, report: SessionReport) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(report);
    }

    pub(crate) fn count_outcome(&mut self, action: &'static str, result: &'static str) {
        *self.outcomes.entry((action, result)).or_default() += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<SessionReport> {
        self.waiting.pop_front().or_else(|| {
            let ((action, result), count) = self.outcomes.pop_first()?;
            Some(SessionReport::Outcomes {
                action,
                result,
                count,
            })
        })
    }
}

impl Held for Reports {
    fn bytes(&self) -> usize {
        let Self {
            waiting,
            // The words of the contract bound their number.
            outcomes: _,
        } = self;
        waiting.bytes()
    }
}

impl Held for SessionReport {
    fn bytes(&self) -> usize {
        let held = match self {
            Self::Decided { record, .. } => RECORD_BYTES + record.targets.len() * TARGET_BYTES,
            Self::NotAccepted { fault, .. } => RECORD_BYTES + fault.text.len(),
            Self::Differs(difference) => RECORD_BYTES + difference.encoded_len(),
            Self::ListRequested { cause, .. } => cause.len(),
            Self::Controller(report) => report.bytes(),
            Self::Outcomes { .. } => 0,
        };
        size_of::<Self>() + held
    }
}
