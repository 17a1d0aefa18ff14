//! Worlds that are broken on purpose, to see that the checkers see it.
//!
//! A mutant of a session changes what it reads and writes ([`FaultySession`]); the others are in the world, between agent and cluster.

mod faulty_session;
mod stage;

pub use faulty_session::{FaultySession, repeated};
pub use stage::Stage;

/// One break. Each stands for a bug that somebody has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutant {
    /// Deletes lose the uid that they are to hit (W11).
    DropUidPrecondition,
    /// A create whose reply is late is sent again, and the server makes up another name (W3, kube#2082).
    ReplayCreate,
    /// The controller is told that a list is complete when it begins.
    DecideOnPartialView,
    /// The controller is not told what its own writes did (W1).
    ForgetOwnWrites,
    /// Every batch leaves twice.
    SendBatchTwice,
    /// Deletes hit a pod that belongs to nobody.
    DeleteBystanders,
    /// Watches swallow events.
    LoseEvents,
    /// An agent begins a session, and another takes over, as if no create of an older one could take effect any more.
    SkipBarrier,
    /// The API server ignores the timeout of creates.
    IgnoreTimeout,
    /// New pods get the names of pods that are gone.
    ReuseNames,
    /// A session keeps the first state of each pod, under its newest version.
    FreezePods,
    /// A session keeps the first labels of each pod.
    FreezeLabels,
    /// A session takes pods that are being deleted for others.
    IgnoreDeletionTimestamps,
    /// A session takes pods that have ended for running ones.
    CountEndedPods,
    /// A session takes every pod for an orphan.
    ForgetOwners,
    /// A session takes pods to be in another namespace.
    MisplacePods,
    /// A session knows pods by their names and not by their uids.
    IdentifyByName,
    /// A session takes no pod for ready.
    IgnoreReadiness,
    /// A session takes every ready pod for available.
    IgnoreMinReadySeconds,
    /// A session keeps the first number of replicas that each ReplicaSet wants.
    FreezeReplicas,
    /// A session takes ReplicaSets that are being deleted for others.
    IgnoreReplicaSetDeletion,
    /// A session does not hear that pods are gone.
    IgnoreTombstones,
    /// A session does not hear that ReplicaSets are gone.
    IgnoreReplicaSetTombstones,
    /// A session loses the first event after each list.
    DropFirstEventAfterList,
    /// A session reads pods from lists alone.
    IgnorePodEvents,
    /// A session reads ReplicaSets from lists alone.
    IgnoreReplicaSetEvents,
    /// A session does not read outcomes.
    LoseOutcomes,
    /// A session takes an unknown outcome for a refusal, and the next create has another name.
    TakeTimeoutForRefusal,
    /// A session takes an unknown outcome for a pod that is gone.
    TakeTimeoutForGone,
    /// A session loses the last pod of each frame of a list.
    TruncateLists,
    /// A session keeps what a later list does not name.
    MergeLists,
    /// A session creates one pod more than it decided.
    CreateOneMore,
    /// A session creates under a name that it has used.
    CreateUnderTakenName,
    /// A session deletes a pod that it does not know.
    DeleteUnknownPod,
    /// A session names one pod twice in a deletion.
    DeleteOneTwice,
    /// A session releases what it would adopt, and adopts what it would release.
    SwapClaims,
    /// A session adopts nothing.
    DropAdoptions,
    /// A session releases nothing.
    DropReleases,
    /// A session writes one replica too many into the status.
    MiscountReplicas,
    /// A session writes the status that it decided before.
    WriteOldStatus,
    /// A session does not say which generation it has seen.
    ForgetObservedGeneration,
    /// Batches are for a ReplicaSet of another uid.
    MistakeReplicaSet,
    /// Batches are for a ReplicaSet of another namespace.
    MistakeNamespace,
    /// Batches are guarded by the id of another session.
    MistakeSession,
    /// Batches are guarded by an older epoch.
    MistakeEpoch,
    /// A session gives a frame the number of the one before.
    ReuseSequence,
    /// A session leaves numbers out.
    SkipSequence,
    /// A session takes batches for sent that never leave.
    LoseBatches,
    /// A session takes a request for a list for sent that never leaves.
    LoseResync,
    /// A server lets an older session of a cluster live beside a newer one.
    IgnoreSupersession,
    /// An agent tries a create again under another name.
    RetryUnderAnotherName,
    /// An agent creates pods without an owner.
    ForgetOwnerReference,
    /// An agent creates pods in another namespace.
    CreateInOtherNamespace,
    /// An agent deletes another pod than the one that was chosen.
    DeleteNeighbour,
    /// An agent watches from the newest state on, and not from its list.
    WatchFromNow,
    /// An agent loses the first event of each watch.
    DropFirstWatchEvent,
    /// An agent does not hear of deletions.
    LoseDeletions,
    /// Later lists hold what the first one held.
    ServeOldLists,
    /// An agent that starts again is given a list of pods from before there were any (kube#59848).
    ListStaleAfterRestart,
    /// An agent goes on writing when its Lease has run out.
    IgnoreLeaseLoss,
    /// An agent takes the Lease while another holds it.
    TakeLeaseAtOnce,
    /// An agent reports an outcome for another batch.
    AnswerForAnother,
    /// An agent reports each outcome twice.
    AnswerTwice,
    /// An agent sends each event twice.
    ApplyTwice,
    /// A process measures the Lease by its wall clock.
    MeasureLeaseByWallClock,
    /// The clocks of two machines run apart by more than the margins of the Lease and of creates have room for.
    LetClocksRunApart,
    /// A session takes a success without its object for a pod that is gone.
    TakeBareForGone,
    /// A session does not take lists without a version.
    IgnoreListsWithoutVersion,
    /// A session takes every list for the newest state.
    TakeListsForNewest,
    /// An agent asks for lists with `resourceVersion=0`: a cache that is behind answers.
    ListFromCache,
    /// A server keeps one live session for each name of a cluster, and not for each uid.
    KeyByClusterName,
    /// A server refuses a session whose epoch is lower than that of another cluster.
    ShareEpochs,
    /// A server hands changes to the session of another cluster.
    MistakeClusterOfEvents,
    /// A server hands outcomes to the session of another cluster.
    MistakeClusterOfOutcomes,
    /// Sessions open with the back-off of creates off.
    LeaveCreatesOpen,
    /// Nobody is told that pods do not last.
    KeepEndsQuiet,
    /// An agent does not tell that versions went back.
    KeepRestoresQuiet,
    /// An agent does not tell that it holds a ReplicaSet since another controller acts.
    KeepHoldsQuiet,
    /// A session does not see that pods have lost their labels.
    HideLostLabels,
    /// A session does not see that pods have failed.
    HideFailures,
    /// A session does not hear which pods it has made.
    ForgetMakers,
    /// The newest version that is answered is the newest that there ever was.
    RaiseAskedVersions,
    /// The versions of lists are the newest that there ever were.
    RaiseListedVersions,
    /// The versions of created pods are the newest that there ever were.
    RaiseCreatedVersions,
    /// All versions that are answered are the newest that there ever were.
    RaiseVersions,
    /// A list of a history that is lost passes for one of the new history.
    BelieveLostLists,
    /// Pods that others have made look like ours.
    ShowOthersAsOurs,
    /// An agent warns of other controllers, and goes on.
    WarnOfOthers,
    /// An agent is told again and again that a person resumes.
    ForgetHolds,
    /// A session does not see that a template's labels do not match its selector.
    HideIllTemplates,
    /// A session takes older lists for newer ones.
    AcceptOlderLists,
    /// A session ends whose outcomes are missing, and nobody is told why.
    EndWithoutReason,
}

