//! The input of the core: events of the cluster, and outcomes of operations.

use crate::{
    batch::BatchId,
    compact_uid::CompactUid,
    object::{Key, Kind, Pod, ReplicaSet, ResourceVersion, Span},
};
use std::sync::Arc;

/// What the agent saw in its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The list of a kind begins; an unfinished one is abandoned.
    SnapshotBegin(Kind),
    /// The list of a kind is complete at `version`.
    SnapshotEnd {
        /// The kind.
        kind: Kind,
        /// The version of the list; `None` where the agent has none.
        version: Option<ResourceVersion>,
    },
    /// A pod is like this: inside a snapshot a member of it, outside a change.
    PodApplied(Pod),
    /// A ReplicaSet is like this.
    ReplicaSetApplied(Box<ReplicaSet>),
    /// A pod is gone.
    PodDeleted {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
        /// Its uid; another known uid is left alone.
        uid: CompactUid,
        /// The version of the deletion.
        version: Option<ResourceVersion>,
    },
    /// A ReplicaSet is gone.
    ReplicaSetDeleted {
        /// Which.
        key: Key,
        /// The version of the deletion.
        version: Option<ResourceVersion>,
    },
    /// Everything of a kind up to a version has been shown.
    Bookmark {
        /// The kind.
        kind: Kind,
        /// The version.
        version: ResourceVersion,
    },
}

/// What became of one operation of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The batch.
    pub batch: BatchId,
    /// The number of the operation in its batch, from 0.
    pub operation: u32,
    /// What became of it.
    pub result: OperationResult,
}

/// The effect of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationResult {
    /// It took effect, or the wanted state was there already.
    Done {
        /// The version of the write, where the cluster says it.
        version: Option<ResourceVersion>,
        /// The object after the write. Without it the ReplicaSet waits for a list that begins later.
        after: Option<After>,
    },
    /// It failed.
    Failed {
        /// What kind of failure.
        class: FailureClass,
        /// The cluster's words.
        message: String,
        /// How long the cluster asked to wait.
        retry_after: Option<Span>,
    },
    /// The agent did not start it.
    NotStarted(NotStarted),
}

/// An object after a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// The pod after create, delete, adopt or release.
    Pod(Box<Pod>),
    /// The ReplicaSet after a status write.
    ReplicaSet(Box<ReplicaSet>),
    /// The pod is gone at once.
    Gone,
}

/// What kind of failure; see `FailureClass` of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    missing_docs,
    reason = "one to one with decree.v1.FailureClass, which documents them"
)]
pub enum FailureClass {
    NameTaken,
    NotFound,
    Precondition,
    Forbidden,
    Quota,
    NamespaceTerminating,
    Invalid,
    Conflict,
    Timeout,
    Throttled,
    Unavailable,
    OwnerChanged,
}

/// Why the agent did not start an operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotStarted {
    /// Slow start stopped at an earlier failure.
    SlowStart,
    /// The guard did not hold, in the words of the agent; empty where it gave none.
    Guard(String),
    /// The agent drains or only watches.
    NotEnforcing,
}
