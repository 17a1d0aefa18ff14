//! The comparison of a session's output with a recording, by rules and values. Texts for people do not count: a version with other texts
//! makes the same decisions.

use decree::v1::{self, batch::Action, reconcile_response::Frame};

/// Returns whether two frames differ at most in texts for people.
pub(crate) fn is_same(
    one: Option<&v1::ReconcileResponse>,
    other: Option<&v1::ReconcileResponse>,
) -> bool {
    one == other || one.map(without_texts) == other.map(without_texts)
}

/// Returns whether two ends of a session, as `REASON: text`, have the same reason.
pub(crate) fn is_same_end(one: &str, other: &str) -> bool {
    let reason = |end: &str| end.split(':').next().map(str::to_owned);
    reason(one) == reason(other)
}

fn without_texts(frame: &v1::ReconcileResponse) -> v1::ReconcileResponse {
    let mut frame = frame.clone();
    match &mut frame.frame {
        Some(Frame::Batches(it)) => it.batches.iter_mut().for_each(clear_texts),
        Some(Frame::Resync(resync)) => resync.cause.clear(),
        Some(Frame::Rejection(rejection)) => clear_descriptions(rejection),
        Some(Frame::Welcome(_) | Frame::Drain(_) | Frame::Heartbeat(_)) | None => {}
    }
    frame
}

/// Clears the texts for people in a batch. Names, versions, rules and the status remain.
fn clear_texts(batch: &mut v1::Batch) {
    let of_victims = match &mut batch.action {
        Some(Action::Delete(delete)) => &mut delete.victims[..],
        Some(Action::Create(_) | Action::Claim(_) | Action::WriteStatus(_)) | None => &mut [],
    };
    let of_victims = of_victims.iter_mut().flat_map(|it| &mut it.reason);
    let reasons = batch.reasons.iter_mut().chain(of_victims);
    reasons.for_each(|reason| reason.detail.clear());
}

fn clear_descriptions(rejection: &mut v1::Rejection) {
    let violations = rejection.violations.iter_mut();
    violations.for_each(|violation| violation.description.clear());
    rejection.others.iter_mut().for_each(clear_descriptions);
}
