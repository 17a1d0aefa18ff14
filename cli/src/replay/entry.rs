//! Decisions that differ, and the agent's frames with the objects that they changed, in words.

use std::collections::{BTreeMap, BTreeSet};

use decree_api::v1::{
    self, batch::Action, done::Object, event::Event, reconcile_request, reconcile_response::Frame,
};
use server_session::recording::{Difference, Input};

use crate::{decision, decision::reason, near};

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
        Some(other) => vec![frame(other)],
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
    let sides = [recorded, decided].map(decisions);
    let subjects: BTreeSet<_> = sides.iter().flat_map(BTreeMap::keys).collect();
    let pairs = subjects.into_iter().filter_map(|subject| {
        let [recorded, decided] = [&sides[0], &sides[1]].map(|side| side.get(subject));
        let text = |side: Option<&[String; 2]>, at: usize| {
            side.map_or_else(|| NOTHING.to_owned(), |texts| texts[at].clone())
        };
        // The short texts may be the same.
        let shown = usize::from(text(recorded, 0) == text(decided, 0));
        let pair = Pair {
            subject: subject.clone(),
            recorded: text(recorded, shown),
            decided: text(decided, shown),
        };
        (text(recorded, 1) != text(decided, 1)).then_some(pair)
    });
    let mut pairs: Vec<_> = pairs.collect();
    if pairs.is_empty() {
        pairs.push(Pair {
            subject: "frame".to_owned(),
            recorded: "another order, or other rules, guards or numbers".to_owned(),
            decided: "the same decisions".to_owned(),
        });
    }
    pairs
}

/// What a frame decides on each ReplicaSet, in short and with all names. Another frame is one subject.
fn decisions(response: Option<&v1::ReconcileResponse>) -> BTreeMap<String, [String; 2]> {
    let mut decisions = BTreeMap::<_, [String; 2]>::new();
    match response.and_then(|response| response.frame.as_ref()) {
        None => {}
        Some(Frame::Batches(batches)) => {
            for one in &batches.batches {
                let texts = [NAMES_MAX, usize::MAX].map(|most| batch(one, most));
                let subject = decision::path(one.replica_set.as_ref());
                let known = decisions.entry(subject).or_default();
                for (known, text) in known.iter_mut().zip(texts) {
                    let semicolon = if known.is_empty() { "" } else { "; " };
                    known.push_str(&format!("{semicolon}{text}"));
                }
            }
        }
        Some(other) => {
            let text = frame(other);
            decisions.insert("frame".to_owned(), [text.clone(), text]);
        }
    }
    decisions
}

fn frame(frame: &Frame) -> String {
    match frame {
        Frame::Welcome(_) => "a welcome".to_owned(),
        Frame::Heartbeat(_) => "a heartbeat".to_owned(),
        Frame::Resync(resync) => format!("asks for a list: {}", resync.cause),
        Frame::Drain(_) => "a drain".to_owned(),
        Frame::Rejection(rejection) => {
            let texts: Vec<_> = rejection.objects.iter().map(rejected).collect();
            texts.join("; ")
        }
        Frame::CostsWanted(wanted) => {
            let set = decision::path(wanted.replica_set.as_ref());
            format!("asks for the costs of {} pods of {set}", wanted.pods.len())
        }
        Frame::Batches(_) => "batches".to_owned(),
    }
}

fn rejected(one: &v1::RejectedObject) -> String {
    let object = decision::path(one.object.as_ref());
    let faults = one.violations.iter();
    let faults = faults.map(|it| format!("{}: {}", it.field, it.description));
    let faults = faults.collect::<Vec<_>>().join("; ");
    format!("{object} is not accepted: {faults}")
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
        Some(Action::Advise(advise)) => {
            let pods = advise.advices.iter().filter_map(|it| it.pod.as_ref());
            counted("advise", &names(pods))
        }
        Some(Action::WriteStatus(write)) => {
            let status = write.status.as_ref();
            let said = status.map_or_else(|| "none".to_owned(), decision::status);
            format!("write status: {said}")
        }
    }
}

fn names<'a>(objects: impl IntoIterator<Item = &'a v1::ObjectRef>) -> Vec<&'a str> {
    objects.into_iter().map(|it| it.name.as_str()).collect()
}

