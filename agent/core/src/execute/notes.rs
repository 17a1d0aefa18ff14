//! The notes for people about creates and deletes of pods.

use decree_api::{
    causes::{CREATES_ARE_SLOW, PODS_DO_NOT_LAST, what_happened},
    v1::{self, FailureClass, Rule, outcome::Outcome as OutcomeKind},
};

use crate::{
    budget::Verb,
    recorder::{Note, Reason},
};

/// The note about a create or delete of a pod with this outcome.
pub(super) fn of_end(
    replica_set: &v1::ObjectRef,
    verb: Verb,
    pod: &str,
    outcome: &OutcomeKind,
) -> Option<Note> {
    let (done, failed, silent) = match verb {
        // Upstream writes no event here, and a taken name concerns only this controller.
        Verb::Create => (
            (Reason::SuccessfulCreate, "Created pod"),
            (Reason::FailedCreate, "Error creating"),
            [FailureClass::NamespaceTerminating, FailureClass::NameTaken],
        ),
        // The pod is gone or replaced: nothing failed that a person could fix.
        Verb::Delete => (
            (Reason::SuccessfulDelete, "Deleted pod"),
            (Reason::FailedDelete, "Error deleting"),
            [FailureClass::NotFound, FailureClass::Precondition],
        ),
    };
    let ((reason, words), detail) = match outcome {
        OutcomeKind::Done(_) => (done, pod),
        OutcomeKind::Failed(failure) if !silent.contains(&failure.failure_class()) => {
            (failed, failure.message.as_str())
        }
        OutcomeKind::Failed(_) | OutcomeKind::NotStarted(_) => return None,
    };
    Some(Note {
        object: replica_set.clone(),
        reason,
        message: format!("{words}: {detail}"),
    })
}

/// The note of a batch that creates fewer pods than are missing, as a limit of the server allows no more.
pub(super) fn of_limited(batch: &v1::Batch) -> Option<Note> {
    let limits = [
        (Rule::PodsDoNotLast, Reason::PodsDoNotLast, PODS_DO_NOT_LAST),
        (
            Rule::ManyUnassigned,
            Reason::CreatesAreSlow,
            CREATES_ARE_SLOW,
        ),
    ];
    limits.into_iter().find_map(|(rule, reason, cause)| {
        let why = batch.reasons.iter().find(|it| it.rule() == rule)?;
        Some(Note {
            object: batch.replica_set.clone()?,
            reason,
            message: format!("{cause}: {}", what_happened(&why.detail)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(class: FailureClass) -> OutcomeKind {
        OutcomeKind::Failed(v1::Failed {
            failure_class: class.into(),
            message: "no".into(),
            retry_after: None,
        })
    }

    #[test]
    fn what_a_person_cannot_mend_is_no_event() {
        let owner = v1::ObjectRef::default();
        let reason = |note: Option<Note>| note.map(|it| (it.reason, it.message));
        let create = |class| reason(of_end(&owner, Verb::Create, "a", &failed(class)));
        let delete = |class| reason(of_end(&owner, Verb::Delete, "a", &failed(class)));
        assert_eq!(create(FailureClass::NamespaceTerminating), None);
        assert_eq!(create(FailureClass::NameTaken), None);
        assert_eq!(delete(FailureClass::NotFound), None);
        assert_eq!(delete(FailureClass::Precondition), None);
        let expected = (Reason::FailedCreate, "Error creating: no".to_owned());
        assert_eq!(create(FailureClass::Quota), Some(expected));
        let expected = (Reason::FailedDelete, "Error deleting: no".to_owned());
        assert_eq!(delete(FailureClass::Forbidden), Some(expected));
    }

    /// The words are equal to the server's cause: see the table in server/session/src/cause/tests.
    #[test]
    fn limit_of_creates_is_told_in_the_words_of_the_cause() {
        for (rule, reason, message) in [
            (Rule::TooFewReplicas, None, ""),
            (
                Rule::PodsDoNotLast,
                Some("PodsDoNotLast"),
                "Pods do not last: 21 pods ended",
            ),
            (
                Rule::ManyUnassigned,
                Some("CreatesAreSlow"),
                "Creates are slow: 21 pods ended",
            ),
        ] {
            let batch = v1::Batch {
                replica_set: Some(v1::ObjectRef::default()),
                reasons: vec![v1::Reason {
                    rule: rule.into(),
                    detail: "21 pods ended. 5 more may be created".to_owned(),
                }],
                ..v1::Batch::default()
            };
            let note = of_limited(&batch);
            assert_eq!(note.as_ref().map(|note| note.reason.as_str()), reason);
            assert_eq!(note.map_or(String::new(), |note| note.message), message);
        }
    }
}
