//! The status: counts, the condition ReplicaFailure, and the time of the next availability check (spec 5.4–5.8).

use super::manage::ManageResult;
use crate::{
    index::{Counts, Set},
    object::{Condition, ReplicaSet, Span, Status, Timestamp},
    reason::{Reason, Rule},
};

/// The condition that reports pods that could not be created or deleted.
pub const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The longest message of a condition, in bytes, as Kubernetes limits its own. A ReplicaSet with a longer one is quarantined.
const MESSAGE_MAX: usize = 32 * 1024;

/// The counts of the pods when the manage step decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusBasis {
    pub(crate) counts: Counts,
    pub(crate) target: i32,
    /// The generation that the manage step acted on. A status that names a later one would say that its desired pods are counted.
    generation: i64,
    /// The desired pods, and the available ones that leave, if the ReplicaSet prefers replacements before evictions.
    surge: Option<(i32, i32)>,
    /// The time of the counts, or of a later write.
    pub(super) now: Timestamp,
    /// When the next pod becomes available.
    next_available: Option<Timestamp>,
}

impl StatusBasis {
    pub(crate) fn of(set: &Set, now: Timestamp) -> Self {
        Self {
            counts: set.counts,
            target: set.target(),
            generation: set.object.generation,
            surge: (set.surge() > 0).then(|| {
                let evictions = set.evictions.as_ref();
                let leaving = evictions.map_or(0, |it| it.leaving_available);
                (set.wanted(), leaving)
            }),
            now,
            next_available: set.next_available(),
        }
    }

    /// Returns the active pods minus the target; negative if pods are missing.
    pub(crate) fn surplus(&self) -> i64 {
        i64::from(self.counts.active) - i64::from(self.target)
    }

    /// Returns the status of a ReplicaSet with these counts and this result of the manage step (spec 5.5).
    pub(super) fn status_of(&self, object: &ReplicaSet, managed: &ManageResult) -> Status {
        let mut conditions = object.status.conditions.clone();
        if let Some(message) = &managed.error {
            self.report_failure(&mut conditions, message);
        } else if !managed.is_pending {
            conditions.retain(|condition| condition.kind != REPLICA_FAILURE);
        }
        Status {
            observed_generation: self.generation,
            conditions,
            ..self.shown_counts().status()
        }
    }

    /// Returns the counts without pods in advance. A Deployment would take these for a reason to scale another ReplicaSet down.
    fn shown_counts(&self) -> Counts {
        let Some((desired, leaving)) = self.surge else {
            return self.counts;
        };
        let Counts {
            active,
            fully_labeled,
            ready,
            available,
            ..
        } = self.counts;
        let max = |pods: i32| pods.min(desired);
        Counts {
            active: max(active),
            fully_labeled: max(fully_labeled),
            ready: max(ready),
            available: max((available - leaving).max(0)),
            ..self.counts
        }
    }

    /// Writes the latest failure; the transition time moves only when the condition's status does (W7).
    fn report_failure(&self, conditions: &mut Vec<Condition>, message: &str) {
        let reason = if self.surplus() < 0 {
            "FailedCreate"
        } else {
            "FailedDelete"
        };
        let fresh = Condition {
            kind: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            last_transition: Some(self.now.truncated()),
            reason: reason.to_owned(),
            message: message[..message.floor_char_boundary(MESSAGE_MAX)].to_owned(),
        };
        let mut known = conditions.iter_mut();
        let Some(known) = known.find(|condition| condition.kind == REPLICA_FAILURE) else {
            return conditions.push(fresh);
        };
        let since = (known.status == fresh.status).then_some(known.last_transition);
        *known = Condition {
            last_transition: since.unwrap_or(fresh.last_transition),
            ..fresh
        };
    }

    /// Returns when to check availability again (spec 5.8).
    pub(super) fn requeue_at(&self, min_ready_seconds: i32) -> Option<Timestamp> {
        if min_ready_seconds <= 0 || self.counts.ready == self.counts.available {
            return None;
        }
        let later = self.now.plus(Span::seconds(i64::from(min_ready_seconds)));
        Some(self.next_available.unwrap_or(later))
    }
}

impl Counts {
    pub(crate) fn status(self) -> Status {
        Status {
            replicas: self.active,
            fully_labeled_replicas: self.fully_labeled,
            ready_replicas: self.ready,
            available_replicas: self.available,
            terminating_replicas: Some(self.terminating),
            ..Status::default()
        }
    }
}

impl Set {
    /// Returns the status that the pods call for, if their number is as desired; `None` if the status is up to date. Where the status lacks
    /// `terminatingReplicas`, a feature gate is off, and no status has it.
    pub(crate) fn status_due(&self, now: Timestamp) -> Option<Status> {
        let basis = StatusBasis {
            counts: self.counts_at(now),
            ..StatusBasis::of(self, now)
        };
        let object = &self.object;
        let due = basis.status_of(object, &ManageResult::default());
        let terminating = object.status.terminating_replicas;
        let status = Status {
            terminating_replicas: terminating.and(due.terminating_replicas),
            ..due
        };
        (status != object.status).then_some(status)
    }
}

/// Whether a status differs from the shown one only by `terminatingReplicas`, which the shown one lacks.
pub(super) fn lacks_terminating_alone(shown: &Status, status: &Status) -> bool {
    let terminating_replicas = shown.terminating_replicas;
    let status = || Status {
        terminating_replicas,
        ..status.clone()
    };
    terminating_replicas.is_none() && *shown == status()
}

pub(super) fn reason(status: &Status) -> Reason {
    let detail = format!(
        "{} replicas, {} ready, {} available",
        status.replicas, status.ready_replicas, status.available_replicas
    );
    Reason::new(Rule::StatusDiffers, detail)
}
