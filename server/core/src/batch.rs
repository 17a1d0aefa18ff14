//! What leaves the core: one action on one ReplicaSet, with the view it rests on and its reasons.

use std::sync::Arc;

use crate::{
    compact_uid::CompactUid,
    object::{Key, Kind, ResourceVersion, Status},
    reason::Reason,
};

/// Numbers the batches of a controller from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// One action for the agent. Exactly one outcome is due for each of its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its number.
    pub id: BatchId,
    /// The ReplicaSet it serves.
    pub key: Key,
    /// The generation of the ReplicaSet that it rests on.
    pub generation: i64,
    /// The version of the ReplicaSet that it rests on.
    pub replica_set_version: Option<ResourceVersion>,
    /// The newest version of pods that it rests on.
    pub pods_version: Option<ResourceVersion>,
    /// What to do.
    pub action: Action,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// The closed set of effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create pods with these names; operation k is the k-th name.
    Create {
        /// The names, in the order of their making.
        names: Vec<Arc<str>>,
        /// What `generateName` is set to.
        generate_name: Arc<str>,
        /// How many start at first.
        slow_start_initial: u32,
    },
    /// Delete pods; operation k is the k-th victim.
    Delete(Vec<Victim>),
    /// Adopt, then release; operations are numbered through, adoptions first.
    Claim {
        /// Orphans to adopt, sorted by name.
        adopts: Vec<PodRef>,
        /// Owned pods to release, sorted by name.
        releases: Vec<PodRef>,
    },
    /// Replace the status; operation 0.
    WriteStatus(Box<Status>),
}

/// What an action does, without its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionKind {
    /// It creates pods.
    Create,
    /// It deletes pods.
    Delete,
    /// It adopts and releases pods.
    Claim,
    /// It replaces the status.
    WriteStatus,
}

/// The operations of an action, without what only the agent needs.
#[derive(Clone, Debug)]
pub(crate) enum Operations {
    Create(Vec<Arc<str>>),
    Delete(Vec<PodRef>),
    Claim {
        adopts: Vec<PodRef>,
        releases: Vec<PodRef>,
    },
    WriteStatus,
}

/// One operation of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Create(Arc<str>),
    Delete(PodRef),
    Adopt(PodRef),
    Release(PodRef),
    WriteStatus,
}

/// Names a pod for its lifetime. It is in the namespace of the batch's ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// The name.
    pub name: Arc<str>,
    /// The uid.
    pub uid: CompactUid,
}

/// A pod chosen to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The pod.
    pub pod: PodRef,
    /// If set, a further precondition (option `delete_by_version`).
    pub version: Option<ResourceVersion>,
    /// Why this pod goes before the others.
    pub reason: Reason,
}

// === impl Action ===

impl Action {
    /// Returns what it does.
    #[must_use]
    pub const fn kind(&self) -> ActionKind {
        match self {
            Self::Create { .. } => ActionKind::Create,
            Self::Delete(_) => ActionKind::Delete,
            Self::Claim { .. } => ActionKind::Claim,
            Self::WriteStatus(_) => ActionKind::WriteStatus,
        }
    }

    /// Returns how many operations, and so outcomes, the action has.
    #[must_use]
    pub fn operations(&self) -> usize {
        match self {
            Self::Create { names, .. } => names.len(),
            Self::Delete(victims) => victims.len(),
            Self::Claim { adopts, releases } => adopts.len() + releases.len(),
            Self::WriteStatus(_) => 1,
        }
    }
}

// === impl Operations ===

impl Operations {
    /// Returns the operations of an action.
    pub(crate) fn of(action: &Action) -> Self {
        match action {
            Action::Create { names, .. } => Self::Create(names.clone()),
            Action::Delete(victims) => {
                Self::Delete(victims.iter().map(|victim| victim.pod.clone()).collect())
            }
            Action::Claim { adopts, releases } => Self::Claim {
                adopts: adopts.clone(),
                releases: releases.clone(),
            },
            Action::WriteStatus(_) => Self::WriteStatus,
        }
    }

    /// Returns what the action does.
    pub(crate) const fn kind(&self) -> ActionKind {
        match self {
            Self::Create(_) => ActionKind::Create,
            Self::Delete(_) => ActionKind::Delete,
            Self::Claim { .. } => ActionKind::Claim,
            Self::WriteStatus => ActionKind::WriteStatus,
        }
    }

    /// Returns one operation by its number.
    pub(crate) fn get(&self, at: usize) -> Option<Operation> {
        match self {
            Self::Create(names) => names.get(at).cloned().map(Operation::Create),
            Self::Delete(pods) => pods.get(at).cloned().map(Operation::Delete),
            Self::Claim { adopts, releases } => match adopts.get(at) {
                Some(pod) => Some(Operation::Adopt(pod.clone())),
                None => releases
                    .get(at - adopts.len())
                    .cloned()
                    .map(Operation::Release),
            },
            Self::WriteStatus => (at == 0).then_some(Operation::WriteStatus),
        }
    }
}

// === impl Operation ===

impl Operation {
    /// Returns the kind of what is written.
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Create(_) | Self::Delete(_) | Self::Adopt(_) | Self::Release(_) => Kind::Pod,
            Self::WriteStatus => Kind::ReplicaSet,
        }
    }

    /// Returns the name of the pod that is created.
    pub(crate) const fn created(&self) -> Option<&Arc<str>> {
        match self {
            Self::Create(name) => Some(name),
            Self::Delete(_) | Self::Adopt(_) | Self::Release(_) | Self::WriteStatus => None,
        }
    }
}
