//! Worlds that are broken on purpose, to test the checkers.
//!
//! A mutant of a session changes the input and output of the session ([`FaultySession`]); the other mutants are in the world,
//! between agent and cluster.

mod faulty_session;
mod stage;

pub use faulty_session::{FaultySession, repeated};
pub use stage::Stage;

listed! {
    /// One break, which stands for a bug of an existing controller.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Mutant {
        /// All mutants.
        ALL: [
            /// Deletes lose their uid precondition (W11).
            DropUidPrecondition,
            /// A create with a late reply is sent again, and the server generates another name (W3, kube#2082).
            ReplayCreate,
            /// The controller takes a list for complete at its start.
            DecideOnPartialView,
            /// The controller does not learn the effects of its own writes (W1).
            ForgetOwnWrites,
            /// Every batch leaves twice.
            SendBatchTwice,
            /// Deletes hit a pod without an owner.
            DeleteBystanders,
            /// Watches lose events.
            LoseEvents,
            /// An agent starts a session, and another takes over, without a wait for creates of an older session.
            SkipBarrier,
            /// The API server ignores the timeout of creates.
            IgnoreTimeout,
            /// New pods get the names of deleted pods.
            ReuseNames,
            /// A session keeps the first state of each pod, under its newest version.
            FreezePods,
            /// A session keeps the first labels of each pod.
            FreezeLabels,
            /// A session ignores the deletion timestamps of pods.
            IgnoreDeletionTimestamps,
            /// A session takes ended pods for running ones.
            CountEndedPods,
            /// A session takes every pod for an orphan.
            ForgetOwners,
            /// A session takes the namespace of pods for another.
            MisplacePods,
            /// A session identifies pods by their names, not by their uids.
            IdentifyByName,
            /// A session takes every pod for not ready.
            IgnoreReadiness,
            /// A session takes every ready pod for available.
            IgnoreMinReadySeconds,
            /// A session keeps the first desired replicas of each ReplicaSet.
            FreezeReplicas,
            /// A session ignores the deletion timestamps of ReplicaSets.
            IgnoreReplicaSetDeletion,
            /// A session does not learn of deleted pods.
            IgnoreTombstones,
            /// A session does not learn of deleted ReplicaSets.
            IgnoreReplicaSetTombstones,
            /// A session loses the first event after each list.
            DropFirstEventAfterList,
            /// A session reads pods only from lists.
            IgnorePodEvents,
            /// A session reads ReplicaSets only from lists.
            IgnoreReplicaSetEvents,
            /// A session does not read outcomes.
            LoseOutcomes,
            /// A session takes an unknown outcome for a refusal, and the next create has another name.
            TakeTimeoutForRefusal,
            /// A session takes an unknown outcome for a deleted pod.
            TakeTimeoutForGone,
            /// A session loses the last pod of each frame of a list.
            TruncateLists,
            /// A session keeps objects that a later list does not contain.
            MergeLists,
            /// A session creates one more pod than decided.
            CreateOneMore,
            /// A session creates a pod under a used name.
            CreateUnderTakenName,
            /// A session deletes a pod that it does not know.
            DeleteUnknownPod,
            /// A session names one pod twice in a deletion.
            DeleteOneTwice,
            /// A session swaps adoptions and releases.
            SwapClaims,
            /// A session adopts nothing.
            DropAdoptions,
            /// A session releases nothing.
            DropReleases,
            /// A session writes one replica too many into the status.
            MiscountReplicas,
            /// A session writes the previously decided status.
            WriteOldStatus,
            /// A session leaves out the observed generation.
            ForgetObservedGeneration,
            /// Batches are for a ReplicaSet of another uid.
            MistakeReplicaSet,
            /// Batches are for a ReplicaSet of another namespace.
            MistakeNamespace,
            /// Batches are guarded by the id of another session.
            MistakeSession,
            /// Batches are guarded by an older epoch.
            MistakeEpoch,
            /// A session reuses the number of the frame before.
            ReuseSequence,
            /// A session leaves numbers out.
            SkipSequence,
            /// A session takes unsent batches for sent.
            LoseBatches,
            /// A session takes an unsent request for a list for sent.
            LoseResync,
            /// A server keeps an older session of a cluster beside a newer one.
            IgnoreSupersession,
            /// An agent retries a create under another name.
            RetryUnderAnotherName,
            /// An agent creates pods without an owner.
            ForgetOwnerReference,
            /// An agent creates pods in another namespace.
            CreateInOtherNamespace,
            /// An agent deletes another pod than the victim.
            DeleteNeighbour,
            /// An agent watches from the newest state, not from its list.
            WatchFromNow,
            /// An agent loses the first event of each watch.
            DropFirstWatchEvent,
            /// An agent does not learn of deletions.
            LoseDeletions,
            /// Later lists contain the objects of the first list.
            ServeOldLists,
            /// A restarted agent gets a list of pods from before there were any (kube#59848).
            ListStaleAfterRestart,
            /// An agent continues to write after the expiry of its Lease.
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
            /// The clocks of two machines diverge by more than the margins of the Lease and of creates allow.
            LetClocksRunApart,
            /// A session takes a success without its object for a deleted pod.
            TakeBareForGone,
            /// A session ignores lists without a version.
            IgnoreListsWithoutVersion,
            /// A session takes every list for the newest state.
            TakeListsForNewest,
            /// An agent lists with `resourceVersion=0`, so a cache that lags answers.
            ListFromCache,
            /// A server keeps one live session for each name of a cluster, not for each uid.
            KeyByClusterName,
            /// A server refuses a session because of the higher epoch of another cluster.
            ShareEpochs,
            /// A server gives changes to the session of another cluster.
            MistakeClusterOfEvents,
            /// A server gives outcomes to the session of another cluster.
            MistakeClusterOfOutcomes,
        ]
        /// The mutants that break one of the limits on runaway creation: see [`crate::troubled`].
        TROUBLED: [
            /// Sessions start without the back-off of creates.
            LeaveCreatesOpen,
            /// Nobody learns that pods do not last.
            KeepEndsQuiet,
            /// An agent does not report that versions went back.
            KeepRestoresQuiet,
            /// An agent does not report that it holds a ReplicaSet because another controller acts.
            KeepHoldsQuiet,
            /// A session does not see that pods have lost their labels.
            HideLostLabels,
            /// A session does not see that pods have failed.
            HideFailures,
            /// A new session of a server knows nothing of the creates of the session before.
            ForgetAtNewSession,
            /// A session forgets the lost creates when a ReplicaSet is deleted.
            ForgetAtNewUid,
            /// A session forgets the lost creates when a ReplicaSet changes.
            ForgetAtNewSpec,
            /// A session takes a create without an answer for a refused one.
            ForgetUnanswered,
            /// The answered newest version is the highest version of all time.
            RaiseAskedVersions,
            /// All answered versions are the highest version of all time.
            RaiseVersions,
            /// A list of a lost history passes for a list of the new history.
            BelieveLostLists,
            /// Pods of other creators look like pods of the session.
            ShowOthersAsOurs,
            /// An agent sees the request of a person to resume again and again.
            ForgetHolds,
            /// A session does not see that the labels of a template do not match its selector.
            HideIllTemplates,
            /// A session takes older lists for newer ones.
            AcceptOlderLists,
            /// A session without outcomes ends without a reported reason.
            EndWithoutReason,
        ]
        /// The mutants of replacements before evictions.
        SURGE: [
            /// A session does not learn that a node is not cordoned any more.
            IgnoreUncordons,
        ]
    }
}

impl Mutant {
    /// Returns whether agents refuse nothing in a world with this mutant, because refusals would hide what the checkers must see.
    pub fn needs_lenience(self) -> bool {
        !Self::TROUBLED.contains(&self) && !Self::SURGE.contains(&self)
    }

    /// Returns whether the break is between clusters, and visible only if several share a server.
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
