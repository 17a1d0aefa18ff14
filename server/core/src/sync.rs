//! One pass over one ReplicaSet, resumed when the outcomes of its batch have come: claim, manage, status (spec 5.1).
//!
//! A sync has at most one batch in flight. Between its steps the view may change; each step decides on the view of its moment, except
//! that the status counts the pods as they were when the manage step decided. Manage decides only once nothing is left to claim: an
//! orphan that appeared amid the sync is adopted, and not replaced.

pub(crate) mod batch_result;
pub(crate) mod claim;
pub(crate) mod manage;
pub(crate) mod rank;
pub(crate) mod status;

use self::{
    batch_result::BatchResult, claim::Claimed, manage::ManageResult, rank::RankedPod,
    status::StatusBasis,
};
use crate::{
    batch::Action,
    config::Config,
    index::{Index, PodId, Set, SetId},
    object::{Span, Timestamp},
    queue::Retry,
    reason::{Reason, Thousandths},
};

/// The step whose outcomes a sync waits for.
#[derive(Clone, Debug)]
pub(crate) enum SyncStep {
    /// Pods are being adopted and released.
    Claim(Claimed),
    /// Pods are being created or deleted.
    Manage(StatusBasis),
    /// The status is being written.
    Status {
        managed: ManageResult,
        requeue_at: Option<Timestamp>,
    },
}

/// What comes next of a sync.
#[derive(Debug)]
pub(crate) enum Next {
    /// A batch to send.
    Send {
        action: Action,
        reasons: Vec<Reason>,
        step: SyncStep,
        /// The relative ages of victims (spec 7.7).
        age_ratios: Vec<Thousandths>,
        /// The pods on both sides of the cut of a deletion.
        near_cut: Vec<RankedPod>,
    },
    /// The sync is over.
    Finished(SyncResult),
}

/// How a sync ends.
#[derive(Debug, Default)]
pub(crate) struct SyncResult {
    pub(crate) error: Option<String>,
    /// When availability must be looked at again.
    pub(crate) requeue_at: Option<Timestamp>,
    /// Why the server retries, if it does; there may be no error.
    pub(crate) retry: Option<Retry>,
    /// How long the cluster asked to wait.
    pub(crate) retry_after: Option<Span>,
}

/// What the next batch of a sync may have, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// There is none: the sync ends.
    Nothing,
    /// The write of a status.
    Status,
    /// So many operations on pods.
    Pods(usize),
}

/// Begins the sync of a ReplicaSet with a valid selector, or continues it when the batch of a step is answered. `adoptable` are the orphans
/// that it selects, where [`may_claim`].
pub(crate) fn advance(
    index: &mut Index,
    config: &Config,
    now: Timestamp,
    (id, adoptable): (SetId, &[PodId]),
    answered: Option<(SyncStep, BatchResult)>,
) -> Next {
    match answered {
        None => claim_or_manage(index, config, now, (id, adoptable), Claimed::default()),
        Some((SyncStep::Claim(_), result)) if result.ends_sync() => Next::Finished(SyncResult {
            retry: result.retry(),
            retry_after: result.retry_after,
            error: result.message(),
            requeue_at: None,
        }),
        Some((SyncStep::Claim(claimed), _)) => {
            claim_or_manage(index, config, now, (id, adoptable), claimed)
        }
        Some((SyncStep::Manage(basis), result)) => {
            let managed = ManageResult::of(basis.surplus(), result);
            status_or_end(index.set(id), now, basis, managed)
        }
        Some((
            SyncStep::Status {
                managed,
                requeue_at,
            },
            result,
        )) => Next::Finished(end(managed, result, requeue_at)),
    }
}

/// Returns whether the next batch of a sync may be one that claims pods.
pub(crate) const fn may_claim(answered: Option<&SyncStep>) -> bool {
    matches!(answered, None | Some(SyncStep::Claim(_)))
}

/// Returns what the next batch of a sync may have, at most.
pub(crate) fn weight(
    config: &Config,
    set: Option<&Set>,
    adoptable: &[PodId],
    answered: Option<&SyncStep>,
) -> Weight {
    match (set, answered) {
        (Some(set), None | Some(SyncStep::Claim(_))) => {
            let claims = claim::weight(config, set, adoptable);
            match claims.max(manage::weight(config, set)) {
                0 => Weight::Status,
                pods => Weight::Pods(pods),
            }
        }
        (Some(_), Some(SyncStep::Manage(_))) => Weight::Status,
        (Some(_), Some(SyncStep::Status { .. })) | (None, _) => Weight::Nothing,
    }
}

fn claim_or_manage(
    index: &mut Index,
    config: &Config,
    now: Timestamp,
    (id, adoptable): (SetId, &[PodId]),
    mut claimed: Claimed,
) -> Next {
    match claim::decide(index, config, id, adoptable, &mut claimed) {
        Some((action, reasons)) => Next::Send {
            action,
            reasons,
            step: SyncStep::Claim(claimed),
            age_ratios: Vec::new(),
            near_cut: Vec::new(),
        },
        None => manage_or_status(index, config, now, id),
    }
}

fn manage_or_status(index: &mut Index, config: &Config, now: Timestamp, id: SetId) -> Next {
    index.let_become_available(now, id);
    let Some(basis) = index.set(id).map(|set| StatusBasis::of(set, now)) else {
        return Next::Finished(SyncResult::default());
    };
    let Some(plan) = manage::decide(index, config, now, id) else {
        return status_or_end(index.set(id), now, basis, ManageResult::Good);
    };
    if plan.action.operations() == 0 {
        let managed = ManageResult::Pending {
            retry: Some(Retry::Conflict),
            retry_after: None,
        };
        return status_or_end(index.set(id), now, basis, managed);
    }
    Next::Send {
        action: plan.action,
        reasons: plan.reasons,
        step: SyncStep::Manage(basis),
        age_ratios: plan.age_ratios,
        near_cut: plan.near_cut,
    }
}

/// Writes the status if it differs, and ends the sync if not.
fn status_or_end(
    set: Option<&Set>,
    now: Timestamp,
    basis: StatusBasis,
    managed: ManageResult,
) -> Next {
    let Some(set) = set else {
        return Next::Finished(end(managed, BatchResult::default(), None));
    };
    let basis = basis.at(now);
    let status = basis.status_of(&set.object, &managed);
    let requeue_at = basis.requeue_at(set.object.min_ready_seconds, &status);
    if status == set.object.status {
        return Next::Finished(end(managed, BatchResult::default(), requeue_at));
    }
    let reasons = vec![status::reason(&status)];
    Next::Send {
        action: Action::WriteStatus(Box::new(status)),
        reasons,
        step: SyncStep::Status {
            managed,
            requeue_at,
        },
        age_ratios: Vec::new(),
        near_cut: Vec::new(),
    }
}

/// Returns how a sync ends whose status write, if there was one, came to `written`. Its failure masks that of manage (spec 5.1).
fn end(managed: ManageResult, written: BatchResult, requeue_at: Option<Timestamp>) -> SyncResult {
    let (error, retry, retry_after) = match managed {
        ManageResult::Good => (None, None, None),
        ManageResult::Failed {
            message,
            retry,
            retry_after,
        } => (Some(message), Some(retry), retry_after),
        ManageResult::Pending { retry, retry_after } => (None, retry, retry_after),
    };
    let retry = retry.max(written.retry());
    let retry_after = retry_after.max(written.retry_after);
    let error = written.message().or(error);
    let requeue_at = requeue_at.filter(|_| error.is_none());
    SyncResult {
        error,
        requeue_at,
        retry,
        retry_after,
    }
}