/// An input in short.
pub(super) fn title(input: &Input) -> String {
    match input {
        Input::Timeout => "time passed".to_owned(),
        Input::Drain => "the server began to drain".to_owned(),
        Input::Closed => "the agent closed the stream".to_owned(),
        Input::Frame(request) => format!("frame {} of the agent", request.sequence),
    }
}

/// The objects of an input, if it is a frame, or the word for another content of the frame.
pub(super) fn objects(input: &Input) -> Vec<String> {
    let Input::Frame(v1::ReconcileRequest {
        frame: Some(frame), ..
    }) = input
    else {
        return Vec::new();
    };
    match frame {
        reconcile_request::Frame::Hello(_) => vec!["hello".to_owned()],
        reconcile_request::Frame::Heartbeat(_) => vec!["heartbeat".to_owned()],
        reconcile_request::Frame::Costs(costs) => {
            vec![format!("costs of {} pods", costs.costs.len())]
        }
        reconcile_request::Frame::Nodes(nodes) => {
            let (changed, deleted) = (nodes.applied.len(), nodes.deleted.len());
            vec![format!("{changed} nodes changed, {deleted} deleted")]
        }
        reconcile_request::Frame::SnapshotBegin(begin) => {
            vec![format!("list of {} begins", noun(begin.kind()))]
        }
        reconcile_request::Frame::SnapshotEnd(end) => {
            vec![format!("list of {} ends", noun(end.kind()))]
        }
        reconcile_request::Frame::SnapshotObjects(list) => {
            let sets = list.replica_sets.iter().map(replica_set);
            sets.chain(list.pods.iter().map(pod)).collect()
        }
        reconcile_request::Frame::Events(events) => events.events.iter().map(event).collect(),
        reconcile_request::Frame::Outcomes(outcomes) => {
            outcomes.outcomes.iter().map(outcome).collect()
        }
    }
}

fn event(event: &v1::Event) -> String {
    match &event.event {
        None => "an empty event".to_owned(),
        Some(Event::PodApplied(it)) => pod(it),
        Some(Event::ReplicaSetApplied(it)) => replica_set(it),
        Some(Event::Deleted(it)) => {
            let path = decision::path(it.object.as_ref());
            format!("{} {path} deleted", noun(it.kind()))
        }
        Some(Event::Bookmark(it)) => {
            format!("{} are seen to {}", noun(it.kind()), it.resource_version)
        }
    }
}

fn outcome(outcome: &v1::Outcome) -> String {
    let what = match &outcome.outcome {
        None => "unknown".to_owned(),
        Some(v1::outcome::Outcome::Done(done)) => match &done.object {
            Some(Object::Pod(it)) => format!("done, {}", pod(it)),
            Some(Object::ReplicaSet(it)) => format!("done, {}", replica_set(it)),
            Some(Object::Gone(_)) | None => "done".to_owned(),
        },
        Some(v1::outcome::Outcome::Failed(failed)) => format!("failed: {}", failed.message),
        Some(v1::outcome::Outcome::NotStarted(_)) => "not started".to_owned(),
    };
    format!("batch {}.{}: {what}", outcome.batch_id, outcome.operation)
}

fn pod(pod: &v1::Pod) -> String {
    let phase = pod.phase().as_str_name().replace("POD_PHASE_", "");
    let is_ready = pod.ready.as_ref().is_some_and(|it| it.ready);
    let ready = if is_ready { ", ready" } else { "" };
    let is_terminating = pod.deletion_timestamp.is_some();
    let terminating = if is_terminating { ", terminating" } else { "" };
    let (namespace, name) = (&pod.namespace, &pod.name);
    format!("pod {namespace}/{name}: {phase}{ready}{terminating}")
}

fn replica_set(set: &v1::ReplicaSet) -> String {
    let replicas = set.replicas.unwrap_or(1);
    format!(
        "replica set {}/{}: {replicas} desired, generation {}",
        set.namespace, set.name, set.generation
    )
}

const fn noun(kind: v1::Kind) -> &'static str {
    match kind {
        v1::Kind::Unspecified => "objects",
        v1::Kind::Pod => "pods",
        v1::Kind::ReplicaSet => "replica sets",
    }
}
