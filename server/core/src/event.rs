//! The input of the core: events of the cluster, and outcomes of operations.

use crate::{
    batch::BatchId,
    object::{Key, Kind, Pod, ReplicaSet, ResourceVersion, Span, Uid},
};
use std::sync::Arc;

/// An event that the agent saw in its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The list of a kind begins; an unfinished one is abandoned.
    SnapshotBegin(Kind),
    /// The list of a kind is complete at `version`.
    SnapshotEnd {
        /// The kind.
        kind: Kind,
        /// The version of the list; `None` if the agent has none.
        version: Option<ResourceVersion>,
    },
    /// A pod has this state: inside a snapshot a member of the list, outside a change.
    PodApplied(Pod),
    /// A ReplicaSet has this state.
    ReplicaSetApplied(Box<ReplicaSet>),
    /// A pod was deleted.
    PodDeleted {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
        /// Its UID. A known pod with another UID stays.
        uid: Uid,
        /// The version of the deletion.
        version: Option<ResourceVersion>,
    },
    /// A ReplicaSet was deleted.
    ReplicaSetDeleted {
        /// The ReplicaSet.
        key: Key,
        /// The version of the deletion.
        version: Option<ResourceVersion>,
    },
    /// The stream has shown everything of a kind up to a version.
    Bookmark {
        /// The kind.
        kind: Kind,
        /// The version.
        version: ResourceVersion,
    },
}

/// The outcome of one operation of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The batch.
    pub batch: BatchId,
    /// The number of the operation in its batch, from 0.
    pub operation: u32,
    /// The result of the operation.
    pub result: OperationResult,
}

/// The effect of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationResult {
    /// It took effect, or the desired state existed already.
    Done {
        /// The version of the write, if the cluster reported it.
        version: Option<ResourceVersion>,
        /// The object after the write. Without it, the ReplicaSet waits for a list that begins later.
        after: Option<After>,
    },
    /// It failed.
    Failed {
        /// The kind of failure.
        class: FailureClass,
        /// The message of the cluster.
        message: String,
        /// The delay that the cluster asked for.
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
    /// The pod was deleted at once.
    Gone,
}

/// The kind of failure; see `FailureClass` of the contract.
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
    /// The guard was not met, with the message of the agent; empty if it gave none.
    Guard(String),
    /// The agent drains, or only watches.
    NotEnforcing,
}
