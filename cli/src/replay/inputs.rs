//! The input before a difference: the agent's frames with the objects that they changed.

use std::io::{self, Write};

use decree::v1::{self, done::Object, event::Event, reconcile_request::Frame};
use server_session::Now;
use server_session::recording::Input;

use crate::{decision, table::one_line};

/// The maximum number of lines for one difference. JSON has all lines.
const LINES_MAX: usize = 20;

/// Writes a line for each object.
pub(super) fn write(now: Now, inputs: &[Input], out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<_> = inputs.iter().flat_map(|input| lines(now, input)).collect();
    if lines.is_empty() {
        writeln!(out, "  after     nothing that came; only time passed")?;
    }
    for (index, line) in lines.iter().take(LINES_MAX).enumerate() {
        let label = if index == 0 { "after" } else { "" };
        writeln!(out, "  {label:<8}  {}", one_line(line))?;
    }
    match lines.len().saturating_sub(LINES_MAX) {
        0 => Ok(()),
        more => writeln!(out, "            and {more} more; -o json has all"),
    }
}

fn lines(now: Now, input: &Input) -> Vec<String> {
    let (Input::Timeout(then) | Input::Drain(then) | Input::Closed(then) | Input::Frame(then, _)) =
        input;
    let ago = now.monotonic.saturating_sub(then.monotonic);
    let head = format!("{}, {:.3} s before", title(input), ago.as_secs_f64());
    let objects = objects(input).into_iter();
    let objects = objects.map(|object| format!("  {object}"));
    std::iter::once(head).chain(objects).collect()
}

/// An input in short.
pub(super) fn title(input: &Input) -> String {
    match input {
        Input::Timeout(_) => "time passed".to_owned(),
        Input::Drain(_) => "the server began to drain".to_owned(),
        Input::Closed(_) => "the agent closed the stream".to_owned(),
        Input::Frame(_, request) => format!("frame {} of the agent", request.sequence),
    }
}

/// The objects of an input, if it is a frame, or the word for another content of the frame.
pub(super) fn objects(input: &Input) -> Vec<String> {
    let Input::Frame(
        _,
        v1::ReconcileRequest {
            frame: Some(frame), ..
        },
    ) = input
    else {
        return Vec::new();
    };
    match frame {
        Frame::Hello(_) => vec!["hello".to_owned()],
        Frame::Heartbeat(_) => vec!["heartbeat".to_owned()],
        Frame::SnapshotBegin(begin) => vec![format!("list of {} begins", noun(begin.kind()))],
        Frame::SnapshotEnd(end) => vec![format!("list of {} ends", noun(end.kind()))],
        Frame::SnapshotObjects(list) => {
            let sets = list.replica_sets.iter().map(replica_set);
            sets.chain(list.pods.iter().map(pod)).collect()
        }
        Frame::Events(events) => events.events.iter().map(event).collect(),
        Frame::Outcomes(outcomes) => outcomes.outcomes.iter().map(outcome).collect(),
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
    let is_terminating = pod.deleted.is_some();
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
