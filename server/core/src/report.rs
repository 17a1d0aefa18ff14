//! Reports of decisions: the data for logs, metrics, events and the CLI.

use std::sync::Arc;

use crate::{
    batch::{ActionKind, BatchId, PodRef, Victim},
    event::FailureClass,
    held::Held,
    labels::Labels,
    object::{Key, Kind, OwnerReference, Span, Status, Timestamp},
    preferences::Preferences,
    reason::Reason,
    selector::Quarantine,
    sync::rank::RankedPod,
};

/// One whole decision, if all operations succeed: the answer of `Decide` and `Simulate`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The ReplicaSet.
    pub key: Key,
    /// Names of pods to create, in the order of creation.
    pub creates: Vec<Arc<str>>,
    /// Pods to delete, in order of choice.
    pub deletes: Vec<Victim>,
    /// Orphans to adopt, sorted by name.
    pub adopts: Vec<PodRef>,
    /// Owned pods to release, sorted by name.
    pub releases: Vec<PodRef>,
    /// The status to write; `None` if no write is needed.
    pub status: Option<Status>,
    /// When the next availability check is due.
    pub requeue_after: Option<Span>,
    /// Why the ReplicaSet is quarantined; `None` if it is not.
    pub quarantined: Option<String>,
    /// The reasons, in the order of the steps.
    pub reasons: Vec<Reason>,
}

/// An act or observation of the core, for logs and metrics. `Controller::poll_report` drains the reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerReport {
    /// A sync ended.
    Synced {
        /// The ReplicaSet.
        key: Key,
        /// `None` for success, else the error that the server retries with backoff.
        error: Option<String>,
        /// When the next availability check is due, if one was scheduled.
        requeue_after: Option<Span>,
    },
    /// A sync was delayed because the view is older than a write.
    StaleViewSkipped {
        /// The ReplicaSet.
        key: Key,
        /// The kind with the older view.
        kind: Kind,
    },
    /// The number of desired pods has changed. A list that names a ReplicaSet for the first time is no change.
    Scaled {
        /// The ReplicaSet.
        key: Key,
        /// When the server saw the change.
        at: Timestamp,
        /// The number of desired pods before; `None` for a new ReplicaSet.
        from: Option<i32>,
        /// The number of desired pods.
        to: i32,
        /// The manager that wrote it; empty if unknown.
        manager: Arc<str>,
    },
    /// All outcomes of a batch have come. A successful status write has no such report.
    Answered(Box<Answered>),
    /// The server chose victims; the batch leaves next.
    ScaleDown(Box<ScaleDown>),
    /// A ReplicaSet is quarantined.
    Quarantined {
        /// The ReplicaSet.
        key: Key,
        /// The reason.
        detail: String,
    },
    /// The session has no memory for the content of a ReplicaSet, or for the labels of its pods: it is quarantined from now on.
    BeyondMemory {
        /// The ReplicaSet.
        key: Key,
        /// What there is no memory for.
        quarantine: Quarantine,
    },
    /// A ReplicaSet lacks pods, and a limit lets the server create none for a while. Reported at most once a minute.
    CreatesWait {
        /// The ReplicaSet.
        key: Key,
        /// The limit: `PodsDoNotLast` or `ManyUnassigned`.
        reason: Reason,
        /// How long the server creates none.
        wait: Span,
    },
}

/// How the server chose the victims of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleDown {
    /// The ReplicaSet.
    pub key: Key,
    /// The time of the decision.
    pub at: Timestamp,
    /// The batch.
    pub batch: BatchId,
    /// The number of active pods.
    pub from: i32,
    /// The number of desired pods.
    pub to: i32,
    /// The number of victims.
    pub chosen: usize,
    /// The pods on both sides of the cut, in the order of deletion: the last 20 victims and the first 5 remaining pods. If no pod remains,
    /// all of them are victims.
    pub pods: Vec<RankedPod>,
    /// How pods were asked for their costs, for people; empty if none was.
    pub costs: Box<str>,
}

