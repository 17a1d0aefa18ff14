//! Batches: one action on one ReplicaSet each, with the versions that the decision rests on, and its reasons.

use std::sync::Arc;

use crate::{
    object::{Key, Kind, ResourceVersion, Status, Uid},
    reason::Reason,
};

/// Numbers the batches of a controller from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// One action for the agent. Each of its operations gets exactly one outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number of the batch.
    pub id: BatchId,
    /// The ReplicaSet of the action.
    pub key: Key,
    /// The generation of the ReplicaSet at the decision.
    pub generation: i64,
    /// The version of the ReplicaSet at the decision.
    pub replica_set_version: Option<ResourceVersion>,
    /// The newest version of pods at the decision.
    pub pods_version: Option<ResourceVersion>,
    /// The action.
    pub action: Action,
    /// The reasons for the action.
    pub reasons: Vec<Reason>,
}

/// All actions that the agent can execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create pods with these names; operation k is the k-th name.
    Create {
        /// The names, in the order of creation.
        names: Vec<Arc<str>>,
        /// The `generateName` of the pods.
        generate_name: Arc<str>,
        /// The number of creates in the first round of slow start.
        slow_start_initial: u32,
    },
    /// Delete pods; operation k is the k-th victim.
    Delete(Vec<Victim>),
    /// Adopt, then release. The operation numbers count the adoptions first, then the releases.
    Claim {
        /// Orphans to adopt, sorted by name.
        adopts: Vec<PodRef>,
        /// Owned pods to release, sorted by name.
        releases: Vec<PodRef>,
    },
    /// Replace the status; operation 0.
    WriteStatus(Box<Status>),
    /// Write deletion costs; operation k is the k-th advice.
    Advise(Vec<Advice>),
}

/// The kind of an action, without its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionKind {
    /// Create pods.
    Create,
    /// Delete pods.
    Delete,
    /// Adopt and release pods.
    Claim,
    /// Replace the status.
    WriteStatus,
    /// Write deletion costs.
    Advise,
}

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Create(Arc<str>),
    Delete(PodRef),
    Adopt(PodRef),
    Release(PodRef),
    WriteStatus,
    Advise(Advice),
}

/// A pod by name and UID, in the namespace of the batch's ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// The name.
    pub name: Arc<str>,
    /// The UID.
    pub uid: Uid,
}

/// The deletion cost of a pod, as advice for another controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The pod.
    pub pod: PodRef,
    /// The cost; 0 takes it away.
    pub cost: i32,
}

/// A pod chosen for deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The pod.
    pub pod: PodRef,
    /// A further precondition of the delete, if set (option `delete_by_version`).
    pub version: Option<ResourceVersion>,
    /// Why the server chose this pod before others.
    pub reason: Reason,
}

impl Action {
    /// The kind of the action.
    pub const fn kind(&self) -> ActionKind {
        match self {
            Self::Create { .. } => ActionKind::Create,
            Self::Delete(_) => ActionKind::Delete,
            Self::Claim { .. } => ActionKind::Claim,
            Self::WriteStatus(_) => ActionKind::WriteStatus,
            Self::Advise(_) => ActionKind::Advise,
        }
    }

    /// The number of operations, and thus of outcomes.
    pub fn operations(&self) -> usize {
        match self {
            Self::Create { names, .. } => names.len(),
            Self::Delete(victims) => victims.len(),
            Self::Claim { adopts, releases } => adopts.len() + releases.len(),
            Self::WriteStatus(_) => 1,
            Self::Advise(advices) => advices.len(),
        }
    }

    /// Returns the operations, without the fields that only the agent needs.
    pub(crate) fn each_operation(&self) -> Vec<Operation> {
        match self {
            Self::Create { names, .. } => names.iter().cloned().map(Operation::Create).collect(),
            Self::Delete(victims) => {
                let victims = victims.iter().map(|victim| victim.pod.clone());
                victims.map(Operation::Delete).collect()
            }
            Self::Claim { adopts, releases } => {
                let adopts = adopts.iter().cloned().map(Operation::Adopt);
                let releases = releases.iter().cloned().map(Operation::Release);
                adopts.chain(releases).collect()
            }
            Self::WriteStatus(_) => vec![Operation::WriteStatus],
            Self::Advise(advices) => advices.iter().cloned().map(Operation::Advise).collect(),
        }
    }
}

impl Operation {
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Create(_)
            | Self::Delete(_)
            | Self::Adopt(_)
            | Self::Release(_)
            | Self::Advise(_) => Kind::Pod,
            Self::WriteStatus => Kind::ReplicaSet,
        }
    }
}
