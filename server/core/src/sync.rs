//! One pass over one ReplicaSet, as a run that is resumed when the outcomes of its batch have come: claim, manage, status (spec 5.1).
//!
//! A run has at most one batch in flight. Between its steps the view may change; each step decides on the view of its moment, except that
//! the status counts the pods as they were when the manage step decided. Manage decides only once nothing is left to claim: an orphan
//! that appeared amid the sync is adopted, and not replaced.

pub(crate) mod claim;
pub(crate) mod manage;
pub(crate) mod rank;
pub(crate) mod status;
mod tally;

pub(crate) use self::tally::Tally;
use self::{claim::Progress, manage::Attempt, status::Frozen};
use crate::{
    batch::{Action, BatchId},
    controller::Controller,
    index::SetId,
    object::{Key, Span, Timestamp},
    report::{Reason, Report},
};

/// How far the sync of a ReplicaSet is.
#[derive(Debug)]
pub(crate) struct Run {
    /// The batch whose outcomes it waits for.
    pub(crate) batch: BatchId,
    pub(crate) step: Step,
}

/// The step whose outcomes a run waits for.
#[derive(Debug)]
pub(crate) enum Step {
    /// Pods are being adopted and released.
    Claim(Progress),
    /// Pods are being created or deleted.
    Manage(Frozen),
    /// The status is being written.
    Status {
        attempt: Attempt,
        requeue_at: Option<Timestamp>,
    },
}

/// What a step of a run comes to.
#[derive(Debug)]
pub(crate) enum Next {
    /// A batch to send.
    Send(Action, Vec<Reason>, Step),
    /// The sync is over.
    Finished(End),
}

/// How a sync ends.
#[derive(Debug, Default)]
pub(crate) struct End {
    pub(crate) error: Option<String>,
    /// When availability must be looked at again.
    pub(crate) requeue_at: Option<Timestamp>,
    /// Look again after a backoff, though nothing is wrong.
    pub(crate) afresh: bool,
    /// How long the cluster asked to wait.
    pub(crate) retry_after: Option<Span>,
}

// === impl Controller ===

impl Controller {
    /// Begins the sync of a ReplicaSet, or goes on with it when the batch of a step is answered.
    pub(crate) fn advance(
        &mut self,
        now: Timestamp,
        id: SetId,
        answered: Option<(Step, Tally)>,
    ) -> Next {
        let Some(set) = self.index.set(id) else {
            return Next::Finished(End::default());
        };
        if let Err(quarantine) = &set.object.selector {
            let (key, detail) = (set.object.key.clone(), quarantine.to_string());
            self.quarantine(id, key, detail);
            return Next::Finished(End::default());
        }
        self.quarantined.remove(&id);
        match answered {
            None => self.claim(now, id, Progress::default()),
            Some((Step::Claim(progress), tally)) => match claim::failure(tally) {
                Some(end) => Next::Finished(end),
                None => self.claim(now, id, progress),
            },
            Some((Step::Manage(frozen), tally)) => {
                let attempt = Attempt::judge(&frozen, tally);
                self.write_status(now, id, frozen, attempt)
            }
            Some((
                Step::Status {
                    attempt,
                    requeue_at,
                },
                tally,
            )) => Next::Finished(attempt.end(tally, requeue_at)),
        }
    }

    /// Returns how many operations the next batch of a run may have, at most.
    pub(crate) fn weight(&self, id: SetId, answered: Option<&Step>) -> usize {
        match (self.index.set(id), answered) {
            (Some(set), None | Some(Step::Claim(_))) => {
                claim::weight(set).max(self.manage_weight(set)).max(1)
            }
            (Some(_), Some(Step::Manage(_))) => 1,
            (Some(_), Some(Step::Status { .. })) | (None, _) => 0,
        }
    }

    fn quarantine(&mut self, id: SetId, key: Key, detail: String) {
        if self.quarantined.get(&id) != Some(&detail) {
            self.reports.push(Report::Quarantined {
                key,
                detail: detail.clone(),
            });
            self.quarantined.insert(id, detail);
        }
    }
}
