//! Reports of decisions: data that logs, metrics, events and the CLI are made from.

use std::sync::Arc;

use crate::{
    batch::{ActionKind, BatchId, PodRef, Victim},
    event::FailureClass,
    labels::Labels,
    object::{Key, Kind, Span, Status, Timestamp},
    reason::{Reason, Thousandths},
    sync::rank::RankedPod,
};

/// One whole decision, all operations taken to succeed: the answer of `Decide` and `Simulate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The ReplicaSet.
    pub key: Key,
    /// Names of pods to create, in the order of their making.
    pub creates: Vec<Arc<str>>,
    /// Pods to delete, in order of choice.
    pub deletes: Vec<Victim>,
    /// Orphans to adopt, sorted by name.
    pub adopts: Vec<PodRef>,
    /// Owned pods to release, sorted by name.
    pub releases: Vec<PodRef>,
    /// The status to write; `None` where no write is needed.
    pub status: Option<Status>,
    /// When the next availability check is due.
    pub requeue_after: Option<Span>,
    /// Why the ReplicaSet is left alone.
    pub quarantined: Option<String>,
    /// Why, in the order of the steps.
    pub reasons: Vec<Reason>,
}

/// What the core did or noticed, for logs and metrics. Drained by `Controller::poll_report`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerReport {
    /// A sync ended.
    Synced {
        /// The ReplicaSet.
        key: Key,
        /// `None` for success, else the error that is retried with backoff.
        error: Option<String>,
        /// When the next availability check is due, if one was scheduled.
        requeue_after: Option<Span>,
        /// How long the ReplicaSet had waited for it in the queue (`workqueue_queue_duration_seconds`).
        waited: Span,
    },
    /// A sync was put off because the view is older than a write.
    StaleViewSkipped {
        /// The ReplicaSet.
        key: Key,
        /// The kind that is behind.
        kind: Kind,
    },
    /// Another number of pods is wanted. A list that names a ReplicaSet for the first time is none.
    Scaled {
        /// The ReplicaSet.
        key: Key,
        /// When it was seen.
        at: Timestamp,
        /// How many were wanted before; `None` for a ReplicaSet that is new.
        from: Option<i32>,
        /// How many are wanted.
        to: i32,
    },
    /// All outcomes of a batch have come. A status that was written is none.
    Answered(Box<Answered>),
    /// Pods were chosen for deletion; the batch leaves next.
    ScaleDown(Box<ScaleDown>),
    /// A ReplicaSet is left alone.
    Quarantined {
        /// The ReplicaSet.
        key: Key,
        /// Why.
        detail: String,
    },
    /// Pods of a ReplicaSet do not last: nothing is created for a while.
    PodsDoNotLast {
        /// The ReplicaSet.
        key: Key,
        /// How many pods did not last, and how the latest of them ended.
        detail: String,
        /// For how long nothing is created.
        closed: Span,
    },
    /// An orphan matches more than one ReplicaSet (a user's error, spec 3.3).
    OrphanMatchesMany {
        /// The orphan's namespace and name.
        pod: (Arc<str>, Arc<str>),
        /// How many match.
        matches: usize,
    },
    /// The ratio of a victim's age to the youngest ready pod's (spec 7.7), for `replicaset_controller_sorting_deletion_age_ratio`.
    DeletionAgeRatio(Thousandths),
}

/// How the pods of a deletion were chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleDown {
    /// The ReplicaSet.
    pub key: Key,
    /// When it was decided.
    pub at: Timestamp,
    /// The batch.
    pub batch: BatchId,
    /// How many active pods there were.
    pub from: i32,
    /// How many were wanted.
    pub to: i32,
    /// How many pods were chosen.
    pub chosen: usize,
    /// The pods on both sides of the cut, in the order of deletion: the last 20 that were chosen, and the first 5 that stay. All of them were
    /// chosen where no pod stays or where all go.
    pub pods: Vec<RankedPod>,
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The ReplicaSet.
    pub key: Key,
    /// When its last outcome came.
    pub at: Timestamp,
    /// The batch.
    pub batch: BatchId,
    /// What it did.
    pub action: ActionKind,
    /// What became of how many operations.
    pub counts: OutcomeCounts,
    /// The kind of failure of the lowest operation that failed.
    pub failure: Option<FailureClass>,
    /// The words of the cluster about that failure; if nothing failed, those of the agent about the lowest operation that its guard
    /// refused.
    pub message: String,
}

/// How many operations of a batch came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// They took effect, or the wanted state was there already.
    pub done: u32,
    /// They failed.
    pub failed: u32,
    /// They were not started.
    pub not_started: u32,
}

/// How a ReplicaSet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// As wanted.
    InSync,
    /// Queued for a sync.
    Queued,
    /// A batch is in flight.
    Acting,
    /// Waiting for the view, a backoff or a time.
    Waiting,
    /// Invalid, left alone.
    Quarantined,
}

/// One ReplicaSet for inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The ReplicaSet.
    pub key: Key,
    /// Wanted.
    pub replicas: i32,
    /// The labels of the pod template.
    pub template_labels: Labels,
    /// Active, ready, available, terminating pods as the index has them.
    pub status: Status,
    /// How it stands.
    pub state: State,
    /// Why.
    pub reasons: Vec<Reason>,
    /// Operations of the batch in flight and the outcomes that have come.
    pub in_flight: Option<(usize, usize)>,
    /// When it is looked at next without an event.
    pub next_sync: Option<Timestamp>,
    /// Failures in a row.
    pub failures: u32,
    /// Since when not as many pods are available as are wanted, or more are there, as the syncs of this session have found;
    /// `None` while it has converged.
    pub unconverged_since: Option<Timestamp>,
    /// One of the active pods that are not ready, unless it has converged.
    pub unready: Option<Arc<str>>,
    /// The node that most of those pods are on, if none of its pods is ready and it may be why; where they are many, it is that of some of them.
    pub unready_node: Option<UnreadyNode>,
}

/// A node of which no active pod is ready, though most of them were in this session, while pods of other nodes are ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadyNode {
    /// Its name.
    pub name: Arc<str>,
    /// How many active pods are known on it, of all owners.
    pub pods: u32,
}
