//! Frames side by side: the decisions that differ, in words.

use decree::v1::{self, batch::Action, reconcile_response::Frame};
use server_core::wording::count;
use server_session::recording::Difference;

use crate::{decision, near, record::reason};

/// The maximum number of names of one decision.
const NAMES_MAX: usize = 2;
/// The text for the side without a decision.
const NOTHING: &str = "nothing";

/// The recorded decision on a subject, and the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The ReplicaSet as namespace and name, or the kind of frame.
    pub(super) subject: String,
    pub(super) recorded: String,
    pub(super) decided: String,
}

/// A difference as pairs.
pub(super) fn of(difference: &Difference) -> Vec<Pair> {
    match difference {
        Difference::Frame {
            recorded, decided, ..
        } => pairs(recorded.as_ref(), decided.as_ref()),
        Difference::End {
            recorded, decided, ..
        } => vec![Pair {
            subject: "end".to_owned(),
            recorded: end(recorded),
            decided: end(decided),
        }],
    }
}

/// The end of a session, which is empty if the session continues.
pub(super) fn end(end: &str) -> String {
    match end {
        "" => "the session continues".to_owned(),
        end => format!("the session ends: {end}"),
    }
}

/// A frame with all names and reasons: a line for each decision, and one for each victim.
pub(super) fn explained(response: &v1::ReconcileResponse) -> Vec<String> {
    match &response.frame {
        None => Vec::new(),
        Some(Frame::Batches(batches)) => batches.batches.iter().flat_map(explained_batch).collect(),
        Some(other) => vec![frame(Err(other))],
    }
}

fn explained_batch(one: &v1::Batch) -> Vec<String> {
    let set = decision::path(one.replica_set.as_ref());
    let why = one.reasons.first().map(|why| format!("; {}", reason(why)));
    // Each victim has a line below.
    let is_deletion = matches!(one.action, Some(Action::Delete(_)));
    let line = batch(one, if is_deletion { NAMES_MAX } else { usize::MAX });
    let mut lines = vec![format!("{set}: {line}{}", why.unwrap_or_default())];
    if let Some(Action::Delete(delete)) = &one.action {
        lines.extend(delete.victims.iter().map(|victim| {
            let name = victim.pod.as_ref().map_or("-", |pod| &pod.name);
            let why = victim.reason.as_ref().map(reason).unwrap_or_default();
            format!("{name} ({why})")
        }));
    }
    lines
}

/// The differences between two frames, which are not equal.
fn pairs(
    recorded: Option<&v1::ReconcileResponse>,
    decided: Option<&v1::ReconcileResponse>,
) -> Vec<Pair> {
    let (mut recorded, mut decided) = match (batches(recorded), batches(decided)) {
        (Ok(recorded), Ok(decided)) => (recorded, decided),
        (recorded, decided) => {
            return vec![Pair {
                subject: "frame".to_owned(),
                recorded: frame(recorded),
                decided: frame(decided),
            }];
        }
    };
    let same = |one: &v1::Batch, other: &v1::Batch| compared(one) == compared(other);
    recorded.retain(|one| {
        let place = decided.iter().position(|other| same(one, other));
        place.map(|place| decided.remove(place)).is_none()
    });
    let mut pairs = Vec::new();
    for one in recorded {
        let of_same_set = |other: &&v1::Batch| other.replica_set == one.replica_set;
        let place = decided.iter().position(of_same_set);
        let other = place.map(|place| decided.remove(place));
        pairs.push(pair(Some(one), other));
    }
    pairs.extend(decided.into_iter().map(|other| pair(None, Some(other))));
    if pairs.is_empty() {
        pairs.push(Pair {
            subject: "frame".to_owned(),
            recorded: "other numbers of frames or batches, or another order".to_owned(),
            decided: "the same decisions".to_owned(),
        });
    }
    pairs
}