/// The result of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The ReplicaSet.
    pub key: Key,
    /// The time of its last outcome.
    pub at: Timestamp,
    /// The batch.
    pub batch: BatchId,
    /// The kind of its action.
    pub action: ActionKind,
    /// The number of operations by result.
    pub counts: OutcomeCounts,
    /// The kind of failure of the lowest operation that failed.
    pub failure: Option<FailureClass>,
    /// The message of the cluster about that failure. If nothing failed, the message of the agent about the lowest operation that its guard
    /// refused.
    pub message: String,
}

/// The number of operations of a batch by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Operations that took effect, or whose desired state existed already.
    pub done: u32,
    /// Operations that failed.
    pub failed: u32,
    /// Operations that were not started.
    pub not_started: u32,
}

/// The state of a ReplicaSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// As desired.
    InSync,
    /// Queued for a sync.
    Queued,
    /// A batch is in flight.
    Acting,
    /// Waiting for the view, a backoff or a time.
    Waiting,
    /// Invalid; not reconciled.
    Quarantined,
}

/// One ReplicaSet for inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The ReplicaSet.
    pub key: Key,
    /// The number of desired pods.
    pub replicas: i32,
    /// The number of pods to have in advance of evictions, beyond the desired ones.
    pub in_advance: i32,
    /// The controller owner, such as a Deployment.
    pub controller: Option<OwnerReference>,
    /// The labels of the pod template.
    pub template_labels: Labels,
    /// Active, ready, available and terminating pods in the index.
    pub status: Status,
    /// The state.
    pub state: State,
    /// The reasons for the state.
    pub reasons: Vec<Reason>,
    /// The number of operations of the batch in flight, and of their outcomes so far.
    pub in_flight: Option<(usize, usize)>,
    /// When the server looks at it next without an event.
    pub next_sync: Option<Timestamp>,
    /// Failures in a row.
    pub failures: u32,
    /// Since when fewer pods are available than desired, or more are active, as the syncs of this session have found; `None` if it has
    /// converged.
    pub unconverged_since: Option<Timestamp>,
    /// An active pod that is not ready; `None` if it has converged.
    pub unready: Option<Arc<str>>,
    /// The wishes of its owner; `None` without one.
    pub preferences: Option<Box<Preferences>>,
    /// The pods that are not ready and have a waiting reason: the active pods, then those that have ended. Of both, the most frequent
    /// reasons come first.
    pub not_ready: Vec<NotReady>,
}

/// Pods that are not ready for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReady {
    /// The reason; empty for all other reasons together.
    pub reason: Arc<str>,
    /// The number of pods.
    pub pods: usize,
    /// Whether they have ended.
    pub ended: bool,
}

impl Held for ControllerReport {
    fn bytes(&self) -> usize {
        let held = match self {
            Self::Synced { error, .. } => error.as_ref().map_or(0, String::len),
            Self::Answered(answered) => size_of::<Answered>() + answered.message.len(),
            Self::ScaleDown(it) => {
                let pods = it.pods.iter().map(Held::bytes).sum::<usize>();
                size_of::<ScaleDown>() + it.costs.len() + pods
            }
            Self::Quarantined { detail, .. } => detail.len(),
            Self::CreatesWait { reason, .. } => reason.detail.len(),
            Self::BeyondMemory { quarantine, .. } => {
                quarantine.field.len() + quarantine.detail.len()
            }
            Self::Scaled { manager, .. } => manager.len(),
            Self::StaleViewSkipped { .. } => 0,
        };
        size_of::<Self>() + held
    }
}

impl Held for RankedPod {
    fn bytes(&self) -> usize {
        let node = self.node.as_ref().map_or(0, |node| node.len());
        let preferred = self.preferred.iter();
        let preferred = preferred.map(|it| size_of_val(it) + it.1.len());
        let texts = self.name.len() + node + preferred.sum::<usize>();
        size_of::<Self>() + texts + self.reason.bytes()
    }
}
