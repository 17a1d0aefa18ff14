//! The output for programs: an object on a line for each difference, and then one for each file.

use decree::json::Json;
use serde_json::{Value, json};
use server_session::recording::{Decisions, Difference, EndReason, Ending, Input, Summary};

use crate::{age, exit::Failure};

pub(super) fn difference(
    json: &Json,
    file: &str,
    difference: &Difference,
) -> Result<Value, Failure> {
    let (now, recorded, decided, after) = match difference {
        Difference::Frame {
            now,
            recorded,
            decided,
            after,
        } => {
            let frame = |frame: &Option<_>| match frame {
                Some(frame) => Ok(json!({"frame": json.value("ReconcileResponse", frame)?})),
                None => Ok::<_, Failure>(Value::Null),
            };
            let after: Result<Vec<_>, Failure> = after.iter().map(|it| input(json, it)).collect();
            (now, frame(recorded)?, frame(decided)?, after?)
        }
        Difference::End {
            now,
            recorded,
            decided,
        } => (now, end(recorded), end(decided), Vec::new()),
    };
    Ok(json!({"difference": {
        "file": file, "time": age::core_text(now.wall), "recorded": recorded, "decided": decided, "after": after,
    }}))
}

fn input(json: &Json, input: &Input) -> Result<Value, Failure> {
    let (now, word, frame) = match input {
        Input::Frame(now, frame) => (now, "FRAME", Some(frame)),
        Input::Timeout(now) => (now, "TIMEOUT", None),
        Input::Drain(now) => (now, "DRAIN", None),
        Input::Closed(now) => (now, "CLOSED", None),
    };
    let frame = frame.map(|frame| json.value("ReconcileRequest", frame));
    let frame = frame.transpose()?;
    Ok(json!({"time": age::core_text(now.wall), "input": word, "frame": frame}))
}

pub(super) fn summary(
    file: &str,
    identity: &server_session::SessionIdentity,
    server_version: &str,
    differences: u64,
    summary: &Summary,
) -> Value {
    let Summary {
        frames_in,
        frames_out,
        decisions,
        ending,
    } = summary;
    let Decisions {
        batches,
        creates,
        deletes,
        adopts,
        releases,
        status_writes,
    } = decisions;
    let (ending, torn_at) = word(ending);
    json!({"summary": {
        "file": file,
        "cluster": identity.cluster(),
        "session": identity.session_id,
        "serverVersion": server_version,
        "differences": differences,
        "decisions": {
            "batches": batches, "creates": creates, "deletes": deletes, "adopts": adopts, "releases": releases,
            "statusWrites": status_writes,
        },
        "framesIn": frames_in,
        "framesOut": frames_out,
        "ending": ending,
        "tornAt": torn_at,
    }})
}

/// How a recording ends, and the offset at which it is torn.
fn word(ending: &Ending) -> (&'static str, Option<u64>) {
    match ending {
        Ending::Marked(EndReason::Session) => ("SESSION", None),
        Ending::Marked(EndReason::Full) => ("FULL", None),
        Ending::Marked(EndReason::Behind) => ("BEHIND", None),
        Ending::Marked(EndReason::Failed | EndReason::Unspecified) => ("FAILED", None),
        Ending::Unmarked => ("UNMARKED", None),
        Ending::Torn(at) => ("TORN", Some(*at)),
    }
}

/// How a session ends; null if it continues.
fn end(end: &str) -> Value {
    match end {
        "" => Value::Null,
        end => json!({"end": end}),
    }
}
