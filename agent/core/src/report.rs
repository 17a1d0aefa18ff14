//! What happened in the agent, as data for the shell's logs and metrics.

use std::borrow::Cow;

use decree_api::v1::{self, outcome::Outcome as OutcomeKind};

use crate::{
    api::{InvalidObject, Kind},
    budget::{Change, PodOfOther},
    link::Disconnect,
    recorder::Note,
    refusal::Rule,
    watch::history::WentBack,
};

/// One thing that happened. Drained by [`Agent::poll_report`](crate::agent::Agent::poll_report).
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// A session began.
    SessionOpened {
        /// The server's name for it.
        id: String,
    },
    /// A session, or the attempt to open one, ended.
    Disconnected(Disconnect),
    /// The versions of the cluster went back. The agent forgets the cluster, and an open session ends.
    WentBack(WentBack),
    /// A list was not used: it lacks pods that were created while the versions of the cluster went back.
    OldHistory {
        /// The number of missing pods.
        pods: usize,
    },
    /// The server asked for an end of the session.
    Draining,
    /// All objects of a kind were listed and are on their way to the server.
    Listed {
        /// The kind.
        kind: Kind,
        /// How many objects.
        count: usize,
    },
    /// The server asked for another list.
    ResyncAsked(v1::Resync),
    /// An object cannot be read and was left out.
    Skipped(InvalidObject),
    /// The server did not accept an object.
    Rejected(v1::RejectedObject),
    /// Operations are not started, because a rule refuses them.
    Refused(Refused),
    /// Another controller created a pod of a ReplicaSet.
    PodOfOther(PodOfOther),
    /// A limit of the budget was exceeded, or a hold began or ended.
    Budget(Box<Change>),
    /// The batch that an agent outside enforce mode would have executed. The agent refuses the batch as well.
    Shown(Box<v1::Batch>),
    /// A note for people about a create, a delete or the budget.
    Noted(Note),
    /// The deletion cost of a pod was not written, for another reason than a change of the pod.
    AdviceFailed {
        /// The pod.
        pod: v1::ObjectRef,
        /// The cluster's words.
        message: String,
    },
    /// An outcome is on its way to the server.
    Finished {
        /// The batch.
        batch_id: u64,
        /// The operation in it.
        operation: u32,
        /// `done`, `not_started`, or the contract's word for the class of the failure, in lower case.
        class: Cow<'static, str>,
        /// The cluster's words, empty for success.
        message: String,
    },
}

/// Operations of one ReplicaSet that a rule refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The ReplicaSet that they would have served.
    pub replica_set: v1::ObjectRef,
    /// The rule.
    pub rule: Rule,
    /// Why, for people.
    pub message: String,
    /// How many operations.
    pub operations: usize,
}

impl Report {
    pub(crate) fn finished(outcome: &v1::Outcome) -> Self {
        let (class, message) = match &outcome.outcome {
            Some(OutcomeKind::Done(_)) => ("done".into(), ""),
            Some(OutcomeKind::NotStarted(it)) => ("not_started".into(), it.message.as_str()),
            Some(OutcomeKind::Failed(failed)) => {
                let class = failed.failure_class().as_str_name();
                let word = class.trim_start_matches("FAILURE_CLASS_").to_lowercase();
                (word.into(), failed.message.as_str())
            }
            None => ("not_started".into(), ""),
        };
        Self::Finished {
            batch_id: outcome.batch_id,
            operation: outcome.operation,
            class,
            message: message.to_owned(),
        }
    }
}