impl Mutant {
    /// All mutants.
    pub const ALL: [Self; 74] = [
        Self::DropUidPrecondition,
        Self::ReplayCreate,
        Self::DecideOnPartialView,
        Self::ForgetOwnWrites,
        Self::SendBatchTwice,
        Self::DeleteBystanders,
        Self::LoseEvents,
        Self::SkipBarrier,
        Self::IgnoreTimeout,
        Self::ReuseNames,
        Self::FreezePods,
        Self::FreezeLabels,
        Self::IgnoreDeletionTimestamps,
        Self::CountEndedPods,
        Self::ForgetOwners,
        Self::MisplacePods,
        Self::IdentifyByName,
        Self::IgnoreReadiness,
        Self::IgnoreMinReadySeconds,
        Self::FreezeReplicas,
        Self::IgnoreReplicaSetDeletion,
        Self::IgnoreTombstones,
        Self::IgnoreReplicaSetTombstones,
        Self::DropFirstEventAfterList,
        Self::IgnorePodEvents,
        Self::IgnoreReplicaSetEvents,
        Self::LoseOutcomes,
        Self::TakeTimeoutForRefusal,
        Self::TakeTimeoutForGone,
        Self::TruncateLists,
        Self::MergeLists,
        Self::CreateOneMore,
        Self::CreateUnderTakenName,
        Self::DeleteUnknownPod,
        Self::DeleteOneTwice,
        Self::SwapClaims,
        Self::DropAdoptions,
        Self::DropReleases,
        Self::MiscountReplicas,
        Self::WriteOldStatus,
        Self::ForgetObservedGeneration,
        Self::MistakeReplicaSet,
        Self::MistakeNamespace,
        Self::MistakeSession,
        Self::MistakeEpoch,
        Self::ReuseSequence,
        Self::SkipSequence,
        Self::LoseBatches,
        Self::LoseResync,
        Self::IgnoreSupersession,
        Self::RetryUnderAnotherName,
        Self::ForgetOwnerReference,
        Self::CreateInOtherNamespace,
        Self::DeleteNeighbour,
        Self::WatchFromNow,
        Self::DropFirstWatchEvent,
        Self::LoseDeletions,
        Self::ServeOldLists,
        Self::ListStaleAfterRestart,
        Self::IgnoreLeaseLoss,
        Self::TakeLeaseAtOnce,
        Self::AnswerForAnother,
        Self::AnswerTwice,
        Self::ApplyTwice,
        Self::MeasureLeaseByWallClock,
        Self::LetClocksRunApart,
        Self::TakeBareForGone,
        Self::IgnoreListsWithoutVersion,
        Self::TakeListsForNewest,
        Self::ListFromCache,
        Self::KeyByClusterName,
        Self::ShareEpochs,
        Self::MistakeClusterOfEvents,
        Self::MistakeClusterOfOutcomes,
    ];

