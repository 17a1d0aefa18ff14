//! The comparison of a session's output with a recording, by rules and values. Texts for people do not count: a version with other texts
//! makes the same decisions.

use decree_api::v1::{self, batch::Action, reconcile_response::Frame};

/// Returns whether two frames differ at most in texts for people.
pub(crate) fn is_same(
    one: Option<&v1::ReconcileResponse>,
    other: Option<&v1::ReconcileResponse>,
) -> bool {
    if one == other {
        return true;
    }
    let [mut one, mut other] = [one, other].map(|frame| frame.map(without_texts));
    // 0.1.0 named the objects in other fields, which nobody reads any more.
    if let (Some(one), Some(other)) = (objects(&mut one), objects(&mut other))
        && (one.is_empty() || other.is_empty())
    {
        one.clear();
        other.clear();
    }
    one == other
}

/// The objects of a rejection.
fn objects(frame: &mut Option<v1::ReconcileResponse>) -> Option<&mut Vec<v1::RejectedObject>> {
    let Frame::Rejection(rejection) = frame.as_mut()?.frame.as_mut()? else {
        return None;
    };
    Some(&mut rejection.objects)
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
        Some(Frame::Welcome(_) | Frame::Drain(_) | Frame::Heartbeat(_) | Frame::CostsWanted(_))
        | None => {}
    }
    frame
}

/// Clears the texts for people in a batch. Names, versions, rules and the status remain.
fn clear_texts(batch: &mut v1::Batch) {
    let of_victims = match &mut batch.action {
        Some(Action::Delete(delete)) => &mut delete.victims[..],
        Some(Action::Create(_) | Action::Claim(_) | Action::WriteStatus(_) | Action::Advise(_))
        | None => &mut [],
    };
    let of_victims = of_victims.iter_mut().flat_map(|it| &mut it.reason);
    let reasons = batch.reasons.iter_mut().chain(of_victims);
    reasons.for_each(|reason| reason.detail.clear());
}

fn clear_descriptions(rejection: &mut v1::Rejection) {
    let objects = rejection.objects.iter_mut();
    let violations = objects.flat_map(|object| &mut object.violations);
    violations.for_each(|violation| violation.description.clear());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(sequence: u64, names: &[&str]) -> v1::ReconcileResponse {
        let objects = names.iter().map(|name| v1::RejectedObject {
            object: Some(v1::ObjectRef {
                name: (*name).to_owned(),
                ..v1::ObjectRef::default()
            }),
            ..v1::RejectedObject::default()
        });
        v1::ReconcileResponse {
            sequence: 1,
            frame: Some(Frame::Rejection(v1::Rejection {
                sequence,
                objects: objects.collect(),
                ..v1::Rejection::default()
            })),
        }
    }

    #[test]
    fn rejections_are_compared_by_their_objects_if_both_name_them() {
        let decided = rejection(7, &["a", "b"]);
        for (recorded, expected) in [
            (rejection(7, &["a", "b"]), true),
            (rejection(7, &["a"]), false),
            // As 0.1.0 recorded it.
            (rejection(7, &[]), true),
            (rejection(8, &[]), false),
        ] {
            let is = is_same(Some(&recorded), Some(&decided));
            assert_eq!(is, expected, "{recorded:?}");
        }
    }
}