/// The batches of a frame, or another frame unchanged. No frame counts as no batches.
fn batches(frame: Option<&v1::ReconcileResponse>) -> Result<Vec<&v1::Batch>, &Frame> {
    match frame.and_then(|frame| frame.frame.as_ref()) {
        None => Ok(Vec::new()),
        Some(Frame::Batches(batches)) => Ok(batches.batches.iter().collect()),
        Some(other) => Err(other),
    }
}

/// A batch without its number and texts for people, which the comparison ignores.
fn compared(batch: &v1::Batch) -> v1::Batch {
    let mut batch = v1::Batch {
        id: 0,
        ..batch.clone()
    };
    server_session::recording::clear_texts(&mut batch);
    batch
}

fn pair(recorded: Option<&v1::Batch>, decided: Option<&v1::Batch>) -> Pair {
    let set = recorded.or(decided).and_then(|it| it.replica_set.as_ref());
    let mut pair = Pair {
        subject: decision::path(set),
        recorded: recorded.map_or_else(|| NOTHING.to_owned(), short),
        decided: decided.map_or_else(|| NOTHING.to_owned(), short),
    };
    if pair.recorded == pair.decided {
        pair.decided = "the same as text; -o json shows the difference".to_owned();
    }
    pair
}

fn frame(frame: Result<Vec<&v1::Batch>, &Frame>) -> String {
    match frame {
        Ok(batches) if batches.is_empty() => NOTHING.to_owned(),
        Ok(batches) => {
            let texts: Vec<_> = batches.into_iter().map(short).collect();
            texts.join("; ")
        }
        Err(Frame::Welcome(_)) => "a welcome".to_owned(),
        Err(Frame::Heartbeat(_)) => "a heartbeat".to_owned(),
        Err(Frame::Resync(resync)) => format!("asks for a list: {}", resync.cause),
        Err(Frame::Drain(_)) => "a drain".to_owned(),
        Err(Frame::Rejection(rejection)) => {
            let object = decision::path(rejection.object.as_ref());
            let faults = rejection.violations.iter();
            let faults = faults.map(|it| format!("{}: {}", it.field, it.description));
            let faults = faults.collect::<Vec<_>>().join("; ");
            format!("{object} is not accepted: {faults}")
        }
        Err(Frame::Batches(_)) => "batches".to_owned(),
    }
}

fn short(one: &v1::Batch) -> String {
    batch(one, NAMES_MAX)
}

/// The action of a batch with at most this many names.
fn batch(batch: &v1::Batch, most: usize) -> String {
    let counted = |verb: &str, names: &[&str]| {
        let (count, names) = (names.len(), near::first_of(names, most));
        format!("{verb} {count}: {names}")
    };
    match &batch.action {
        None => "no action".to_owned(),
        Some(Action::Create(create)) => {
            let names = create.names.iter().map(String::as_str);
            counted("create", &names.collect::<Vec<_>>())
        }
        Some(Action::Delete(delete)) => {
            let pods = delete.victims.iter().filter_map(|it| it.pod.as_ref());
            counted("delete", &names(pods))
        }
        Some(Action::Claim(claim)) => {
            let adopts = counted("adopt", &names(&claim.adopts));
            let releases = counted("release", &names(&claim.releases));
            match (claim.adopts.is_empty(), claim.releases.is_empty()) {
                (false, true) => adopts,
                (true, false) => releases,
                _ => format!("{adopts}; {releases}"),
            }
        }
        Some(Action::WriteStatus(write)) => status(write.status.as_ref()),
    }
}

fn names<'a>(objects: impl IntoIterator<Item = &'a v1::ObjectRef>) -> Vec<&'a str> {
    objects.into_iter().map(|it| it.name.as_str()).collect()
}

fn status(status: Option<&v1::ReplicaSetStatus>) -> String {
    let Some(status) = status else {
        return "write no status".to_owned();
    };
    format!(
        "write status: {}, {} ready, {} available, {}",
        count(status.replicas, "replica"),
        status.ready_replicas,
        status.available_replicas,
        count(status.conditions.len(), "condition")
    )
}