    /// The mutants that break one of the mechanisms by which nothing runs away: see [`crate::troubled`].
    pub const TROUBLED: [Self; 18] = [
        Self::LeaveCreatesOpen,
        Self::KeepEndsQuiet,
        Self::KeepRestoresQuiet,
        Self::KeepHoldsQuiet,
        Self::HideLostLabels,
        Self::HideFailures,
        Self::ForgetMakers,
        Self::RaiseAskedVersions,
        Self::RaiseListedVersions,
        Self::RaiseCreatedVersions,
        Self::RaiseVersions,
        Self::BelieveLostLists,
        Self::ShowOthersAsOurs,
        Self::WarnOfOthers,
        Self::ForgetHolds,
        Self::HideIllTemplates,
        Self::AcceptOlderLists,
        Self::EndWithoutReason,
    ];

    /// Returns whether agents refuse nothing by rules of their own in a world with this mutant: they would hide what the checkers are to see.
    #[must_use]
    pub fn needs_lenience(self) -> bool {
        !Self::TROUBLED.contains(&self)
    }

    /// Returns whether the break is one between clusters, and seen only where several share a server.
    #[must_use]
    pub const fn needs_clusters(self) -> bool {
        matches!(
            self,
            Self::KeyByClusterName
                | Self::ShareEpochs
                | Self::MistakeClusterOfEvents
                | Self::MistakeClusterOfOutcomes
        )
    }
}
