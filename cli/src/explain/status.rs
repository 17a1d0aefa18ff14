//! What a status write changed.

use decree::v1;

/// The differences from the last written status; the whole status if none is known.
pub(super) fn changes(
    before: Option<&v1::ReplicaSetStatus>,
    status: &v1::ReplicaSetStatus,
) -> String {
    let now = numbers(status);
    let Some(before) = before.map(numbers) else {
        let parts = now.map(|(word, number)| format!("{number} {word}"));
        return parts.join(", ") + &failure(status);
    };
    let differs = before.into_iter().zip(now).filter(|(old, new)| old != new);
    let mut parts: Vec<_> = differs
        .map(|((word, old), (_, new))| format!("{word} {old} to {new}"))
        .collect();
    if parts.is_empty() {
        parts.push("the same numbers".to_owned());
    }
    parts.join(", ") + &failure(status)
}

fn numbers(status: &v1::ReplicaSetStatus) -> [(&'static str, i64); 6] {
    [
        ("replicas", status.replicas.into()),
        ("fully labeled", status.fully_labeled_replicas.into()),
        ("ready", status.ready_replicas.into()),
        ("available", status.available_replicas.into()),
        (
            "terminating",
            status.terminating_replicas.unwrap_or(0).into(),
        ),
        ("observed generation", status.observed_generation),
    ]
}

fn failure(status: &v1::ReplicaSetStatus) -> String {
    let mut conditions = status.conditions.iter();
    let failure = conditions.find(|condition| condition.r#type == "ReplicaFailure");
    failure.map_or_else(String::new, |condition| {
        format!(", ReplicaFailure {}", condition.reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(replicas: i32, ready: i32) -> v1::ReplicaSetStatus {
        v1::ReplicaSetStatus {
            replicas,
            ready_replicas: ready,
            ..v1::ReplicaSetStatus::default()
        }
    }

    #[test]
    fn only_what_differs_is_said() {
        let said = changes(Some(&status(3, 2)), &status(3, 3));
        assert_eq!(said, "ready 2 to 3");
        let said = changes(None, &status(3, 3));
        assert_eq!(
            said,
            "3 replicas, 0 fully labeled, 3 ready, 0 available, 0 terminating, 0 observed generation"
        );
        assert_eq!(
            changes(Some(&status(3, 3)), &status(3, 3)),
            "the same numbers"
        );
    }

    #[test]
    fn failure_is_said_with_its_reason() {
        let mut failed = status(3, 3);
        failed.conditions.push(v1::ReplicaSetCondition {
            r#type: "ReplicaFailure".to_owned(),
            reason: "FailedCreate".to_owned(),
            ..v1::ReplicaSetCondition::default()
        });
        let said = changes(Some(&status(3, 2)), &failed);
        assert_eq!(said, "ready 2 to 3, ReplicaFailure FailedCreate");
    }
}
