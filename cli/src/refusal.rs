//! The refusal of the last attempt of a ReplicaSet by the cluster.

use decree::v1::{self, FailureClass, timeline_entry::Entry};

use crate::{age, args::Named, server::Server};

/// Why the cluster refused the newest attempt, in its words, and since when. `None` if it did not refuse.
pub(crate) fn newest(timeline: &[v1::TimelineEntry]) -> Option<String> {
    let answered = timeline.iter().find_map(|entry| match &entry.entry {
        Some(Entry::Answered(answered)) => Some((entry, answered)),
        _ => None,
    });
    let (entry, answered) = answered?;
    // A failure that is decided again at once is worth a word only if it comes back.
    if answered.failed == 0 || (answered.times < 2 && !is_refusal(answered.class())) {
        return None;
    }
    let mut text = class(answered).to_owned();
    if answered.times > 1 {
        let since = age::time_text(entry.time.as_ref());
        text.push_str(&format!(", {} times since {since}", answered.times));
    }
    match answered.message.as_str() {
        "" => Some(text),
        message => Some(format!("{text}: {message}")),
    }
}

/// Asks the server what the cluster refused just before a decision that reports it in the status: the cause and its words. `None`
/// if the server does not know it any more.
pub(crate) async fn before(server: &Server, record: &v1::DecisionRecord) -> Option<String> {
    let conditions = &record.status.as_ref()?.conditions;
    let is_failure =
        |it: &v1::ReplicaSetCondition| it.r#type == "ReplicaFailure" && it.status == "True";
    if !conditions.iter().any(is_failure) {
        return None;
    }
    let request = Named::from(record.replica_set.clone()?).request(&record.cluster);
    let answer = server.inspection().get_replica_set(request).await.ok()?;
    let answer = answer.into_inner();
    let said = newest(&answer.timeline)?;
    let cause = answer.summary.and_then(|summary| summary.cause);
    let cause = cause.filter(|cause| cause.severity() == v1::Severity::Blocked);
    Some(match cause {
        Some(cause) => format!("{}; {said}", cause.text),
        None => said,
    })
}

/// Whether a failure lasts until something changes. Other failures are decided again at once, or after a delay.
const fn is_refusal(class: FailureClass) -> bool {
    match class {
        FailureClass::NotFound
        | FailureClass::Forbidden
        | FailureClass::Quota
        | FailureClass::NamespaceTerminating
        | FailureClass::Invalid
        | FailureClass::Timeout
        | FailureClass::Unavailable => true,
        FailureClass::Unspecified
        | FailureClass::NameTaken
        | FailureClass::Precondition
        | FailureClass::Conflict
        | FailureClass::Throttled
        | FailureClass::OwnerChanged => false,
    }
}

/// The word of a failure, such as `QUOTA`.
pub(crate) fn class(answered: &v1::Answered) -> &'static str {
    let class = answered.class().as_str_name();
    class.strip_prefix("FAILURE_CLASS_").unwrap_or(class)
}
