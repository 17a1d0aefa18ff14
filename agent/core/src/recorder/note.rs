//! What people are told about a ReplicaSet or the cluster, before the [`recorder`](crate::recorder) makes events of it.

use decree::v1;

/// An answered create or delete, a change of the budget, or a change of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The object of the note: a ReplicaSet, unless the reason [concerns the cluster](Reason::concerns_cluster).
    pub object: v1::ObjectRef,
    /// The reason of the event.
    pub reason: Reason,
    /// The message of the event, a sentence.
    pub message: String,
}

/// The reasons of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A pod was created.
    SuccessfulCreate,
    /// A pod could not be created.
    FailedCreate,
    /// A pod was deleted.
    SuccessfulDelete,
    /// A pod could not be deleted.
    FailedDelete,
    /// More creates or deletes in a minute than the [budget](crate::budget) allows, started or not.
    BudgetExceeded,
    /// Another controller creates pods of the ReplicaSet.
    OtherController,
    /// A person resumed creates or deletes.
    BudgetResumed,
    /// Pods of the ReplicaSet ended soon after they were created, and only a few are created.
    PodsDoNotLast,
    /// Many pods of the ReplicaSet have no node, and only a few are created.
    CreatesAreSlow,
    /// The versions of the cluster went back ([`history`](crate::watch::history)).
    VersionsWentBack,
}

impl Reason {
    /// Returns upstream's word, if it has one.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SuccessfulCreate => "SuccessfulCreate",
            Self::FailedCreate => "FailedCreate",
            Self::SuccessfulDelete => "SuccessfulDelete",
            Self::FailedDelete => "FailedDelete",
            Self::BudgetExceeded => "BudgetExceeded",
            Self::OtherController => "OtherController",
            Self::BudgetResumed => "BudgetResumed",
            Self::PodsDoNotLast => "PodsDoNotLast",
            Self::CreatesAreSlow => "CreatesAreSlow",
            Self::VersionsWentBack => "VersionsWentBack",
        }
    }

    /// Returns the type of an event of this reason.
    #[must_use]
    pub const fn event_type(self) -> &'static str {
        if let Self::SuccessfulCreate | Self::SuccessfulDelete | Self::BudgetResumed = self {
            "Normal"
        } else {
            "Warning"
        }
    }

    /// Returns whether the object of such an event is the namespace kube-system, which represents the cluster, and no ReplicaSet.
    #[must_use]
    pub const fn concerns_cluster(self) -> bool {
        matches!(self, Self::VersionsWentBack)
    }

    /// True for a rare reason. Its events are always written, because a person must learn of them. The budget reports once a minute for a
    /// scope and once a hold for a ReplicaSet, and the server once a grant. A session ends when versions go back.
    pub(crate) const fn is_rare(self) -> bool {
        matches!(
            self,
            Self::BudgetExceeded
                | Self::OtherController
                | Self::BudgetResumed
                | Self::PodsDoNotLast
                | Self::VersionsWentBack
        )
    }
}
