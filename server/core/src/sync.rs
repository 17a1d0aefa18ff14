//! One pass over one ReplicaSet: claim, manage, status (spec 5.1). It resumes when the outcomes of its batch have come.
//!
//! A sync has at most one batch in flight. The view may change between its steps, and each step decides on the current view. Only the
//! status counts the pods as they were when the manage step decided. Manage decides only once nothing is left to claim: the sync adopts an
//! orphan that appeared meanwhile, and does not create a pod instead.

pub(crate) mod advise;
pub(crate) mod asking;
pub(crate) mod batch_result;
pub(crate) mod claim;
pub(crate) mod limits;
pub(crate) mod manage;
pub(crate) mod rank;
pub(crate) mod status;

use self::{
    batch_result::BatchResult, claim::Claimed, limits::blocking, manage::ManageResult,
    rank::RankedPod, status::StatusBasis,
};
use crate::{
    batch::Action,
    config::Config,
    held::Held,
    index::{Index, PodId, Set, SetId},
    object::{Span, Timestamp},
    queue::Retry,
    reason::Reason,
};

/// The memory of the UID of a claimed pod in bytes, without its text.
const CLAIMED: usize = 64;

/// The delay after adoptions that took effect, and after which a list shows the pods without an owner.
const DISPROVED_DELAY: Span = Span::seconds(1);

/// The step whose outcomes a sync waits for.
#[derive(Clone, Debug)]
pub(crate) enum SyncStep {
    Claim(Claimed),
    Manage(StatusBasis),
    Advise,
    /// With the time of the next availability check.
    Status(ManageResult, Option<Timestamp>),
}

/// The decision of a step.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) action: Action,
    pub(crate) reasons: Vec<Reason>,
    pub(crate) near_cut: Vec<RankedPod>,
}

#[derive(Debug)]
pub(crate) enum Next {
    Send(Plan, SyncStep),
    Finished(SyncResult),
}

#[derive(Debug, Default)]
pub(crate) struct SyncResult {
    pub(crate) error: Option<String>,
    /// Whether no attempt was possible, or it neither failed nor succeeded.
    pub(crate) is_pending: bool,
    /// When to check availability again.
    pub(crate) requeue_at: Option<Timestamp>,
    /// Why the server retries, if it does; a retry needs no error.
    pub(crate) retry: Option<Retry>,
    pub(crate) retry_after: Option<Span>,
}

impl Plan {
    const fn new(action: Action, reasons: Vec<Reason>) -> Self {
        Self {
            action,
            reasons,
            near_cut: Vec::new(),
        }
    }
}

impl Held for SyncStep {
    fn bytes(&self) -> usize {
        let held = match self {
            Self::Claim(claimed) => claimed.iter().map(|(uid, _)| CLAIMED + uid.0.len()).sum(),
            Self::Manage(_) | Self::Advise => 0,
            Self::Status(managed, _) => managed.error.as_ref().map_or(0, String::len),
        };
        size_of::<Self>() + held
    }
}

/// Begins the sync of a ReplicaSet with a valid selector, or continues it after the outcomes of a batch. `adoptable` are the orphans that
/// it selects, if the sync begins or continues a claim.
pub(crate) fn advance(
    index: &mut Index,
    config: &Config,
    (id, adoptable): (SetId, &[PodId]),
    answered: Option<(SyncStep, BatchResult)>,
) -> Next {
    match answered {
        None if config.advises => advise::advise(index, config, id),
        None => claim_or_manage(index, config, (id, adoptable), Claimed::default()),
        Some((SyncStep::Claim(_), result)) if result.ends_sync() => {
            Next::Finished(end(ManageResult::default(), result, None))
        }
        Some((SyncStep::Claim(claimed), _)) => {
            claim_or_manage(index, config, (id, adoptable), claimed)
        }
        Some((SyncStep::Manage(basis), result)) => {
            let managed = ManageResult::of(basis.surplus(), result);
            status_or_end(index, id, basis, managed)
        }
        Some((SyncStep::Advise, result)) => {
            // Others have their turn before it is looked at again.
            let again = (!result.ends_sync()).then_some(index.now);
            Next::Finished(end(ManageResult::default(), result, again))
        }
        Some((SyncStep::Status(managed, requeue_at), result)) => {
            Next::Finished(end(managed, result, requeue_at))
        }
    }
}

