//! What a session did or noticed, for logs and metrics.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use decree::v1;
use server_core::{Key, Kind, Sizes, Span};

/// How many reports wait at most. A shell drains them after every step; one that does not loses the oldest.
const WAITING_MAX: usize = 65_536;

/// One report, drained by `Session::poll_report`.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionReport {
    /// A batch was decided and leaves with the next frame.
    Decided {
        /// What was decided.
        record: Arc<v1::DecisionRecord>,
        /// The word for its action.
        action: &'static str,
        /// The word for the rule that comes first among its reasons.
        rule: &'static str,
    },
    /// Outcomes came.
    Outcomes {
        /// The word for the action of their batches; `unknown` for those of no batch in flight.
        action: &'static str,
        /// The word for what became of the operations.
        result: &'static str,
        /// How many.
        count: u64,
    },
    /// Objects of one frame were not accepted.
    NotAccepted {
        /// How many of each kind were refused; quarantined ones are not counted.
        rejected: Vec<(v1::Kind, u64)>,
        /// The first of them whose fault was not reported before.
        fault: Option<Fault>,
        /// How many objects of the frame were not accepted beside one.
        others: u64,
    },
    /// Another controller did otherwise, in mode SHADOW.
    Differs {
        /// The ReplicaSet.
        key: Key,
        /// The word for what differs.
        subject: &'static str,
        /// The word for the documented departure that explains it, or `none`.
        departure: &'static str,
        /// What was decided here, for people.
        decided: String,
        /// What was done there, for people.
        done: String,
    },
    /// Both lists are complete.
    ViewComplete {
        /// The pods.
        pods: usize,
        /// The ReplicaSets.
        replica_sets: usize,
    },
    /// The agent is asked for a list, by the frame that leaves next.
    ListRequested {
        /// Of which kind.
        kind: Kind,
        /// Why.
        cause: String,
    },
    /// The controller's own.
    Controller(server_core::ControllerReport),
}

/// What is wrong with an object that was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The object's kind.
    pub kind: v1::Kind,
    /// The object, as far as it could be read.
    pub object: v1::ObjectRef,
    /// The fields and what is wrong with each, at most 1,000 bytes.
    pub text: String,
    /// Whether it is a ReplicaSet that was taken in and is left alone.
    pub is_quarantined: bool,
}

/// How much a session holds, and what it has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// What the controller holds.
    pub sizes: Sizes,
    /// Pods and changes of pods that came.
    pub pod_events: u64,
    /// ReplicaSets and changes of ReplicaSets that came.
    pub replica_set_events: u64,
    /// What another controller did and was compared, in mode SHADOW.
    pub comparisons: u64,
    /// How old the agent said its view was, in its latest heartbeat that did.
    pub view_age: Option<Span>,
}

/// The reports that wait. Outcomes, which are many, wait as counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    waiting: VecDeque<SessionReport>,
    outcomes: BTreeMap<(&'static str, &'static str), u64>,
}

// === impl Reports ===

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