/// Returns the maximum number of operations of the next batch of a sync.
pub(crate) fn operations_max(
    config: &Config,
    set: Option<&Set>,
    adoptable: &[PodId],
    answered: Option<&SyncStep>,
) -> usize {
    match (set, answered) {
        (Some(_), None) if config.advises => advise::ADVICES_MAX,
        (Some(set), None | Some(SyncStep::Claim(_))) if !set.object.deleting => {
            let claims = (adoptable.len() + set.releases.len()).min(config.claims_max);
            claims.max(manage::operations_max(config, set)).max(1)
        }
        (None, _) | (_, Some(SyncStep::Advise | SyncStep::Status(..))) => 0,
        (Some(_), _) => 1,
    }
}

fn claim_or_manage(
    index: &mut Index,
    config: &Config,
    (id, adoptable): (SetId, &[PodId]),
    mut claimed: Claimed,
) -> Next {
    match claim::decide(index, config, id, adoptable, &mut claimed) {
        Some(plan) => Next::Send(plan, SyncStep::Claim(claimed)),
        None if claim::is_disproved(index, adoptable, &claimed) => Next::Finished(SyncResult {
            error: Some("adopted pods have no owner".to_owned()),
            retry: Some(Retry::Conflict),
            retry_after: Some(DISPROVED_DELAY),
            ..SyncResult::default()
        }),
        None => manage_or_status(index, config, id),
    }
}

fn manage_or_status(index: &mut Index, config: &Config, id: SetId) -> Next {
    let now = index.now;
    index.let_become_available(id);
    let Some(basis) = index.set(id).map(|set| StatusBasis::of(set, now)) else {
        return Next::Finished(SyncResult::default());
    };
    let managed = match manage::decide(index, config, id) {
        Some(plan) if plan.action.operations() > 0 => {
            return Next::Send(plan, SyncStep::Manage(basis));
        }
        Some(_) => ManageResult {
            is_pending: true,
            retry: Some(Retry::Conflict),
            ..ManageResult::default()
        },
        None => ManageResult {
            is_pending: index.questions.waits_until(id).is_some()
                || !blocking(index, config, id).is_empty(),
            ..ManageResult::default()
        },
    };
    status_or_end(index, id, basis, managed)
}

/// Writes the status if it differs, else ends the sync. The same status, which somebody else changes back, is written at intervals.
fn status_or_end(
    index: &mut Index,
    id: SetId,
    mut basis: StatusBasis,
    mut managed: ManageResult,
) -> Next {
    let end =
        |managed, requeue_at| Next::Finished(end(managed, BatchResult::default(), requeue_at));
    let now = index.now;
    let Some(set) = index.sets.get_mut(&id) else {
        return end(managed, None);
    };
    basis.now = now;
    let status = basis.status_of(&set.object, &managed);
    let requeue_at = basis.requeue_at(set.object.min_ready_seconds);
    let rewrites = &mut set.pace.rewrites;
    if status == set.object.status {
        return end(managed, requeue_at);
    }
    if status::lacks_terminating_alone(&set.object.status, &status) {
        index.drops_terminating |= rewrites.is_written(&status);
        if index.drops_terminating {
            return end(managed, requeue_at);
        }
    }
    if let Some(at) = rewrites.held_until(&status).filter(|at| now < *at) {
        return end(managed, Some(requeue_at.map_or(at, |it| it.min(at))));
    }
    // The status has the whole message.
    managed.error.iter_mut().for_each(batch_result::cut);
    rewrites.note(now, &status);
    let reasons = vec![status::reason(&status)];
    let plan = Plan::new(Action::WriteStatus(Box::new(status)), reasons);
    Next::Send(plan, SyncStep::Status(managed, requeue_at))
}

/// Returns the end of a sync whose status write, if there was one, had the result `written`. Its failure masks a failure of manage (spec
/// 5.1).
fn end(managed: ManageResult, written: BatchResult, requeue_at: Option<Timestamp>) -> SyncResult {
    let retry = managed.retry.max(written.retry());
    let retry_after = managed.retry_after.max(written.retry_after);
    let error = written.message().or(managed.error);
    let requeue_at = requeue_at.filter(|_| error.is_none());
    SyncResult {
        error,
        is_pending: managed.is_pending,
        requeue_at,
        retry,
        retry_after,
    }
}
